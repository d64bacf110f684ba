// The supervisor's loop: reports events to the restart policy, and does what the policy asks.
#include "supervisor/supervisor.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/thread.h"
#include "supervisor/agent_message.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double TURN = 0.1; // seconds between looks at launchers and the time
static const double AGENTS = 0.5; // seconds until agents are killed
static const double END = 10; // seconds for launchers and finished workers to end
enum { LONGEST_LINE = 16384 };

void chi_job_report(
		const choir_supervisor *s, choir_supervisor_kind kind, int worker, const char *line)
{
	if (s->o.report != NULL)
		s->o.report(kind, worker, line, s->o.user);
}

// A line that never ends is cut.
void chi_job_lines(const choir_supervisor *s, choir_supervisor_kind kind, int worker,
		chi_text *text, const char *bytes, size_t n)
{
	chi_text_add_bytes(text, bytes, n);
	size_t from = 0;
	while (text->data != NULL && from < text->length) {
		char *line = text->data + from, *end = memchr(line, '\n', text->length - from);
		if (end == NULL && text->length - from < LONGEST_LINE)
			break;
		const size_t length = end != NULL ? (size_t) (end - line) : text->length - from;
		line[length] = '\0';
		for (char *zero = line;
				(zero = memchr(zero, '\0', length - (size_t) (zero - line))) != NULL;)
			*zero = '?';
		if (length > 0 && line[length - 1] == '\r')
			line[length - 1] = '\0';
		chi_job_report(s, kind, worker, line);
		from += length + (end != NULL);
	}
	if (from == 0)
		return;
	chi_text rest = { 0 };
	chi_text_add_bytes(&rest, text->data + from, text->length - from);
	chi_text_free(text);
	*text = rest;
}

static void start(void *user, int attempt, int workers)
{
	choir_supervisor *s = user;
	(void) attempt, (void) workers;
	s->must_start = true;
}

static void stop(void *user)
{
	choir_supervisor *s = user;
	chi_pack p = { 0 };
	chi_pack_u32(&p, chi_atomic32_load(&s->stop_number));
	chi_job_tell(s, chi_restart_policy_attempt(s->policy), CHI_AGENT_STOP, &p);
	chi_pack_free(&p);
}

static void kill_attempt(void *user)
{
	choir_supervisor *s = user;
	const int attempt = chi_restart_policy_attempt(s->policy);
	s->killed = chi_hub_now(s->hub);
	chi_job_tell(s, attempt, CHI_AGENT_KILL, NULL);
	chi_job_end_launchers(
			s, attempt, s->killed + (chi_restart_policy_has_succeeded(s->policy) ? END : AGENTS));
}

static int capacity(void *user, const char *lost)
{
	choir_supervisor *s = user;
	if (s->o.hosts == NULL)
		return s->o.workers;
	if (chi_hosts_read(&s->hosts, s->o.hosts) != CHOIR_OK) // the earlier list stays
		chi_job_report(s, CHOIR_SUPERVISOR_NOTE, CHOIR_NONE, choir_error());
	chi_hosts_lose(&s->hosts, lost);
	return chi_hosts_capacity(&s->hosts);
}

static void say(void *user, const char *line)
{
	chi_job_report(user, CHOIR_SUPERVISOR_NOTE, CHOIR_NONE, line);
}

static void event(void *user, const char *json)
{
	chi_job_report(user, CHOIR_SUPERVISOR_EVENT, CHOIR_NONE, json);
}

static void replace(void *user, int attempt, int worker, bool again)
{
	choir_supervisor *s = user;
	chi_job_release(s, attempt, worker);
	if (again && chi_job_start_worker(s, attempt, worker) != CHOIR_OK)
		say(s, choir_error());
}

static double or_else(double given, double otherwise)
{
	return given == 0 ? otherwise : given;
}

