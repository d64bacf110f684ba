// The restart policy under random schedules with virtual time: workers join, compute, fail and
// end, and messages are late. CHOIR_SUPERVISOR_SCHEDULES=N tries N schedules. Bugs planted into
// the restart policy must be found.
#include "base/philox.h"
#include "supervisor/restart_policy_state.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 6, ATTEMPTS = 6, STEPS = 20, EVENTS = 4096 };
static const double STEP = 0.1, REPORT = 0.25, LOST = 1, LEASE = 0.8;

typedef enum {
	NOTHING,
	KILLED,
	CRASHED, // by a signal of its own
	LEFT, // exits with 0 or another status, without a word
	FAILED, // reports a failure; the others hear of it and fail, too
	STOPPED,
	AGENT_KILLED,
	HOST_LOST,
	NEVER_JOINED,
	FAULTS
} fault;

typedef enum { JOINED, HEARD, ENDED, GONE, WORK, FAULT, KILL, DIES, TICK, ASK } happening;

typedef struct {
	double time;
	uint64_t order;
	happening kind;
	int attempt, worker;
	chi_worker_report report;
	chi_process_end end;
	bool goodbye;
} event;

typedef enum {
	SOUND,
	HASTY, // does not wait for a cause
	EARLY, // starts again while workers live
	FORGETFUL, // does not remember the last failure
	UNFORGIVING, // counts the time in which it was stopped itself
	CREDULOUS, // takes an exit status of 0 for success
	PLANTS
} planted;

typedef struct {
	bool alive, linked, silent, failed, joined;
	double last; // delivery of its last message: messages of one worker keep their order
	double hit; // when it was stopped
	int step;
} worker;

typedef struct {
	uint64_t seed, order;
	planted plant;
	uint32_t state;
	double now, held; // nothing arrives before held
	chi_restart_policy *v;
	int workers, restarts, wanted;
	event heap[EVENTS];
	int n;
	worker w[ATTEMPTS + 2][WORKERS];
	int begun[ATTEMPTS + 2];
	fault fault; // of this attempt
	int victim;
	double hit;
	bool repeats; // the same fault in each attempt
	int repeated; // how often it has come
	bool asked;
	char wrong[200];
} world;

static uint32_t draw(world *s, uint32_t below)
{
	s->state = s->state * 1664525u + 1013904223u;
	return (uint32_t) (((uint64_t) s->state * below) >> 32);
}

static double seconds(world *s, double most)
{
	return most * draw(s, 1000) / 1000;
}

static void wrong(world *s, const char *what)
{
	if (s->wrong[0] == '\0')
		snprintf(s->wrong, sizeof s->wrong, "%s (attempt %d, at %.3f s, fault %d of worker %d)",
				what, s->v->attempt, s->now, (int) s->fault, s->victim);
}

