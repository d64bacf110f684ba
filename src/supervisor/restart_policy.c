// An attempt runs, ends, and after a pause the next one begins.
#include "supervisor/blame.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double FIRST_PAUSE = 1, LONGEST_PAUSE = 60; // seconds, after attempts without a step
static const double STOPPED = 1; // seconds without a tick: this process itself was stopped

chi_restart_policy *chi_restart_policy_new(
		const chi_restart_policy_options *o, const chi_restart_policy_owner *owner)
{
	chi_restart_policy *p = chi_alloc(sizeof *p);
	if (p == NULL)
		return NULL;
	p->o = *o;
	p->owner = *owner;
	p->phase = CHI_RESTART_POLICY_PAUSES;
	p->until = HUGE_VAL;
	p->suspect.grade = p->last.grade = CHI_NO_FAILURE;
	p->worker = chi_alloc_array((size_t) o->workers, sizeof *p->worker);
	if (p->worker == NULL) {
		chi_free(p);
		return NULL;
	}
	return p;
}

void chi_restart_policy_free(chi_restart_policy *p)
{
	if (p == NULL)
		return;
	chi_free(p->worker);
	chi_free(p);
}

void chi_restart_policy_say(const chi_restart_policy *p, const char *fmt, ...)
{
	char text[CHI_RESTART_POLICY_TEXT], clean[2 * CHI_RESTART_POLICY_TEXT];
	va_list args;
	va_start(args, fmt);
	(void) chi_text_format(text, sizeof text, fmt, args);
	va_end(args);
	p->owner.say(p->owner.user, chi_text_clean(text, clean, sizeof clean));
}

void chi_restart_policy_event(
		const chi_restart_policy *p, double now, const char *event, int worker, const char *why)
{
	chi_text t = { 0 };
	chi_text_add(&t, "{\"event\": \"%s\", \"time\": %.6f, \"attempt\": %d, \"workers\": %d", event,
			now, p->attempt, p->workers);
	if (worker >= 0) {
		chi_text_add(&t, ", ");
		chi_worker_add_json(&p->worker[worker], worker, &t);
	}
	if (why != NULL) {
		chi_text_add(&t, ", \"why\": ");
		chi_text_add_json(&t, why);
	}
	chi_text_add(&t, "}");
	if (!t.failed)
		p->owner.event(p->owner.user, t.data);
	chi_text_free(&t);
}

static void over(chi_restart_policy *p, double now, choir_status status)
{
	p->phase = CHI_RESTART_POLICY_OVER;
	p->status = status;
	chi_restart_policy_event(p, now, "over", CHOIR_NONE, choir_status_name(status));
}

static void begin_attempt(chi_restart_policy *p, double now)
{
	p->attempt++;
	p->phase = CHI_RESTART_POLICY_RUNS;
	p->begun = now;
	p->leaving = HUGE_VAL;
	p->warned = 0;
	p->first_step = p->unsaved = p->done = false;
	p->last = p->suspect;
	p->suspect = (chi_failure){ .grade = CHI_NO_FAILURE };
	memset(p->worker, 0, (size_t) p->o.workers * sizeof *p->worker);
	chi_restart_policy_event(p, now, "attempt", CHOIR_NONE, NULL);
	p->owner.start(p->owner.user, p->attempt, p->workers);
}

// The next attempt's workers; 0: the hosts lack capacity for the fewest.
static int count_workers(chi_restart_policy *p, const char *lost)
{
	const int capacity = p->owner.capacity(p->owner.user, lost);
	const int n = capacity < p->o.workers ? capacity : p->o.workers;
	if (n >= p->o.min_workers)
		return n;
	snprintf(p->text, sizeof p->text,
			"the hosts have capacity for %d workers; at least %d are needed", capacity,
			p->o.min_workers);
	return 0;
}

static double pause_of(const chi_restart_policy *p)
{
	double pause = p->idle == 0 ? 0 : FIRST_PAUSE;
	for (int i = 1; i < p->idle && pause < LONGEST_PAUSE; i++)
		pause *= 2;
	return pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
}

