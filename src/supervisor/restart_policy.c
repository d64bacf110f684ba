// Decides when a job starts again. An attempt runs, ends, and after a pause the next one begins.
#include "supervisor/blame.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double FIRST_PAUSE = 1, LONGEST_PAUSE = 60; // seconds, after attempts without a step
static const double STOPPED = 1; // seconds without a tick: this process itself was stopped

chi_verdict *chi_verdict_new(const chi_verdict_options *o, const chi_verdict_owner *owner)
{
	chi_verdict *v = chi_alloc(sizeof *v);
	if (v == NULL)
		return NULL;
	v->o = *o;
	v->owner = *owner;
	v->phase = CHI_VERDICT_PAUSES;
	v->until = HUGE_VAL;
	v->suspect.grade = v->last.grade = CHI_NO_FAILURE;
	v->worker = chi_alloc_array((size_t) o->workers, sizeof *v->worker);
	if (v->worker == NULL) {
		chi_free(v);
		return NULL;
	}
	return v;
}

void chi_verdict_free(chi_verdict *v)
{
	if (v == NULL)
		return;
	chi_free(v->worker);
	chi_free(v);
}

void chi_verdict_say(const chi_verdict *v, const char *fmt, ...)
{
	char text[CHI_VERDICT_TEXT], clean[2 * CHI_VERDICT_TEXT];
	va_list args;
	va_start(args, fmt);
	(void) chi_text_format(text, sizeof text, fmt, args);
	va_end(args);
	v->owner.say(v->owner.user, chi_text_clean(text, clean, sizeof clean));
}

void chi_verdict_event(
		const chi_verdict *v, double now, const char *event, int worker, const char *why)
{
	chi_text t = { 0 };
	chi_text_add(&t, "{\"event\": \"%s\", \"time\": %.6f, \"attempt\": %d, \"workers\": %d", event,
			now, v->attempt, v->workers);
	if (worker >= 0) {
		chi_text_add(&t, ", ");
		chi_worker_add_json(&v->worker[worker], worker, &t);
	}
	if (why != NULL) {
		chi_text_add(&t, ", \"why\": ");
		chi_text_add_json(&t, why);
	}
	chi_text_add(&t, "}");
	if (!t.failed)
		v->owner.event(v->owner.user, t.data);
	chi_text_free(&t);
}

static void over(chi_verdict *v, double now, choir_status status)
{
	v->phase = CHI_VERDICT_OVER;
	v->status = status;
	chi_verdict_event(v, now, "over", CHOIR_NONE, choir_status_name(status));
}

static void begin_attempt(chi_verdict *v, double now)
{
	v->attempt++;
	v->phase = CHI_VERDICT_RUNS;
	v->begun = now;
	v->leaving = HUGE_VAL;
	v->warned = 0;
	v->first_step = v->unsaved = v->done = false;
	v->last = v->suspect;
	v->suspect = (chi_failure){ .grade = CHI_NO_FAILURE };
	memset(v->worker, 0, (size_t) v->o.workers * sizeof *v->worker);
	chi_verdict_event(v, now, "attempt", CHOIR_NONE, NULL);
	v->owner.start(v->owner.user, v->attempt, v->workers);
}

// The next attempt's workers; 0: the hosts lack capacity for the fewest.
static int count_workers(chi_verdict *v, const char *lost)
{
	const int capacity = v->owner.capacity(v->owner.user, lost);
	const int n = capacity < v->o.workers ? capacity : v->o.workers;
	if (n >= v->o.min_workers)
		return n;
	snprintf(v->text, sizeof v->text,
			"the hosts have capacity for %d workers; at least %d are needed", capacity,
			v->o.min_workers);
	return 0;
}

static double pause_of(const chi_verdict *v)
{
	double pause = v->idle == 0 ? 0 : FIRST_PAUSE;
	for (int i = 1; i < v->idle && pause < LONGEST_PAUSE; i++)
		pause *= 2;
	return pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
}

static void describe_restart(chi_verdict *v, double pause)
{
	char from[64] = "no checkpoint was saved in this job", when[48] = "";
	if (v->saved > 0)
		snprintf(from, sizeof from, "the last checkpoint is of step %" PRIu64, v->saved - 1);
	if (pause > 0)
		snprintf(when, sizeof when, " in %.0f s", pause);
	chi_verdict_say(v, "restart %d of %d with %d worker%s%s; %s", v->restarts, v->o.restarts,
			v->workers, v->workers == 1 ? "" : "s", when, from);
}

