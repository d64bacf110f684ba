// The gate `inside` counts the members in a job; its highest bit closes the job to more.
#include "base/team.h"

#include "base/alloc.h"
#include "base/gate.h"
#include "base/clock.h"
#include "base/processors.h"
#include "base/thread.h"

#include <stdio.h>

static const uint32_t CLOSED = 0x80000000u;

typedef struct {
	chi_thread thread;
	chi_team *team;
	int number;
} member;

struct chi_team {
	chi_team_options options;
	char name[CHI_THREAD_NAME];
	member *member;
	bool started;
	unsigned generation;
	chi_gate jobs; // word: jobs announced
	chi_gate inside; // word: members, and CLOSED
	chi_atomic32 stop;
	chi_team_fn *fn;
	void *arg;
	int64_t pieces;
	chi_atomic64 next;
};

static _Thread_local chi_team *own;

static void work(chi_team *t, int number)
{
	for (;;) {
		const int64_t piece = (int64_t) chi_atomic64_add(&t->next, 1);
		if (piece >= t->pieces)
			return;
		t->fn(t->arg, number, piece);
	}
}

static void loop(void *arg)
{
	const member *m = arg;
	chi_team *t = m->team;
	if (t->options.pin)
		(void) chi_thread_pin(t->options.first + m->number, 1);
	for (uint32_t seen = 0;;) {
		uint32_t now;
		while ((now = chi_atomic32_load(&t->jobs.word)) == seen)
			(void) chi_gate_wait(&t->jobs, seen, t->options.spin, chi_clock_deadline(-1));
		seen = now;
		if (chi_atomic32_load(&t->stop) != 0)
			return;
		if ((chi_atomic32_add(&t->inside.word, 1) & CLOSED) == 0)
			work(t, m->number);
		chi_atomic32_add(&t->inside.word, UINT32_MAX);
		chi_gate_wake(&t->inside);
	}
}

chi_team *chi_team_new(const chi_team_options *o)
{
	chi_team *t = chi_alloc(sizeof *t);
	if (!t)
		return NULL;
	t->options = *o;
	snprintf(t->name, sizeof t->name, "%s", o->name);
	t->options.name = t->name;
	t->member = chi_alloc_array((size_t) o->threads, sizeof *t->member);
	if (!t->member) {
		chi_free(t);
		return NULL;
	}
	chi_atomic32_store(&t->inside.word, CLOSED);
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
	if (!in_child(t)) {
		chi_atomic32_store(&t->stop, 1);
		chi_atomic32_add(&t->jobs.word, 1);
		chi_gate_wake(&t->jobs);
		for (int i = 1; i < t->options.threads; i++)
			chi_thread_join(&t->member[i].thread);
	}
	chi_free(t->member);
	chi_free(t);
}

int chi_team_members(const chi_team *t)
{
	return t->options.threads;
}

static choir_status start(chi_team *t)
{
	if (t->started)
		return CHOIR_OK;
	t->generation = chi_fork_generation();
	for (int i = 1; i < t->options.threads; i++) {
		member *m = &t->member[i];
		if (m->thread.started)
			continue;
		m->team = t;
		m->number = i;
		CHOIR_TRY(chi_thread_start(&m->thread, t->options.name, loop, m));
	}
	t->started = true;
	return CHOIR_OK;
}

choir_status chi_team_run(chi_team *t, int64_t pieces, chi_team_fn *fn, void *arg)
{
	if (in_child(t))
		return choir_fail(CHOIR_STATE,
				"%s: is used in a child after a fork; its threads "
				"stayed in the parent, so make it in the child",
				t->options.name);
	CHOIR_TRY(start(t));
	t->fn = fn;
	t->arg = arg;
	t->pieces = pieces;
	chi_atomic64_store(&t->next, 0);
	chi_atomic32_add(&t->inside.word, CLOSED);
	chi_atomic32_add(&t->jobs.word, 1);
	chi_gate_wake(&t->jobs);
	work(t, 0);
	uint32_t inside = chi_atomic32_add(&t->inside.word, CLOSED) + CLOSED;
	while (inside != CLOSED) {
		(void) chi_gate_wait(&t->inside, inside, t->options.spin, chi_clock_deadline(-1));
		inside = chi_atomic32_load(&t->inside.word);
	}
	return CHOIR_OK;
}

chi_team *chi_team_use(chi_team *t)
{
	chi_team *before = own;
	own = t;
	return before;
}

int chi_team_own_members(void)
{
	return own ? own->options.threads : 1;
}

choir_status chi_team_share(int64_t pieces, chi_team_fn *fn, void *arg)
{
	chi_team *team = chi_team_use(NULL); // within a piece there is no team
	choir_status status = CHOIR_OK;
	if (team && pieces > 1)
		status = chi_team_run(team, pieces, fn, arg);
	else
		for (int64_t i = 0; i < pieces; i++)
			fn(arg, 0, i);
	own = team;
	return status;
}