static void describe_restart(chi_restart_policy *p, double pause)
{
	char from[64] = "no checkpoint was saved in this job", when[48] = "";
	if (p->saved > 0)
		snprintf(from, sizeof from, "the last checkpoint is of step %" PRIu64, p->saved - 1);
	if (pause > 0)
		snprintf(when, sizeof when, " in %.0f s", pause);
	chi_restart_policy_say(p, "restart %d of %d with %d worker%s%s; %s", p->restarts,
			p->o.restarts, p->workers, p->workers == 1 ? "" : "s", when, from);
}

// After an attempt's processes are gone.
static void go_on(chi_restart_policy *p, double now)
{
	if (p->done || p->stop_number != 0) {
		const bool stopped = p->suspect.grade == CHI_NO_FAILURE && p->stop_number != 0;
		over(p, now, p->done ? p->status : stopped ? CHOIR_CANCELLED : CHOIR_PEER_LOST);
		return;
	}
	bool stepped = p->first_step;
	p->idle = stepped ? 0 : p->idle + 1;
	if (p->restarts >= p->o.restarts) {
		if (p->o.restarts > 0)
			chi_restart_policy_say(
					p, "gives up after %d restart%s", p->restarts, p->restarts == 1 ? "" : "s");
		over(p, now, CHOIR_PEER_LOST);
		return;
	}
	if (chi_blame_is_same(&p->suspect, &p->last)) {
		chi_restart_policy_say(p, "gives up: the same step has failed in the same way twice");
		over(p, now, CHOIR_STATE);
		return;
	}
	const int workers = count_workers(p, p->suspect.host);
	if (workers == 0) {
		chi_restart_policy_say(p, "gives up: %s", p->text);
		over(p, now, CHOIR_PEER_LOST);
		return;
	}
	p->workers = workers;
	p->restarts++;
	const double pause = pause_of(p);
	describe_restart(p, pause);
	p->phase = CHI_RESTART_POLICY_PAUSES;
	p->until = now + pause;
}

// An unreachable worker ends by itself when its agent has heard nothing for as long.
static bool are_gone(const chi_restart_policy *p, double now)
{
	for (int i = 0; i < p->workers; i++) {
		const chi_worker *w = &p->worker[i];
		if (w->joined && !w->gone && now < fmax(p->until, w->heard + p->o.lost_after + 1))
			return false;
	}
	return true;
}

static void end_attempt(chi_restart_policy *p, double now)
{
	p->phase = CHI_RESTART_POLICY_ENDS;
	p->until = now + 1;
	p->owner.kill(p->owner.user);
	if (are_gone(p, now))
		go_on(p, now);
}

static void fail(chi_restart_policy *p, double now)
{
	char list[200];
	chi_blame_say(p, p->text, sizeof p->text);
	chi_blame_waiting(p, p->suspect.worker, list, sizeof list);
	chi_restart_policy_say(
			p, "%s%s%s", p->text, list[0] != '\0' ? "; workers that wait: " : "", list);
	chi_restart_policy_event(p, now, "failure", p->suspect.worker, p->text);
	end_attempt(p, now);
}

// All processes of the attempt have ended, or finished.
static void settle_end(chi_restart_policy *p, double now)
{
	bool stopped = p->unsaved;
	for (int i = 0; i < p->workers; i++) {
		const chi_worker *w = &p->worker[i];
		if (!w->ended && w->report.health.state != CHI_HEALTH_FINISHED &&
				!chi_restart_policy_is_spare(p, i))
			return;
		stopped = stopped || w->stopped;
	}
	if (p->leaving == HUGE_VAL)
		p->leaving = now;
	for (int i = 0; i < p->workers; i++) {
		char name[160];
		const chi_worker *w = &p->worker[i];
		if (w->ended || !w->joined) // a spare worker that has not come is not awaited
			continue;
		if (now < p->leaving + p->o.end_timeout)
			return;
		chi_restart_policy_say(p, "%s has finished but does not end; killed",
				chi_worker_name(w, i, name, sizeof name));
	}
	p->done = true;
	p->status = stopped ? CHOIR_CANCELLED : CHOIR_OK;
	snprintf(p->text, sizeof p->text, "%s", stopped ? "the workers have stopped" : "");
	chi_restart_policy_event(p, now, stopped ? "stopped" : "finished", CHOIR_NONE, NULL);
	end_attempt(p, now);
}