static bool before(const event *a, const event *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void put(world *s, event e)
{
	if (s->n == EVENTS) {
		wrong(s, "too many events");
		return;
	}
	e.order = s->order++;
	int i = s->n++;
	for (; i > 0 && before(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

static event take(world *s)
{
	const event first = s->heap[0], last = s->heap[--s->n];
	int i = 0;
	for (int child; (child = 2 * i + 1) < s->n; i = child) {
		child += child + 1 < s->n && before(&s->heap[child + 1], &s->heap[child]);
		if (!before(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
	}
	s->heap[i] = last;
	return first;
}

static void after(world *s, double wait, happening kind, int attempt, int w)
{
	put(s, (event){ .time = s->now + wait, .kind = kind, .attempt = attempt, .worker = w });
}

static chi_worker_report report_of(world *s, int attempt, int w)
{
	const worker *x = &s->w[attempt][w];
	chi_worker_report r = { 0 };
	r.health.state = x->step > STEPS ? CHI_HEALTH_FINISHED
			: x->failed				 ? CHI_HEALTH_FAILED
									 : CHI_HEALTH_OPEN;
	r.health.steps = (uint64_t) x->step;
	r.health.step = (uint64_t) x->step;
	r.health.pid = 100 * attempt + w;
	if (x->failed) {
		const bool other = w != s->victim;
		r.health.status = other ? CHOIR_CANCELLED : CHOIR_STATE;
		r.health.by_other = other;
		snprintf(r.health.text, sizeof r.health.text, other ? "worker %d (pid %d) stopped" : "bad",
				s->victim, 100 * attempt + s->victim);
	}
	r.silence = x->silent ? s->now - x->hit : 0;
	return r;
}

// Sends a message of the worker's agent to the restart policy.
static void send(world *s, happening kind, int attempt, int w, chi_process_end end, bool goodbye)
{
	worker *x = &s->w[attempt][w];
	if (!x->linked)
		return;
	double time = s->now + seconds(s, 0.03);
	if (time < s->held)
		time = s->held;
	if (time < x->last)
		time = x->last;
	x->last = time;
	put(s,
			(event){ .time = time,
					.kind = kind,
					.attempt = attempt,
					.worker = w,
					.report = report_of(s, attempt, w),
					.end = end,
					.goodbye = goodbye });
}

static void end_worker(world *s, int attempt, int w, bool by_signal, int number)
{
	worker *x = &s->w[attempt][w];
	if (!x->alive)
		return;
	x->alive = false;
	send(s, ENDED, attempt, w, (chi_process_end){ by_signal, number, false }, false);
}

// ---- What the restart policy asks for.

static void start(void *user, int attempt, int workers)
{
	world *s = user;
	if (attempt > ATTEMPTS) {
		wrong(s, "too many attempts");
		return;
	}
	for (int a = 1; a < attempt; a++)
		for (int w = 0; w < WORKERS; w++)
			if (s->w[a][w].alive)
				wrong(s, "an attempt begins while a worker of an earlier one lives");
	s->begun[attempt] = workers;
	if (!s->repeats || attempt == 1) {
		s->fault = draw(s, 4) == 0 ? NOTHING : (fault) draw(s, FAULTS);
		s->victim = (int) draw(s, (uint32_t) workers);
		s->hit = s->repeats ? STEPS * STEP : 0.1 + seconds(s, STEPS * STEP - 0.2);
	}
	if (s->victim >= workers)
		s->fault = NOTHING;
	for (int w = 0; w < workers; w++) {
		s->w[attempt][w] = (worker){ .linked = true };
		if (s->fault != NEVER_JOINED || w != s->victim)
			after(s, 0.05 + seconds(s, 0.04), WORK, attempt, w);
	}
	if (s->fault != NOTHING && s->fault != NEVER_JOINED)
		after(s, s->hit, FAULT, attempt, s->victim);
}

static void stop(void *user)
{
	world *s = user;
	const int a = s->v->attempt;
	for (int w = 0; w < s->v->workers; w++)
		if (s->w[a][w].alive && !s->w[a][w].silent) {
			s->w[a][w].step = STEPS + 1;
			end_worker(s, a, w, false, CHI_EXIT_STOPPED);
		}
}

static void kill_all(void *user)
{
	world *s = user;
	const int a = s->v->attempt;
	const chi_failure *f = &s->v->suspect;
	if (f->grade != CHI_NO_FAILURE && s->v->stop_number == 0) {
		const bool host = s->fault == HOST_LOST && f->worker / 2 == s->victim / 2;
		if (s->fault == NOTHING)
			wrong(s, "a failure without a fault");
		else if (s->fault == NEVER_JOINED ? f->worker >= 0 : f->worker != s->victim && !host)
			wrong(s, "another worker is blamed");
	}
	for (int w = 0; w < s->begun[a]; w++)
		after(s, seconds(s, 0.3), KILL, a, w);
	if (s->plant == EARLY)
		for (int w = 0; w < s->v->workers; w++)
			s->v->worker[w].gone = true;
}

static int capacity(void *user, const char *lost)
{
	world *s = user;
	s->wanted -= lost[0] != '\0' && s->wanted > 2 ? 2 : 0;
	return s->wanted;
}

static void nothing(void *user, const char *text)
{
	(void) user, (void) text;
}

// ---- What happens.

static void hit(world *s, int a, int w)
{
	worker *x = &s->w[a][w];
	if (!x->alive && a == s->v->attempt && x->hit == 0) // not yet
		after(s, 0.3, FAULT, a, w);
	if (!x->alive)
		return;
	s->repeated++;
	x->hit = s->now;
	for (int i = 0; i < s->begun[a]; i++) // the others wait from here on
		s->w[a][i].failed = s->w[a][i].failed || s->fault == FAILED;
	switch (s->fault) {
	case KILLED:
		end_worker(s, a, w, true, SIGKILL);
		for (int i = 0; i < s->begun[a]; i++) // an MPI aborts some of the others
			if (draw(s, 2) == 0)
				after(s, seconds(s, 0.1), DIES, a, i);
		break;
	case CRASHED:
		end_worker(s, a, w, true, SIGSEGV);
		break;
	case LEFT:
		end_worker(s, a, w, false, (int) draw(s, 2));
		break;
	case STOPPED:
		x->silent = true;
		break;
	case AGENT_KILLED:
		x->alive = false;
		send(s, GONE, a, w, (chi_process_end){ 0 }, false);
		x->linked = false;
		break;
	case HOST_LOST:
		for (int i = w / 2 * 2; i < s->begun[a] && i <= w / 2 * 2 + 1; i++) {
			s->w[a][i].linked = false;
			after(s, LEASE, DIES, a, i);
		}
		break;
	default:
		for (int i = 0; i < s->begun[a]; i++) // they tell of it and exit
			after(s, seconds(s, 0.3), DIES, a, i);
	}
}

static bool is_hit(const world *s, int a)
{
	return s->fault != NOTHING && s->w[a][s->victim].hit > 0;
}

static void work(world *s, int a, int w)
{
	worker *x = &s->w[a][w];
	if (!x->joined && x->linked) {
		x->joined = true;
		send(s, JOINED, a, w, (chi_process_end){ 0 }, false);
	}
	if (!x->alive || !x->linked)
		return;
	// A step needs all workers.
	const bool free_to_go = a == s->v->attempt && !is_hit(s, a) && s->fault != NEVER_JOINED;
	x->step += free_to_go && !x->silent;
	if (s->repeats && s->fault != NOTHING && x->step > s->victim + 3)
		x->step = s->victim + 3; // the same step in each attempt
	if (x->step > STEPS) {
		end_worker(s, a, w, false, 0);
		return;
	}
	send(s, HEARD, a, w, (chi_process_end){ 0 }, false);
	after(s, STEP, WORK, a, w);
}

static void die(world *s, int a, int w)
{
	worker *x = &s->w[a][w];
	if (s->fault == FAILED && x->alive && a == s->v->attempt) {
		send(s, HEARD, a, w, (chi_process_end){ 0 }, false);
		end_worker(s, a, w, false, 1);
	}
	if (s->fault == KILLED)
		end_worker(s, a, w, true, SIGABRT);
	x->alive = false;
}

// While this process is stopped, nothing reaches the restart policy.
static void tick_again(world *s)
{
	const double wait = draw(s, 200) == 0 ? 1.5 + seconds(s, 2) : REPORT;
	if (wait > 1)
		s->held = s->now + wait + 0.001;
	after(s, wait, TICK, 0, 0);
}

static void deliver(world *s, event *e)
{
	chi_restart_policy *v = s->v;
	switch (e->kind) {
	case JOINED:
		s->w[e->attempt][e->worker].alive = chi_restart_policy_joined(v, s->now, e->attempt,
				e->worker, e->worker < 2 ? "a" : "b", 100 * e->attempt + e->worker);
		if (s->w[e->attempt][e->worker].alive)
			work(s, e->attempt, e->worker);
		break;
	case HEARD:
		chi_restart_policy_heard(v, s->now, e->attempt, e->worker, &e->report);
		break;
	case ENDED:
		if (s->plant == CREDULOUS && !e->end.by_signal && e->end.number == 0)
			e->report.health.state = CHI_HEALTH_FINISHED;
		chi_restart_policy_ended(v, s->now, e->attempt, e->worker, &e->report, &e->end);
		break;
	case GONE:
		chi_restart_policy_gone(v, s->now, e->attempt, e->worker,
				e->goodbye ? CHOIR_END : CHOIR_PEER_LOST, "the connection was closed");
		break;
	case KILL:
		if (s->w[e->attempt][e->worker].linked) {
			end_worker(s, e->attempt, e->worker, true, SIGKILL);
			send(s, GONE, e->attempt, e->worker, (chi_process_end){ 0 }, true);
			s->w[e->attempt][e->worker].linked = false;
		}
		break;
	case WORK:
		work(s, e->attempt, e->worker);
		break;
	case FAULT:
		hit(s, e->attempt, e->worker);
		break;
	case DIES:
		die(s, e->attempt, e->worker);
		break;
	case ASK:
		s->asked = true;
		chi_restart_policy_stop(v, s->now, SIGTERM);
		break;
	case TICK:
		if (s->plant == UNFORGIVING)
			v->ticked = s->now;
		chi_restart_policy_tick(v, s->now);
		tick_again(s);
		break;
	}
	if (s->plant == HASTY)
		v->suspect.due = s->now;
	if (s->plant == FORGETFUL)
		v->last.grade = CHI_NO_FAILURE;
}

static void check_end(world *s)
{
	int number;
	const char *text;
	const choir_status status = chi_restart_policy_result(s->v, &number, &text);
	const int a = s->v->attempt;
	bool all = true;
	for (int w = 0; w < s->begun[a]; w++)
		all = all && s->w[a][w].step > STEPS;
	if (status == CHOIR_OK && !all)
		wrong(s, "success without a finished record from every worker");
	if (status != CHOIR_OK && s->fault == NOTHING && !s->asked)
		wrong(s, "no success without a fault");
	if (s->v->restarts > s->restarts)
		wrong(s, "too many restarts");
	if (s->repeats && !s->asked && (s->fault == CRASHED || s->fault == LEFT) && s->repeated > 2 &&
			s->fault != LEFT)
		wrong(s, "the same step failed in the same way three times");
}

static const char *try(world *s, uint64_t seed, planted plant)
{
	memset(s, 0, offsetof(world, heap));
	memset(s->w, 0, sizeof *s - offsetof(world, w));
	s->n = 0;
	s->seed = seed;
	s->plant = plant;
	s->state = (uint32_t) (seed * 2654435761u + 17);
	s->workers = s->wanted = 1 + (int) draw(s, WORKERS);
	s->restarts = (int) draw(s, ATTEMPTS);
	s->repeats = draw(s, 4) == 0;
	const chi_restart_policy_options o = { .workers = s->workers,
		.min_workers = 1 + (int) draw(s, (uint32_t) s->workers),
		.restarts = s->restarts,
		.lost_after = LOST,
		.start_timeout = 3,
		.stop_timeout = 2,
		.end_timeout = 2 };
	const chi_restart_policy_owner owner = { s, start, stop, kill_all, capacity, nothing, nothing,
		NULL };
	s->v = chi_restart_policy_new(&o, &owner);
	after(s, 0, TICK, 0, 0);
	if (draw(s, 8) == 0)
		after(s, seconds(s, 4), ASK, 0, 0);
	chi_restart_policy_begin(s->v, 0);
	while (s->v->phase != CHI_RESTART_POLICY_OVER && s->n > 0 && s->wrong[0] == '\0' &&
			s->now < 300) {
		event e = take(s);
		s->now = e.time;
		deliver(s, &e);
	}
	if (s->v->phase != CHI_RESTART_POLICY_OVER)
		wrong(s, "it does not end");
	else
		check_end(s);
	chi_restart_policy_free(s->v);
	return s->wrong[0] == '\0' ? NULL : s->wrong;
}

static uint64_t schedules(uint64_t normal)
{
	const char *given = getenv("CHOIR_SUPERVISOR_SCHEDULES");
	return given != NULL ? strtoull(given, NULL, 10) : normal;
}

static world simulated;

TEST(random_schedules_end_as_they_must)
{
	const uint64_t n = schedules(5000);
	for (uint64_t seed = 0; seed < n; seed++) {
		const char *what = try(&simulated, seed, SOUND);
		if (what != NULL)
			fail_msg("seed %llu: %s", (unsigned long long) seed, what);
	}
}

TEST(planted_bugs_are_found)
{
	for (int bug = SOUND + 1; bug < PLANTS; bug++) {
		uint64_t seed = 0;
		while (seed < 5000 && try(&simulated, seed, (planted) bug) == NULL)
			seed++;
		if (seed == 5000)
			fail_msg("planted bug %d is not found", bug);
	}
}
