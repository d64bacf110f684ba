// The judge of a job (0091): a state machine without processes, connections or a clock. Its owner
// tells it what has happened and when, and it tells the owner what to do. A failure that may
// follow from another one waits a second for its cause.
#pragma once

#include "base/process.h"
#include "base/text.h"
#include "trace/health.h"

enum { CHI_HOST_NAME = 64, CHI_VERDICT_TEXT = 1024, CHI_MAX_WORKERS = 4096 };
// EX_TEMPFAIL: a program that was asked to stop has saved its state, and can be started again.
enum { CHI_EXIT_STOPPED = 75 };

typedef struct {
	int workers, min_workers, restarts;
	double lost_after; // seconds without a heartbeat, then a worker is lost
	double start_timeout; // seconds until all workers have joined
	double stall; // seconds of waiting in a collective, then the job fails; 0: no limit
	double stop_timeout; // seconds that workers have to stop after the owner was asked to
	double end_timeout; // seconds that workers have to exit after they have finished
	// Workers from this number on are spare: if one fails, the others go on, and it starts again.
	int spare_from; // 0: none
} chi_verdict_options;

// What an agent reports about its worker.
typedef struct {
	chi_health_note health;
	double silence; // seconds since the worker's last heartbeat
	double unchanged; // seconds since its step or its wait changed
	bool out_of_memory; // the system has killed processes of its host for memory
} chi_worker_report;

// What the verdict asks its owner to do. None may call the verdict.
typedef struct {
	void *user;
	// Begins an attempt, numbered from 1, with this many workers.
	void (*start)(void *user, int attempt, int workers);
	void (*stop)(void *user); // asks all workers to stop after their step
	void (*kill)(void *user); // kills all workers, and what started them
	// How many workers the hosts have room for. lost: a host not to use again, or "".
	int (*capacity)(void *user, const char *lost);
	void (*say)(void *user, const char *line);
	// A worker's failure, as one JSON object, and other events.
	void (*event)(void *user, const char *json);
	// Ends what is left of a spare worker. again: and starts it again.
	void (*replace)(void *user, int attempt, int worker, bool again);
} chi_verdict_owner;

typedef enum {
	CHI_VERDICT_RUNS,
	CHI_VERDICT_ENDS, // kills what is left of an attempt
	CHI_VERDICT_PAUSES, // before the next attempt
	CHI_VERDICT_OVER
} chi_verdict_phase;

typedef struct chi_verdict chi_verdict;
chi_verdict *chi_verdict_new(const chi_verdict_options *o, const chi_verdict_owner *owner);
void chi_verdict_free(chi_verdict *v);

// What has happened. Reports about an earlier attempt or an unknown worker are ignored. now never
// decreases.
void chi_verdict_begin(chi_verdict *v, double now); // begins the first attempt
// An agent asks whether to start its worker now.
bool chi_verdict_joined(
		chi_verdict *v, double now, int attempt, int worker, const char *host, long pid);
void chi_verdict_heard(
		chi_verdict *v, double now, int attempt, int worker, const chi_worker_report *r);
// The worker's process has ended.
void chi_verdict_ended(chi_verdict *v, double now, int attempt, int worker,
		const chi_worker_report *r, const chi_process_end *end);
// The worker's agent has ended. status: CHOIR_END after a goodbye; CHOIR_PEER_LOST or
// CHOIR_TIMEOUT without one; else what it could not do, for the reason why.
void chi_verdict_gone(
		chi_verdict *v, double now, int attempt, int worker, choir_status status, const char *why);
// A launcher of the attempt has ended or could not start. host: "" if it has started them all.
void chi_verdict_launcher_ended(
		chi_verdict *v, double now, int attempt, const char *host, const char *how);
void chi_verdict_stop(chi_verdict *v, double now, int number); // by a signal; the second one kills
void chi_verdict_tick(chi_verdict *v, double now); // time passes; at least every quarter second

chi_verdict_phase chi_verdict_now(const chi_verdict *v);
int chi_verdict_attempt(const chi_verdict *v);
int chi_verdict_workers(const chi_verdict *v); // of this attempt
bool chi_verdict_is_spare(const chi_verdict *v, int worker);
// After the end: CHOIR_OK: every worker has finished. CHOIR_CANCELLED: it was stopped; *number is
// then 0 if the workers have saved, else the signal. Else the failure. *text is its sentence.
choir_status chi_verdict_result(const chi_verdict *v, int *number, const char **text);
bool chi_verdict_has_succeeded(const chi_verdict *v); // this attempt
// Adds what choir status shows: lines, or one line of JSON.
void chi_verdict_describe(const chi_verdict *v, double now, bool json, chi_text *out);
// Writes the progress line: "4 workers, step 1503".
const char *chi_verdict_progress(const chi_verdict *v, char *out, size_t size);
// Says and reports one line of the verdict's.
void chi_verdict_say(const chi_verdict *v, const char *fmt, ...) CHOIR_PRINTF(2, 3);
void chi_verdict_event(
		const chi_verdict *v, double now, const char *event, int worker, const char *why);