static choir_status check(choir_supervisor *s)
{
	choir_supervisor_options *o = &s->o;
	const double seconds[] = { o->lost_after, o->start_timeout, o->stall, o->stop_timeout };
	o->workers = o->workers == 0 ? 1 : o->workers;
	o->min_workers = o->min_workers == 0 ? o->workers : o->min_workers;
	if (o->workers < 1 || o->workers > CHI_MAX_WORKERS)
		return choir_fail(CHOIR_INVALID, "supervisor: %d workers given; 1 to %d needed",
				o->workers, CHI_MAX_WORKERS);
	if (o->min_workers < 1 || o->min_workers > o->workers)
		return choir_fail(CHOIR_INVALID, "supervisor: at least %d workers given; 1 to %d needed",
				o->min_workers, o->workers);
	if (o->restarts < 0)
		return choir_fail(
				CHOIR_INVALID, "supervisor: %d restarts given; 0 or more needed", o->restarts);
	for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
		if (!(seconds[i] >= 0 && seconds[i] < HUGE_VAL))
			return choir_fail(CHOIR_INVALID,
					"supervisor: a time of %g seconds given; 0 or more needed", seconds[i]);
	if (o->servers < 0 || (o->servers > 0 && o->min_workers < o->servers + 2))
		return choir_fail(CHOIR_INVALID,
				"supervisor: at least %d workers with %d servers given; a coordinator, the "
				"servers "
				"and at least 1 worker needed",
				o->min_workers, o->servers);
	if (o->program == NULL || o->program[0] == NULL || o->agent == NULL)
		return choir_fail(
				CHOIR_INVALID, "supervisor: no program or no agent given; both are needed");
	o->lost_after = or_else(o->lost_after, 5);
	o->start_timeout = or_else(o->start_timeout, 60);
	o->stop_timeout = or_else(o->stop_timeout, 30);
	return CHOIR_OK;
}

static choir_status copy_program(choir_supervisor *s)
{
	size_t n = 0;
	while (s->o.program[n] != NULL)
		n++;
	s->agent = chi_strdup(s->o.agent);
	s->program = chi_alloc_array(n + 1, sizeof *s->program);
	bool whole = s->agent != NULL && s->program != NULL;
	for (size_t i = 0; whole && i < n; i++) {
		s->program[i] = chi_strdup(s->o.program[i]);
		whole = s->program[i] != NULL;
	}
	return whole ? CHOIR_OK : CHOIR_NO_MEMORY;
}

