// Finds the worker that failed first. A killed worker is the cause. A worker that reports
// another's failure is not, so its report waits for a cause. MPIs abort workers whose peer has
// ended within milliseconds, so an abort or an exit waits, too.
#include "supervisor/blame.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

// Seconds in which a cause can still arrive.
static const double CONSEQUENCES = 1, ABORTS = 0.25;
static const double LONG_WAIT = 10; // seconds, then a wait is reported

// If the job fails or ends within the pause, this was a consequence.
static void lose_spare(chi_restart_policy *p, double now, int worker, const char *way)
{
	char name[160];
	chi_worker *w = &p->worker[worker];
	if (w->lost)
		return;
	w->lost = w->ended = true;
	w->losses++;
	const bool outside = w->end.by_signal && !w->report.out_of_memory &&
			(w->end.number == SIGKILL || w->end.number == SIGTERM);
	w->idle = w->report.health.steps > 0 || outside ? 0 : w->idle + 1;
	w->due = now + CONSEQUENCES;
	chi_restart_policy_event(p, now, "lost", worker, way);
	w->way[0] = '\0';
	if (!w->end.by_signal)
		chi_text_fit(way, w->way, sizeof w->way);
	if (w->end.by_signal && p->stop_number == 0)
		chi_restart_policy_say(p, "%s %s; the other workers go on",
				chi_worker_name(w, worker, name, sizeof name), way);
}

// It makes no steps, so the job's newest counts.
static bool is_server(const chi_restart_policy *p, int worker)
{
	return worker > 0 && worker < p->o.spare_from;
}

chi_failure *chi_blame(
		chi_restart_policy *p, double now, chi_grade grade, int worker, const char *fmt, ...)
{
	chi_failure *f = &p->suspect;
	if (chi_restart_policy_is_spare(p, worker)) {
		char way[CHI_RESTART_POLICY_TEXT];
		va_list of_spare;
		va_start(of_spare, fmt);
		(void) chi_text_format(way, sizeof way, fmt, of_spare);
		va_end(of_spare);
		lose_spare(p, now, worker, way);
		return &p->ignored;
	}
	if (grade >= f->grade)
		return &p->ignored;
	const double wait = grade == CHI_CAUSE ? 0 : grade == CHI_ABORT ? ABORTS : CONSEQUENCES;
	const double due = f->grade == CHI_NO_FAILURE ? HUGE_VAL : f->due;
	*f = (chi_failure){ .grade = grade, .worker = worker, .due = fmin(due, now + wait) };
	va_list args;
	va_start(args, fmt);
	(void) chi_text_format(f->way, sizeof f->way, fmt, args);
	va_end(args);
	if (worker < 0)
		return f;
	const chi_health_note *h = &p->worker[worker].report.health;
	f->step = is_server(p, worker) ? chi_restart_policy_step(p) : h->step;
	f->has_step = is_server(p, worker) ? p->first_step : h->steps > 0;
	return f;
}

static chi_grade grade_of(const chi_health_note *h)
{
	if (h->by_other || h->status == CHOIR_CANCELLED)
		return CHI_CONSEQUENCE;
	const bool other = h->status == CHOIR_TIMEOUT || h->status == CHOIR_PEER_LOST;
	return other ? CHI_DISAGREEMENT : CHI_OWN_REPORT;
}

void chi_blame_report(chi_restart_policy *p, double now, int worker)
{
	const chi_worker *w = &p->worker[worker];
	const chi_health_note *h = &w->report.health;
	if (h->state == CHI_HEALTH_FAILED && (w->ended || !chi_restart_policy_is_spare(p, worker)))
		chi_blame(p, now, grade_of(h), worker, "failed: %s", h->text);
}

void chi_blame_end(chi_restart_policy *p, double now, int worker)
{
	chi_worker *w = &p->worker[worker];
	const chi_health_note *h = &w->report.health;
	const chi_process_end *end = &w->end;
	char how[64];
	chi_process_end_text(end, how, sizeof how);
	const bool in_order = !end->by_signal && h->state == CHI_HEALTH_FINISHED;
	w->finished = in_order && end->number == 0;
	w->stopped = in_order && end->number == CHI_EXIT_STOPPED;
	if (w->finished || w->stopped)
		return;
	p->unsaved = p->unsaved || !chi_restart_policy_is_spare(p, worker);
	if (p->stop_number != 0 && end->by_signal && end->number == SIGTERM)
		return;
	const bool alone = p->workers == 1;
	const chi_grade grade =
			alone || (end->by_signal && end->number != SIGABRT) ? CHI_CAUSE : CHI_ABORT;
	if (end->by_signal) {
		const bool outside = end->number == SIGKILL || end->number == SIGTERM;
		const bool memory = end->number == SIGKILL && w->report.out_of_memory;
		chi_failure *f = chi_blame(p, now, grade, worker, "died: %s%s", how,
				memory ? ", as its host has run out of memory" : "");
		f->external = outside && !memory;
	} else if (h->state == CHI_HEALTH_FAILED) {
		chi_blame_report(p, now, worker);
		if (p->suspect.worker == worker && p->suspect.grade <= CHI_OWN_REPORT)
			p->suspect.due = now; // it reports nothing more
	} else if (h->state == CHI_HEALTH_FINISHED) {
		chi_blame(p, now, grade, worker, "%s after it had left its cluster", how);
	} else {
		chi_blame(p, now, grade, worker, "%s %s", how,
				h->state == CHI_HEALTH_NEW ? "without opening a cluster (choir_cluster_new)"
										   : "before it had left its cluster");
	}
}

