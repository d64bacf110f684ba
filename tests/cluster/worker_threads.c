// Threads as workers. Each makes its cluster, which is where they meet, runs, and leaves.
#include "cluster/worker_threads.h"

#include "base/alloc.h"
#include "base/gate.h"
#include "base/clock.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

enum { MAX = 64 };

typedef struct {
	chi_thread thread;
	sim *s;
	int worker, workers;
	const choir_cluster_options *o;
	worker_threads_fn *fn;
	void *user;
	char wrong[1200];
} one;

static chi_atomic32 to_come; // workers whose cluster is not made yet
static chi_gate all_are_there;

// A failure that one makes at once must not reach another one while that is still coming up. The
// last to come sends all on, so that no time passes for those that have not woken up yet.
static void meet(one *w)
{
	sim_rest(w->s, w->worker, true);
	if (chi_atomic32_add(&to_come, UINT32_MAX) == 1) {
		for (int i = 0; i < w->workers; i++)
			sim_rest(w->s, i, false);
		chi_gate_open(&all_are_there, 1);
	}
	chi_gate_wait(&all_are_there, 0, false, chi_clock_deadline(-1));
}

static void work(void *arg)
{
	one *w = arg;
	choir_cluster *c = sim_cluster(w->s, w->worker, w->o);
	meet(w);
	const char *wrong = w->fn(c, w->worker, w->user);
	snprintf(w->wrong, sizeof w->wrong, "%s", wrong == NULL ? "" : wrong);
	choir_cluster_free(c);
}

void worker_threads_run(
		sim *s, int workers, const choir_cluster_options *o, worker_threads_fn *fn, void *user)
{
	static one crew[MAX];
	assert_true(workers <= MAX);
	chi_atomic32_store(&to_come, (uint32_t) workers);
	chi_atomic32_store(&all_are_there.word, 0);
	for (int i = 0; i < workers; i++) {
		crew[i] = (one){ .s = s, .worker = i, .workers = workers, .o = o, .fn = fn, .user = user };
		assert_int_equal(chi_thread_start(&crew[i].thread, "worker", work, &crew[i]), CHOIR_OK);
	}
	for (int i = 0; i < workers; i++)
		chi_thread_join(&crew[i].thread);
	for (int i = 0; i < workers; i++)
		if (crew[i].wrong[0] != '\0')
			fail_msg("worker %d of %d: %s", i, workers, crew[i].wrong);
}

void worker_threads_every_allocation(
		const choir_cluster_options *o, worker_threads_fn *fn, void *user)
{
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		assert_true(n < 500);
		sim *s = sim_new(&(sim_options){ .workers = 2, .eager = SIZE_MAX });
		assert_non_null(s);
		chi_alloc_fail(n, false);
		worker_threads_run(s, 2, o, fn, user);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		sim_free(s);
	}
}