// Nothing more can arrive once all workers have ended.
static bool is_due(const chi_restart_policy *p, double now)
{
	bool left = false;
	for (int i = 0; i < p->workers; i++)
		left = left || !p->worker[i].ended;
	return p->suspect.grade != CHI_NO_FAILURE && (now >= p->suspect.due || !left);
}

// A spare worker that has twice failed before its first step would do so again.
static void replace_spares(chi_restart_policy *p, double now)
{
	enum { IDLE = 2 };
	for (int i = p->o.spare_from; chi_restart_policy_is_spare(p, i); i++) {
		char name[160];
		chi_worker *w = &p->worker[i];
		if (!w->lost || w->due > now || p->stop_number != 0)
			continue;
		const chi_worker old = *w;
		const bool again = w->idle < IDLE;
		w->due = HUGE_VAL;
		if (old.way[0] != '\0' || !again)
			chi_restart_policy_say(p, "%s %s; %s", chi_worker_name(w, i, name, sizeof name),
					old.way[0] != '\0' ? old.way : "has failed again before its first step",
					again ? "it starts again" : "it does not start again");
		if (again)
			*w = (chi_worker){ .losses = old.losses, .idle = old.idle, .heard = now };
		p->owner.replace(p->owner.user, p->attempt, i, again);
	}
}

static void settle(chi_restart_policy *p, double now)
{
	if (p->phase == CHI_RESTART_POLICY_RUNS && is_due(p, now))
		fail(p, now);
	else if (p->phase == CHI_RESTART_POLICY_RUNS && p->suspect.grade == CHI_NO_FAILURE)
		settle_end(p, now);
	if (p->phase == CHI_RESTART_POLICY_ENDS && are_gone(p, now))
		go_on(p, now);
	if (p->phase == CHI_RESTART_POLICY_PAUSES && p->stop_number != 0)
		over(p, now, CHOIR_CANCELLED);
	if (p->phase == CHI_RESTART_POLICY_PAUSES && now >= p->until)
		begin_attempt(p, now);
}

void chi_restart_policy_begin(chi_restart_policy *p, double now)
{
	p->ticked = now;
	p->workers = count_workers(p, "");
	if (p->workers == 0) {
		chi_restart_policy_say(p, "%s", p->text);
		over(p, now, CHOIR_INVALID);
		return;
	}
	begin_attempt(p, now);
	settle(p, now);
}

static chi_worker *find(chi_restart_policy *p, int attempt, int worker)
{
	const bool known = attempt == p->attempt && worker >= 0 && worker < p->workers &&
			(p->phase == CHI_RESTART_POLICY_RUNS || p->phase == CHI_RESTART_POLICY_ENDS);
	return known ? &p->worker[worker] : NULL;
}

bool chi_restart_policy_joined(
		chi_restart_policy *p, double now, int attempt, int worker, const char *host, long pid)
{
	chi_worker *w = find(p, attempt, worker);
	if (w == NULL || w->joined || p->phase != CHI_RESTART_POLICY_RUNS || p->stop_number != 0)
		return false;
	w->joined = true;
	w->pid = pid;
	w->heard = now;
	snprintf(w->host, sizeof w->host, "%s", host);
	chi_restart_policy_event(p, now, "joined", worker, NULL);
	return true;
}

static void take_report(chi_restart_policy *p, double now, int worker, const chi_worker_report *r)
{
	chi_worker *w = &p->worker[worker];
	w->report = *r;
	w->heard = now;
	if (r->health.pid > 0)
		w->pid = r->health.pid;
	if (r->health.saved > p->saved)
		p->saved = r->health.saved;
	if (!w->started)
		chi_restart_policy_event(p, now, "started", worker, NULL);
	w->started = true;
	if (r->health.steps > 0 && !p->first_step) {
		p->first_step = true;
		chi_restart_policy_event(p, now, "step", worker, NULL);
	}
}