static double silence_of(const chi_restart_policy *p, int worker, double now)
{
	const chi_worker *w = &p->worker[worker];
	if (!w->joined || w->ended)
		return 0;
	const double agent = now - w->heard;
	return w->report.health.state == CHI_HEALTH_OPEN ? agent + w->report.silence : agent;
}

// True: the host has several workers, and all are silent.
static bool is_host_silent(
		const chi_restart_policy *p, int worker, double now, char *list, size_t size)
{
	const double nearly = p->o.lost_after - p->o.lost_after / 5;
	int several = 0;
	size_t at = 0;
	list[0] = '\0';
	for (int i = 0; i < p->workers; i++) {
		const chi_worker *w = &p->worker[i];
		if (!w->joined || w->ended || strcmp(w->host, p->worker[worker].host) != 0)
			continue;
		char number[16];
		if (silence_of(p, i, now) < nearly)
			return false;
		snprintf(number, sizeof number, "%s%d", several > 0 ? " " : "", i);
		at = chi_text_append(list, size, at, number);
		several++;
	}
	return several > 1;
}

void chi_blame_silence(chi_restart_policy *p, double now)
{
	for (int i = 0; i < p->workers; i++) {
		const double silence = silence_of(p, i, now);
		char list[200];
		if (silence < p->o.lost_after)
			continue;
		const chi_worker *w = &p->worker[i];
		const bool agent = now - w->heard > p->o.lost_after / 2;
		chi_failure *f;
		if (agent && is_host_silent(p, i, now, list, sizeof list))
			f = chi_blame(p, now, CHI_CAUSE, i,
					"sent no heartbeat for %.1f s, as all workers of host %s: %s", silence,
					w->host, list);
		else
			f = chi_blame(p, now, CHI_CAUSE, i, "sent no heartbeat for %.1f s (%s)", silence,
					agent ? "its agent or its host is stopped or lost" : "it is stopped");
		f->external = true;
		if (agent)
			snprintf(f->host, sizeof f->host, "%s", w->host);
		return;
	}
}

// The awaited worker that does not wait itself. CHOIR_NONE: all workers wait, or none.
static int find_missing(const chi_restart_policy *p, double *longest)
{
	int missing = CHOIR_NONE;
	*longest = 0;
	for (int i = 0; i < p->workers; i++) {
		const chi_worker *w = &p->worker[i];
		if (!w->joined || w->ended)
			continue;
		if (!w->report.health.waiting)
			missing = i;
		else if (w->report.unchanged > *longest)
			*longest = w->report.unchanged;
	}
	return missing;
}

void chi_blame_stall(chi_restart_policy *p, double now)
{
	char list[200], name[160], place[CHI_HEALTH_WHAT + 160];
	double longest;
	const int missing = find_missing(p, &longest);
	if (longest < LONG_WAIT)
		p->warned = 0;
	if (missing < 0 || longest == 0)
		return;
	const chi_worker *w = &p->worker[missing];
	if (p->o.stall > 0 && longest >= p->o.stall)
		chi_blame(p, now, CHI_CAUSE, missing, "keeps other workers waiting for %.1f s", longest);
	else if (longest >= LONG_WAIT && p->warned == 0) {
		p->warned = now;
		chi_restart_policy_say(p, "workers %s have waited up to %.0f s for %s, which is %s %s",
				chi_blame_waiting(p, missing, list, sizeof list), longest,
				chi_worker_name(w, missing, name, sizeof name), chi_worker_state(w),
				chi_worker_place(w, place, sizeof place));
	}
}

const char *chi_blame_waiting(const chi_restart_policy *p, int except, char *out, size_t size)
{
	size_t at = 0;
	out[0] = '\0';
	for (int i = 0; i < p->workers; i++) {
		char number[16];
		const chi_worker *w = &p->worker[i];
		if (i == except || !w->joined || w->ended || !w->report.health.waiting)
			continue;
		snprintf(number, sizeof number, "%s%d", at > 0 ? " " : "", i);
		at = chi_text_append(out, size, at, number);
	}
	return out;
}

// Process numbers differ between attempts.
static const char *next_kept(const char *s)
{
	if (strncmp(s, "pid ", 4) == 0)
		s += 4 + strspn(s + 4, "0123456789");
	return s;
}

bool chi_blame_is_same(const chi_failure *a, const chi_failure *b)
{
	if (a->grade == CHI_NO_FAILURE || b->grade == CHI_NO_FAILURE || a->external || b->external ||
			a->worker != b->worker || a->has_step != b->has_step || a->step != b->step)
		return false;
	const char *x = a->way, *y = b->way;
	for (;; x++, y++) {
		x = next_kept(x);
		y = next_kept(y);
		if (*x != *y || *x == '\0')
			return *x == *y;
	}
}

void chi_blame_say(const chi_restart_policy *p, char *out, size_t size)
{
	const chi_failure *f = &p->suspect;
	char name[160], place[CHI_HEALTH_WHAT + 160];
	if (f->worker < 0) {
		snprintf(out, size, "%s", f->way);
		return;
	}
	const chi_worker *w = &p->worker[f->worker];
	chi_worker_name(w, f->worker, name, sizeof name);
	if (is_server(p, f->worker) && f->has_step)
		snprintf(out, size, "%s %s; the job was in step %" PRIu64, name, f->way, f->step);
	else
		snprintf(out, size, "%s %s%s%s", name, f->way, w->joined ? "; it was " : "",
				w->joined ? chi_worker_place(w, place, sizeof place) : "");
}