// After an attempt's processes are gone.
static void go_on(chi_verdict *v, double now)
{
	if (v->done || v->stop_number != 0) {
		const bool stopped = v->suspect.grade == CHI_NO_FAILURE && v->stop_number != 0;
		over(v, now, v->done ? v->status : stopped ? CHOIR_CANCELLED : CHOIR_PEER_LOST);
		return;
	}
	bool stepped = v->first_step;
	v->idle = stepped ? 0 : v->idle + 1;
	if (v->restarts >= v->o.restarts) {
		if (v->o.restarts > 0)
			chi_verdict_say(
					v, "gives up after %d restart%s", v->restarts, v->restarts == 1 ? "" : "s");
		over(v, now, CHOIR_PEER_LOST);
		return;
	}
	if (chi_blame_is_same(&v->suspect, &v->last)) {
		chi_verdict_say(v, "gives up: the same step has failed in the same way twice");
		over(v, now, CHOIR_STATE);
		return;
	}
	const int workers = count_workers(v, v->suspect.host);
	if (workers == 0) {
		chi_verdict_say(v, "gives up: %s", v->text);
		over(v, now, CHOIR_PEER_LOST);
		return;
	}
	v->workers = workers;
	v->restarts++;
	const double pause = pause_of(v);
	describe_restart(v, pause);
	v->phase = CHI_VERDICT_PAUSES;
	v->until = now + pause;
}

// A worker that cannot be reached ends by itself when its agent has heard nothing for as long.
static bool are_gone(const chi_verdict *v, double now)
{
	for (int i = 0; i < v->workers; i++) {
		const chi_worker *w = &v->worker[i];
		if (w->joined && !w->gone && now < fmax(v->until, w->heard + v->o.lost_after + 1))
			return false;
	}
	return true;
}

static void end_attempt(chi_verdict *v, double now)
{
	v->phase = CHI_VERDICT_ENDS;
	v->until = now + 1;
	v->owner.kill(v->owner.user);
	if (are_gone(v, now))
		go_on(v, now);
}

static void fail(chi_verdict *v, double now)
{
	char list[200];
	chi_blame_say(v, v->text, sizeof v->text);
	chi_blame_waiting(v, v->suspect.worker, list, sizeof list);
	chi_verdict_say(v, "%s%s%s", v->text, list[0] != '\0' ? "; workers that wait: " : "", list);
	chi_verdict_event(v, now, "failure", v->suspect.worker, v->text);
	end_attempt(v, now);
}

// All processes of the attempt have ended, or finished.
static void settle_end(chi_verdict *v, double now)
{
	bool stopped = v->unsaved;
	for (int i = 0; i < v->workers; i++) {
		const chi_worker *w = &v->worker[i];
		if (!w->ended && w->report.health.state != CHI_HEALTH_FINISHED &&
				!chi_verdict_is_spare(v, i))
			return;
		stopped = stopped || w->stopped;
	}
	if (v->leaving == HUGE_VAL)
		v->leaving = now;
	for (int i = 0; i < v->workers; i++) {
		char name[160];
		const chi_worker *w = &v->worker[i];
		if (w->ended || (w->losses > 0 && !w->joined))
			continue;
		if (now < v->leaving + v->o.end_timeout)
			return;
		chi_verdict_say(v, "%s has finished but does not end; killed",
				chi_worker_name(w, i, name, sizeof name));
	}
	v->done = true;
	v->status = stopped ? CHOIR_CANCELLED : CHOIR_OK;
	snprintf(v->text, sizeof v->text, "%s", stopped ? "the workers have stopped" : "");
	chi_verdict_event(v, now, stopped ? "stopped" : "finished", CHOIR_NONE, NULL);
	end_attempt(v, now);
}

// Nothing more can arrive once all workers have ended.
static bool is_due(const chi_verdict *v, double now)
{
	bool left = false;
	for (int i = 0; i < v->workers; i++)
		left = left || !v->worker[i].ended;
	return v->suspect.grade != CHI_NO_FAILURE && (now >= v->suspect.due || !left);
}

// A spare worker that has twice failed before its first step would do so again.
static void replace_spares(chi_verdict *v, double now)
{
	enum { IDLE = 2 };
	for (int i = v->o.spare_from; chi_verdict_is_spare(v, i); i++) {
		char name[160];
		chi_worker *w = &v->worker[i];
		if (!w->lost || w->due > now || v->stop_number != 0)
			continue;
		const chi_worker old = *w;
		const bool again = w->idle < IDLE;
		w->due = HUGE_VAL;
		if (old.way[0] != '\0' || !again)
			chi_verdict_say(v, "%s %s; %s", chi_worker_name(w, i, name, sizeof name),
					old.way[0] != '\0' ? old.way : "has failed again before its first step",
					again ? "it starts again" : "it does not start again");
		if (again)
			*w = (chi_worker){ .losses = old.losses, .idle = old.idle, .heard = now };
		v->owner.replace(v->owner.user, v->attempt, i, again);
	}
}