void chi_restart_policy_heard(
		chi_restart_policy *p, double now, int attempt, int worker, const chi_worker_report *r)
{
	chi_worker *w = find(p, attempt, worker);
	if (w == NULL || !w->joined || w->ended)
		return;
	take_report(p, now, worker, r);
	if (p->phase != CHI_RESTART_POLICY_RUNS)
		return;
	chi_blame_report(p, now, worker);
	settle(p, now);
}

void chi_restart_policy_ended(chi_restart_policy *p, double now, int attempt, int worker,
		const chi_worker_report *r, const chi_process_end *end)
{
	chi_worker *w = find(p, attempt, worker);
	if (w == NULL || !w->joined || w->ended)
		return;
	take_report(p, now, worker, r);
	w->ended = true;
	w->end = *end;
	if (p->phase == CHI_RESTART_POLICY_RUNS)
		chi_blame_end(p, now, worker);
	settle(p, now);
}

void chi_restart_policy_gone(chi_restart_policy *p, double now, int attempt, int worker,
		choir_status status, const char *why)
{
	chi_worker *w = find(p, attempt, worker);
	if (w == NULL || !w->joined || w->gone)
		return;
	w->gone = true;
	if (!w->ended && p->phase == CHI_RESTART_POLICY_RUNS) {
		chi_blame(p, now, CHI_CAUSE, worker, "is lost; its agent: %s", why)->external =
				status == CHOIR_END || status == CHOIR_PEER_LOST || status == CHOIR_TIMEOUT;
	}
	settle(p, now);
}

void chi_restart_policy_launcher_ended(
		chi_restart_policy *p, double now, int attempt, const char *host, const char *how)
{
	int joined = 0, left = 0;
	if (attempt != p->attempt || p->phase != CHI_RESTART_POLICY_RUNS)
		return;
	for (int i = 0; i < p->workers; i++) {
		joined += p->worker[i].joined;
		left += !p->worker[i].ended;
	}
	if (left == 0)
		return;
	const bool alone = joined == 0 || host[0] != '\0';
	chi_failure *f = chi_blame(p, now, alone ? CHI_CAUSE : CHI_LAUNCHER, CHOIR_NONE,
			"%s before all workers had %s", how, joined < p->workers ? "joined" : "ended");
	snprintf(f->host, sizeof f->host, "%s", host);
	settle(p, now);
}

void chi_restart_policy_spare_ended(
		chi_restart_policy *p, double now, int attempt, int worker, const char *how)
{
	const chi_worker *w = find(p, attempt, worker);
	if (w == NULL || w->joined || w->lost || p->phase != CHI_RESTART_POLICY_RUNS)
		return;
	chi_blame(p, now, CHI_CAUSE, worker, "has not joined: %s", how);
	settle(p, now);
}

void chi_restart_policy_stop(chi_restart_policy *p, double now, int number)
{
	bool again = p->stop_number != 0, joined = false;
	for (int i = 0; i < p->workers; i++)
		joined = joined || p->worker[i].joined;
	again = again || !joined; // no worker has anything to save
	p->stop_number = number;
	if (p->phase == CHI_RESTART_POLICY_RUNS && again) {
		p->unsaved = true;
		end_attempt(p, now);
	} else if (p->phase == CHI_RESTART_POLICY_RUNS) {
		p->stop_until = now + p->o.stop_timeout;
		chi_restart_policy_say(p, "stops: the workers have %.0f s to save", p->o.stop_timeout);
		p->owner.stop(p->owner.user);
	}
	settle(p, now);
}

// Messages that arrived while this process was stopped may wait in its sockets.
static void forgive(chi_restart_policy *p, double seconds)
{
	for (int i = 0; i < p->workers; i++)
		p->worker[i].heard += seconds;
	p->begun += seconds;
	p->until += seconds;
	p->stop_until += seconds;
	p->suspect.due += seconds;
	p->leaving += seconds;
}

