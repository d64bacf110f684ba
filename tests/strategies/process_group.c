// Workers, their strategies, and what they find wrong.
#include "process_group.h"

#include "base/alloc.h"
#include "cluster/worker_threads.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const char *devices_of(const char *lists, int worker, char *text, size_t size)
{
	for (; worker > 0 && strchr(lists, ';') != NULL; worker--)
		lists = strchr(lists, ';') + 1;
	snprintf(text, size, "%.*s", (int) strcspn(lists, ";"), lists);
	return text;
}

static const char *be_worker(choir_cluster *c, int worker, void *user)
{
	const peers_job *job = user;
	static _Thread_local char text[1000];
	char devices[100];
	if (c == NULL)
		return choir_error();
	choir_strategy_options o = { .size = sizeof o,
		.replicas = job->replicas,
		.devices = devices_of(job->place.devices, worker, devices, sizeof devices),
		.seed = 11,
		.timeout = 20,
		.cluster = c };
	if (job->options != NULL)
		job->options(&o, worker, job->user);
	if (job->lacks > 0 && worker == 0)
		chi_alloc_fail(job->lacks, false);
	choir_strategy *s = choir_multi_worker_mirrored_strategy_new(&o);
	const char *wrong = job->fn(s, worker, job->user);
	if (wrong != NULL)
		snprintf(text, sizeof text, "%s", wrong);
	choir_strategy_free(s);
	return wrong == NULL ? NULL : text;
}

void peers_run(const peers_job *job)
{
	const sim_options o = { .workers = job->place.workers,
		.seed = job->seed,
		.slowest = 1e-3,
		.eager = 4096,
		.quiet = 20 };
	sim *s = sim_new(&o);
	assert_non_null(s);
	worker_threads_run(s, job->place.workers, NULL, be_worker, (void *) (uintptr_t) job);
	if (job->bytes != NULL)
		*job->bytes = sim_bytes(s);
	sim_free(s);
}

void peers_every_allocation(peers_job job, uint64_t apart)
{
	bool failed = true;
	for (job.lacks = 1; failed; job.lacks += 1 + job.lacks / apart) {
		peers_run(&job);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
	}
	assert_true(job.lacks > 100);
}

const char *peers_last_failure(choir_status status, const char *first, const char *second)
{
	static _Thread_local char text[1000];
	if (choir_error_status() == status && text_holds(choir_error(), first) &&
			(second == NULL || text_holds(choir_error(), second)))
		return NULL;
	snprintf(text, sizeof text, "not %s with \"%s\" and \"%s\": %.600s", choir_status_name(status),
			first, second == NULL ? "" : second, choir_error());
	return text;
}

const char *peers_last_or_heard(choir_status status, const char *first, const char *second)
{
	return peers_last_failure(
			choir_error_status() == CHOIR_CANCELLED ? CHOIR_CANCELLED : status, first, second);
}