static void settle(chi_verdict *v, double now)
{
	if (v->phase == CHI_VERDICT_RUNS && is_due(v, now))
		fail(v, now);
	else if (v->phase == CHI_VERDICT_RUNS && v->suspect.grade == CHI_NO_FAILURE)
		settle_end(v, now);
	if (v->phase == CHI_VERDICT_ENDS && are_gone(v, now))
		go_on(v, now);
	if (v->phase == CHI_VERDICT_PAUSES && v->stop_number != 0)
		over(v, now, CHOIR_CANCELLED);
	if (v->phase == CHI_VERDICT_PAUSES && now >= v->until)
		begin_attempt(v, now);
}

void chi_verdict_begin(chi_verdict *v, double now)
{
	v->ticked = now;
	v->workers = count_workers(v, "");
	if (v->workers == 0) {
		chi_verdict_say(v, "%s", v->text);
		over(v, now, CHOIR_INVALID);
		return;
	}
	begin_attempt(v, now);
	settle(v, now);
}

static chi_worker *find(chi_verdict *v, int attempt, int worker)
{
	const bool known = attempt == v->attempt && worker >= 0 && worker < v->workers &&
			(v->phase == CHI_VERDICT_RUNS || v->phase == CHI_VERDICT_ENDS);
	return known ? &v->worker[worker] : NULL;
}

bool chi_verdict_joined(
		chi_verdict *v, double now, int attempt, int worker, const char *host, long pid)
{
	chi_worker *w = find(v, attempt, worker);
	if (w == NULL || w->joined || v->phase != CHI_VERDICT_RUNS || v->stop_number != 0)
		return false;
	w->joined = true;
	w->pid = pid;
	w->heard = now;
	snprintf(w->host, sizeof w->host, "%s", host);
	chi_verdict_event(v, now, "joined", worker, NULL);
	return true;
}

static void take_report(chi_verdict *v, double now, int worker, const chi_worker_report *r)
{
	chi_worker *w = &v->worker[worker];
	w->report = *r;
	w->heard = now;
	if (r->health.pid > 0)
		w->pid = r->health.pid;
	if (r->health.saved > v->saved)
		v->saved = r->health.saved;
	if (!w->started)
		chi_verdict_event(v, now, "started", worker, NULL);
	w->started = true;
	if (r->health.steps > 0 && !v->first_step) {
		v->first_step = true;
		chi_verdict_event(v, now, "step", worker, NULL);
	}
}

void chi_verdict_heard(
		chi_verdict *v, double now, int attempt, int worker, const chi_worker_report *r)
{
	chi_worker *w = find(v, attempt, worker);
	if (w == NULL || !w->joined || w->ended)
		return;
	take_report(v, now, worker, r);
	if (v->phase != CHI_VERDICT_RUNS)
		return;
	chi_blame_report(v, now, worker);
	settle(v, now);
}

void chi_verdict_ended(chi_verdict *v, double now, int attempt, int worker,
		const chi_worker_report *r, const chi_process_end *end)
{
	chi_worker *w = find(v, attempt, worker);
	if (w == NULL || !w->joined || w->ended)
		return;
	take_report(v, now, worker, r);
	w->ended = true;
	w->end = *end;
	if (v->phase == CHI_VERDICT_RUNS)
		chi_blame_end(v, now, worker);
	settle(v, now);
}

void chi_verdict_gone(
		chi_verdict *v, double now, int attempt, int worker, choir_status status, const char *why)
{
	chi_worker *w = find(v, attempt, worker);
	if (w == NULL || !w->joined || w->gone)
		return;
	w->gone = true;
	if (!w->ended && v->phase == CHI_VERDICT_RUNS) {
		chi_blame(v, now, CHI_CAUSE, worker, "is lost; its agent: %s", why)->external =
				status == CHOIR_END || status == CHOIR_PEER_LOST || status == CHOIR_TIMEOUT;
	}
	settle(v, now);
}

void chi_verdict_launcher_ended(
		chi_verdict *v, double now, int attempt, const char *host, const char *how)
{
	int joined = 0, left = 0;
	if (attempt != v->attempt || v->phase != CHI_VERDICT_RUNS)
		return;
	for (int i = 0; i < v->workers; i++) {
		joined += v->worker[i].joined;
		left += !v->worker[i].ended;
	}
	if (left == 0)
		return;
	const bool alone = joined == 0 || host[0] != '\0';
	chi_failure *f = chi_blame(v, now, alone ? CHI_CAUSE : CHI_LAUNCHER, CHOIR_NONE,
			"%s before all workers had %s", how, joined < v->workers ? "joined" : "ended");
	snprintf(f->host, sizeof f->host, "%s", host);
	settle(v, now);
}