static choir_status copy_text(const char **text)
{
	if (*text == NULL)
		return CHOIR_OK;
	*text = chi_strdup(*text);
	return *text == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static choir_status copy_texts(choir_supervisor *s)
{
	const char **all[] = { &s->o.hosts, &s->o.mpi, &s->o.launcher, &s->o.address };
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (status == CHOIR_OK)
			status = copy_text(all[i]);
		else
			*all[i] = NULL; // the caller's
	return status;
}

static choir_status make(choir_supervisor *s, const choir_supervisor_options *o)
{
	CHOIR_TRY(chi_options_take("supervisor: the options'", &s->o, sizeof s->o, o));
	CHOIR_TRY(copy_texts(s));
	CHOIR_TRY(check(s));
	CHOIR_TRY(copy_program(s));
	CHOIR_TRY(chi_job_choose(s));
	CHOIR_TRY(chi_hosts_read(&s->hosts, s->o.hosts));
	s->remote = s->hosts.n > 0;
	const chi_restart_policy_owner owner = { s, start, stop, kill_attempt, capacity, say, event,
		replace };
	const chi_restart_policy_options v = { .workers = s->o.workers,
		.min_workers = s->o.min_workers,
		.restarts = s->o.restarts,
		.lost_after = s->o.lost_after,
		.start_timeout = s->o.start_timeout,
		.stall = s->o.stall,
		.stop_timeout = s->o.stop_timeout,
		.end_timeout = END,
		.spare_from = s->o.servers > 0 ? s->o.servers + 1 : 0 };
	s->policy = chi_restart_policy_new(&v, &owner);
	return s->policy == NULL ? CHOIR_NO_MEMORY : chi_job_open_hub(s);
}

choir_supervisor *choir_supervisor_new(const choir_supervisor_options *o)
{
	choir_supervisor *s = chi_alloc(sizeof *s);
	if (s != NULL && make(s, o) != CHOIR_OK) {
		choir_supervisor_free(s);
		return NULL;
	}
	return s;
}

void choir_supervisor_free(choir_supervisor *s)
{
	if (s == NULL)
		return;
	chi_error kept;
	chi_error_save(&kept);
	chi_job_close_hub(s);
	chi_job_free_launchers(s);
	chi_restart_policy_free(s->policy);
	for (size_t i = 0; s->program != NULL && s->program[i] != NULL; i++)
		chi_free(s->program[i]);
	chi_free(s->program);
	chi_free(s->agent);
	chi_free((char *) (uintptr_t) s->o.hosts);
	chi_free((char *) (uintptr_t) s->o.mpi);
	chi_free((char *) (uintptr_t) s->o.launcher);
	chi_free((char *) (uintptr_t) s->o.address);
	chi_free(s);
	chi_error_restore(&kept);
}

static void start_attempt(choir_supervisor *s)
{
	const int attempt = chi_restart_policy_attempt(s->policy);
	s->must_start = false;
	if (chi_job_start(s, attempt, chi_restart_policy_workers(s->policy)) != CHOIR_OK) {
		char text[CHI_RESTART_POLICY_TEXT];
		snprintf(text, sizeof text, "%s, so the start has failed", choir_error());
		chi_restart_policy_launcher_ended(s->policy, chi_hub_now(s->hub), attempt, "", text);
	}
}

static void take_stops(choir_supervisor *s, double now)
{
	const uint32_t asked = chi_atomic32_load(&s->stops);
	for (; s->stops_seen < asked && s->stops_seen < 2; s->stops_seen++)
		chi_restart_policy_stop(s->policy, now, (int) chi_atomic32_load(&s->stop_number));
}

static void show_progress(choir_supervisor *s)
{
	char text[sizeof s->progress];
	chi_restart_policy_progress(s->policy, text, sizeof text);
	if (strcmp(text, s->progress) == 0)
		return;
	memcpy(s->progress, text, sizeof text);
	chi_job_report(s, CHOIR_SUPERVISOR_PROGRESS, CHOIR_NONE, text);
}

// Agents kill their programs and say goodbye. Kills those here that do not answer.
static void end_attempt(choir_supervisor *s, double now)
{
	if (chi_restart_policy_now(s->policy) == CHI_RESTART_POLICY_ENDS && now > s->killed + AGENTS)
		chi_job_kill_all(s);
}

static bool goes_on(const choir_supervisor *s)
{
	return chi_restart_policy_now(s->policy) != CHI_RESTART_POLICY_OVER ||
			chi_job_has_launchers(s);
}

static choir_status turn(choir_supervisor *s)
{
	double now = chi_hub_now(s->hub);
	take_stops(s, now);
	chi_restart_policy_tick(s->policy, now);
	end_attempt(s, now);
	chi_job_look_at_launchers(s, now);
	if (s->must_start)
		start_attempt(s);
	show_progress(s);
	return chi_hub_step(s->hub, now + TURN);
}

// Kills agents that did not say goodbye, and orphans of programs.
static void sweep(void)
{
	enum { TURNS = 100 };
	for (int i = 0; i < TURNS && chi_process_kill_descendants(NULL, 0) > 0; i++) {
		chi_process_reap_orphans(NULL, 0);
		chi_thread_nap(0.01);
	}
	chi_process_reap_orphans(NULL, 0);
}

choir_status choir_supervisor_run(choir_supervisor *s)
{
	int number;
	const char *text;
	if (s == NULL)
		return choir_fail(CHOIR_INVALID, "supervisor: the supervisor is NULL");
	if (s->has_run)
		return choir_fail(
				CHOIR_STATE, "supervisor: this supervisor has run before; make another one");
	s->has_run = true;
	chi_process_adopt_orphans();
	chi_restart_policy_begin(s->policy, chi_hub_now(s->hub));
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK && goes_on(s))
		status = turn(s);
	chi_error failure;
	chi_error_save(&failure);
	sweep();
	if (status != CHOIR_OK) {
		say(s, failure.text);
		chi_error_restore(&failure);
		return status;
	}
	status = chi_restart_policy_result(s->policy, &number, &text);
	return status == CHOIR_OK ? CHOIR_OK : choir_fail(status, "%s", text);
}

// Called in a signal handler, which may write only atomic words.
void choir_supervisor_stop(choir_supervisor *s, int number)
{
	if (s == NULL)
		return;
	chi_atomic32_store(&s->stop_number, (uint32_t) number);
	chi_atomic32_add(&s->stops, 1);
}

int choir_supervisor_unsaved(const choir_supervisor *s)
{
	int number = 0;
	const char *text;
	if (s != NULL)
		(void) chi_restart_policy_result(s->policy, &number, &text);
	return number;
}

const char *choir_supervisor_job(const choir_supervisor *s)
{
	return s == NULL ? "" : s->name;
}
