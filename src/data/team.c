// A team of threads: a job is announced under the mutex, its pieces are taken from a counter, and
// the asker works along, so that a team of one has no thread at all.
#include "data/team.h"

#include <math.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "base/thread.h"

typedef struct {
	chi_thread thread;
	chi_team *team;
	int number;
} member;

struct chi_team {
	int members;
	member *member; // 1 .. members-1 have threads
	bool started;
	unsigned generation; // of forks, when they started
	chi_mutex mutex;
	chi_cond changed;
	// With mutex held:
	uint64_t job; // counts them
	int working; // members that have not finished the job
	bool stop;
	// Of the job:
	chi_team_fn *fn;
	void *arg;
	int64_t pieces;
	chi_atomic64 next;
};

static void work(chi_team *t, int number)
{
	for (;;) {
		int64_t piece = (int64_t) chi_atomic64_add(&t->next, 1);
		if (piece >= t->pieces)
			return;
		t->fn(t->arg, number, piece);
	}
}

static void loop(void *arg)
{
	const member *m = arg;
	chi_team *t = m->team;
	uint64_t done = 0;
	chi_mutex_lock(&t->mutex);
	for (;;) {
		while (!t->stop && t->job == done)
			chi_cond_wait(&t->changed, &t->mutex, HUGE_VAL);
		if (t->stop)
			break;
		done = t->job;
		chi_mutex_unlock(&t->mutex);
		work(t, m->number);
		chi_mutex_lock(&t->mutex);
		if (--t->working == 0)
			chi_cond_broadcast(&t->changed);
	}
	chi_mutex_unlock(&t->mutex);
}

chi_team *chi_team_new(int threads)
{
	chi_team *t = chi_alloc(sizeof *t);
	if (!t)
		return NULL;
	t->members = threads;
	t->member = chi_alloc_array((size_t) threads, sizeof *t->member);
	if (!t->member) {
		chi_free(t);
		return NULL;
	}
	chi_mutex_init(&t->mutex, CHI_RANK_DATA, "data team");
	chi_cond_init(&t->changed);
	return t;
}

static bool in_child(const chi_team *t)
{
	return t->started && t->generation != chi_fork_generation();
}

void chi_team_free(chi_team *t)
{
	if (!t)
		return;
	if (!in_child(t)) { // there, the mutex may be held by a thread that is not
		chi_mutex_lock(&t->mutex);
		t->stop = true;
		chi_cond_broadcast(&t->changed);
		chi_mutex_unlock(&t->mutex);
		for (int i = 1; i < t->members; i++)
			chi_thread_join(&t->member[i].thread);
		chi_cond_destroy(&t->changed);
		chi_mutex_destroy(&t->mutex);
	}
	chi_free(t->member);
	chi_free(t);
}

int chi_team_members(const chi_team *t)
{
	return t->members;
}

// Those that could start stay, if one cannot; the next job tries the others again.
static choir_status start(chi_team *t)
{
	if (t->started)
		return CHOIR_OK;
	t->generation = chi_fork_generation();
	for (int i = 1; i < t->members; i++) {
		member *m = &t->member[i];
		if (m->thread.started)
			continue;
		m->team = t;
		m->number = i;
		CHOIR_TRY(chi_thread_start(&m->thread, "choir-data", loop, m));
	}
	t->started = true;
	return CHOIR_OK;
}

choir_status chi_team_run(chi_team *t, int64_t pieces, chi_team_fn *fn, void *arg)
{
	if (in_child(t))
		return choir_fail(CHOIR_STATE,
				"map: used after a fork, in the child, which has none of its threads; make the "
				"dataset there");
	CHOIR_TRY(start(t));
	chi_mutex_lock(&t->mutex);
	t->fn = fn;
	t->arg = arg;
	t->pieces = pieces;
	chi_atomic64_store(&t->next, 0);
	t->working = t->members - 1;
	t->job++;
	chi_cond_broadcast(&t->changed);
	chi_mutex_unlock(&t->mutex);
	work(t, 0);
	chi_mutex_lock(&t->mutex);
	while (t->working > 0)
		chi_cond_wait(&t->changed, &t->mutex, HUGE_VAL);
	chi_mutex_unlock(&t->mutex);
	return CHOIR_OK;
}