void chi_verdict_stop(chi_verdict *v, double now, int number)
{
	bool again = v->stop_number != 0, joined = false;
	for (int i = 0; i < v->workers; i++)
		joined = joined || v->worker[i].joined;
	again = again || !joined; // nobody has anything to save
	v->stop_number = number;
	if (v->phase == CHI_VERDICT_RUNS && again) {
		v->unsaved = true;
		end_attempt(v, now);
	} else if (v->phase == CHI_VERDICT_RUNS) {
		v->stop_until = now + v->o.stop_timeout;
		chi_verdict_say(v, "stops: the workers have %.0f s to save", v->o.stop_timeout);
		v->owner.stop(v->owner.user);
	}
	settle(v, now);
}

// What was not heard while this process was stopped may lie in its sockets.
static void forgive(chi_verdict *v, double seconds)
{
	for (int i = 0; i < v->workers; i++)
		v->worker[i].heard += seconds;
	v->begun += seconds;
	v->until += seconds;
	v->stop_until += seconds;
	v->suspect.due += seconds;
	v->leaving += seconds;
}

static void check_times(chi_verdict *v, double now)
{
	int joined = 0;
	chi_blame_silence(v, now);
	chi_blame_stall(v, now);
	for (int i = 0; i < v->workers; i++)
		joined += v->worker[i].joined || v->worker[i].losses > 0;
	if (joined < v->workers && now >= v->begun + v->o.start_timeout)
		chi_blame(v, now, CHI_CAUSE, CHOIR_NONE, "%d of %d workers have joined within %.0f s",
				joined, v->workers, v->o.start_timeout)
				->external = true;
	if (v->stop_number != 0 && now >= v->stop_until) {
		v->unsaved = true;
		chi_verdict_say(
				v, "the workers have not stopped within %.0f s; killed", v->o.stop_timeout);
		end_attempt(v, now);
	}
}

void chi_verdict_tick(chi_verdict *v, double now)
{
	if (now - v->ticked > STOPPED)
		forgive(v, now - v->ticked);
	v->ticked = now;
	if (v->phase == CHI_VERDICT_RUNS)
		check_times(v, now);
	settle(v, now);
	if (v->phase == CHI_VERDICT_RUNS && v->leaving == HUGE_VAL &&
			v->suspect.grade == CHI_NO_FAILURE)
		replace_spares(v, now);
}

chi_verdict_phase chi_verdict_now(const chi_verdict *v)
{
	return v->phase;
}

int chi_verdict_attempt(const chi_verdict *v)
{
	return v->attempt;
}

bool chi_verdict_is_spare(const chi_verdict *v, int worker)
{
	return v->o.spare_from > 0 && worker >= v->o.spare_from && worker < v->workers;
}

int chi_verdict_workers(const chi_verdict *v)
{
	return v->workers;
}

bool chi_verdict_has_succeeded(const chi_verdict *v)
{
	return v->done && v->status == CHOIR_OK;
}

choir_status chi_verdict_result(const chi_verdict *v, int *number, const char **text)
{
	*number = v->status == CHOIR_CANCELLED && (v->unsaved || !v->done) ? v->stop_number : 0;
	*text = v->text;
	return v->status;
}

static uint64_t newest_step(const chi_verdict *v)
{
	uint64_t newest = 0;
	for (int i = 0; i < v->workers; i++) {
		const chi_health_note *h = &v->worker[i].report.health;
		if (h->steps > 0 && h->step > newest)
			newest = h->step;
	}
	return newest;
}

void chi_verdict_describe(const chi_verdict *v, double now, bool json, chi_text *out)
{
	static const char *const phases[] = { "runs", "ends", "pauses", "over" };
	if (json)
		chi_text_add(out,
				"{\"phase\": \"%s\", \"attempt\": %d, \"restarts\": %d, \"most_restarts\": %d, "
				"\"seconds\": %.3f, \"workers\": [",
				phases[v->phase], v->attempt, v->restarts, v->o.restarts, now - v->begun);
	else
		chi_text_add(out, "%s: attempt %d for %.0f s, restart %d of %d, %d workers\n",
				phases[v->phase], v->attempt, now - v->begun, v->restarts, v->o.restarts,
				v->workers);
	for (int i = 0; i < v->workers; i++) {
		if (json && i > 0)
			chi_text_add(out, ", ");
		chi_worker_describe(&v->worker[i], i, json, out);
	}
	if (json)
		chi_text_add(out, "]}\n");
}

const char *chi_verdict_progress(const chi_verdict *v, char *out, size_t size)
{
	int here = 0;
	for (int i = 0; i < v->workers; i++)
		here += v->worker[i].joined && !v->worker[i].ended;
	snprintf(out, size, "%d of %d workers, step %" PRIu64, here, v->workers, newest_step(v));
	return out;
}