static void check_times(chi_restart_policy *p, double now)
{
	int joined = 0;
	chi_blame_silence(p, now);
	chi_blame_stall(p, now);
	for (int i = 0; i < p->workers; i++)
		joined += p->worker[i].joined || p->worker[i].losses > 0;
	if (joined < p->workers && now >= p->begun + p->o.start_timeout)
		chi_blame(p, now, CHI_CAUSE, CHOIR_NONE, "%d of %d workers have joined within %.0f s",
				joined, p->workers, p->o.start_timeout)
				->external = true;
	if (p->stop_number != 0 && now >= p->stop_until) {
		p->unsaved = true;
		chi_restart_policy_say(
				p, "the workers have not stopped within %.0f s; killed", p->o.stop_timeout);
		end_attempt(p, now);
	}
}

void chi_restart_policy_tick(chi_restart_policy *p, double now)
{
	if (now - p->ticked > STOPPED)
		forgive(p, now - p->ticked);
	p->ticked = now;
	if (p->phase == CHI_RESTART_POLICY_RUNS)
		check_times(p, now);
	settle(p, now);
	if (p->phase == CHI_RESTART_POLICY_RUNS && p->leaving == HUGE_VAL &&
			p->suspect.grade == CHI_NO_FAILURE)
		replace_spares(p, now);
}

chi_restart_policy_phase chi_restart_policy_now(const chi_restart_policy *p)
{
	return p->phase;
}

int chi_restart_policy_attempt(const chi_restart_policy *p)
{
	return p->attempt;
}

bool chi_restart_policy_is_spare(const chi_restart_policy *p, int worker)
{
	return p->o.spare_from > 0 && worker >= p->o.spare_from && worker < p->workers;
}

int chi_restart_policy_workers(const chi_restart_policy *p)
{
	return p->workers;
}

bool chi_restart_policy_has_succeeded(const chi_restart_policy *p)
{
	return p->done && p->status == CHOIR_OK;
}

choir_status chi_restart_policy_result(const chi_restart_policy *p, int *number, const char **text)
{
	*number = p->status == CHOIR_CANCELLED && (p->unsaved || !p->done) ? p->stop_number : 0;
	*text = p->text;
	return p->status;
}

uint64_t chi_restart_policy_step(const chi_restart_policy *p)
{
	uint64_t newest = 0;
	for (int i = 0; i < p->workers; i++) {
		const chi_health_note *h = &p->worker[i].report.health;
		if (h->steps > 0 && h->step > newest)
			newest = h->step;
	}
	return newest;
}

void chi_restart_policy_describe(const chi_restart_policy *p, double now, bool json, chi_text *out)
{
	static const char *const phases[] = { "runs", "ends", "pauses", "over" };
	if (json)
		chi_text_add(out,
				"{\"phase\": \"%s\", \"attempt\": %d, \"restarts\": %d, \"most_restarts\": %d, "
				"\"seconds\": %.3f, \"workers\": [",
				phases[p->phase], p->attempt, p->restarts, p->o.restarts, now - p->begun);
	else
		chi_text_add(out, "%s: attempt %d for %.0f s, restart %d of %d, %d workers\n",
				phases[p->phase], p->attempt, now - p->begun, p->restarts, p->o.restarts,
				p->workers);
	for (int i = 0; i < p->workers; i++) {
		if (json && i > 0)
			chi_text_add(out, ", ");
		chi_worker_describe(&p->worker[i], i, json, out);
	}
	if (json)
		chi_text_add(out, "]}\n");
}

const char *chi_restart_policy_progress(const chi_restart_policy *p, char *out, size_t size)
{
	int here = 0;
	for (int i = 0; i < p->workers; i++)
		here += p->worker[i].joined && !p->worker[i].ended;
	snprintf(out, size, "%d of %d workers, step %" PRIu64, here, p->workers,
			chi_restart_policy_step(p));
	return out;
}
