// The object: a transport's table and its state, the workers' names, and the first failure. After
// that failure nothing is tried any more: what other workers do then, nobody can know, and a
// number that came late must not be taken for the one that is waited for now.
#include "cluster/cluster.h"

#include "base/alloc.h"
#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double START_SECONDS = 60, WAIT_SECONDS = 300;

static double seconds_or(double seconds, double otherwise)
{
	return seconds == 0 ? otherwise : seconds;
}

double chi_cluster_start_seconds(const choir_cluster_options *o)
{
	return seconds_or(o->start_timeout, START_SECONDS);
}

static void close_cluster(choir_cluster *c, double seconds)
{
	c->transport_table.close(c->self, seconds);
	chi_mutex_destroy(&c->lock);
	chi_free(c->self);
	chi_free(c->names);
	chi_free(c);
}

static choir_status open_transport(choir_cluster *c, const void *argument)
{
	chi_error_clear();
	const choir_status status = c->transport_table.open(c->self, argument);
	if (status != CHOIR_OK) {
		if (choir_error_status() != status)
			choir_fail(status, "it did not come up (%s)", choir_status_name(status));
		return chi_error_prefix("%s", c->transport_table.name);
	}
	c->worker = c->transport_table.worker(c->self);
	c->workers = c->transport_table.workers(c->self);
	if (c->workers < 1 || c->worker < 0 || c->worker >= c->workers)
		return choir_fail(CHOIR_INVALID, "%s: worker %d of %d", c->transport_table.name, c->worker,
				c->workers);
	char text[CHI_TRANSPORT_TEXT - 24];
	c->transport_table.describe(c->self, text, sizeof text);
	snprintf(c->transport, sizeof c->transport, "%.16s: %s", c->transport_table.name, text);
	return CHOIR_OK;
}

// The workers' names, which is also how it shows that all are there.
static choir_status meet(choir_cluster *c)
{
	char own[CHI_WORKER_NAME] = "", host[64] = "?";
	gethostname(host, sizeof host - 1);
	snprintf(own, sizeof own, "%s, pid %ld", host, (long) getpid());
	size_t bytes;
	if (!chi_size_multiply((size_t) c->workers, sizeof own, &bytes))
		return choir_fail(CHOIR_NO_MEMORY, "names of %d workers", c->workers);
	char(*names)[CHI_WORKER_NAME] = chi_alloc(bytes);
	if (names == NULL)
		return CHOIR_NO_MEMORY;
	const choir_status status = choir_cluster_all_gather(c, own, sizeof own, names);
	if (status != CHOIR_OK) {
		chi_free(names);
		return status;
	}
	for (int i = 0; i < c->workers; i++)
		names[i][CHI_WORKER_NAME - 1] = '\0';
	c->names = names;
	return CHOIR_OK;
}

choir_cluster *chi_cluster_open(
		const choir_cluster_table *transport, const void *argument, const choir_cluster_options *o)
{
	choir_cluster *c = chi_alloc(sizeof *c);
	if (c == NULL)
		return NULL;
	c->transport_table = chi_transport_filled(transport);
	c->start_timeout = chi_cluster_start_seconds(o);
	c->timeout = c->start_timeout;
	c->task = CHI_TASK_WORKER;
	c->self = chi_alloc(c->transport_table.self_size);
	if (c->self == NULL) {
		chi_free(c);
		return NULL;
	}
	chi_mutex_init(&c->lock, CHI_RANK_CLUSTER, "cluster");
	if (open_transport(c, argument) != CHOIR_OK || meet(c) != CHOIR_OK) {
		if (chi_atomic32_load(&c->failed) == 0 && c->workers > 0)
			chi_cluster_give_up(c);
		close_cluster(c, 0);
		return NULL;
	}
	c->task_index = c->worker;
	c->timeout = seconds_or(o->timeout, WAIT_SECONDS);
	return c;
}

void choir_cluster_free(choir_cluster *c)
{
	if (c == NULL)
		return;
	close_cluster(c, chi_atomic32_load(&c->failed) != 0 ? 0 : c->timeout);
}

const char *chi_cluster_name(const choir_cluster *c, int worker, char text[CHI_WORKER_NAME + 32])
{
	const char *where = choir_cluster_worker_name(c, worker);
	snprintf(text, CHI_WORKER_NAME + 32, where[0] == '\0' ? "worker %d%s" : "worker %d (%s)",
			worker, where);
	return text;
}

double chi_cluster_deadline(const choir_cluster *c, double seconds)
{
	return seconds >= 0 ? c->transport_table.now(c->self) + seconds : HUGE_VAL;
}

choir_status chi_cluster_give_up(choir_cluster *c)
{
	chi_error why;
	chi_error_save(&why);
	chi_mutex_lock(&c->lock);
	if (chi_atomic32_load(&c->failed) == 0) {
		if (c->cause != NULL)
			why = *c->cause;
		c->failure = why;
		chi_atomic32_store(&c->failed, 1);
		if (!c->ended_by_other)
			c->transport_table.abort(c->self, why.text);
	}
	chi_mutex_unlock(&c->lock);
	chi_error_restore(&why);
	return why.status;
}

double chi_cluster_failing(choir_cluster *c, const chi_error *why)
{
	static const double SECONDS = 10; // that all fail in if they fail alike
	chi_mutex_lock(&c->lock);
	c->cause = why;
	chi_mutex_unlock(&c->lock);
	return chi_cluster_deadline(c, c->timeout >= 0 && c->timeout < SECONDS ? c->timeout : SECONDS);
}

choir_status chi_cluster_check(choir_cluster *c)
{
	if (chi_atomic32_load(&c->failed) == 0)
		return CHOIR_OK;
	return choir_fail(CHOIR_CANCELLED, "the cluster has failed before: %s", c->failure.text);
}

void choir_cluster_abort(choir_cluster *c, const char *why)
{
	if (c == NULL)
		return;
	chi_error kept;
	chi_error_save(&kept);
	choir_fail(CHOIR_STATE, "%s", why == NULL || why[0] == '\0' ? "no reason was given" : why);
	chi_cluster_give_up(c);
	chi_error_restore(&kept);
}

int choir_cluster_worker(const choir_cluster *c)
{
	return c == NULL ? 0 : c->worker;
}

int choir_cluster_workers(const choir_cluster *c)
{
	return c == NULL ? 0 : c->workers;
}

bool choir_cluster_is_chief(const choir_cluster *c)
{
	return c != NULL && c->worker == 0;
}

int choir_cluster_task_index(const choir_cluster *c)
{
	return c == NULL ? 0 : c->task_index;
}

const char *choir_cluster_worker_name(const choir_cluster *c, int i)
{
	return c == NULL || c->names == NULL || i < 0 || i >= c->workers ? "" : c->names[i];
}

const char *choir_cluster_transport(const choir_cluster *c)
{
	return c == NULL ? "" : c->transport;
}
