// Decides when a job starts again (0091): a state machine without processes, connections or a
// clock. The owner reports events with their times and carries out the decisions. A failure that
// another one may have caused waits a second for that cause.
#pragma once

#include "base/process.h"
#include "base/text.h"
#include "trace/health.h"

enum { CHI_HOST_NAME = 64, CHI_VERDICT_TEXT = 1024, CHI_MAX_WORKERS = 4096 };
// EX_TEMPFAIL: the program stopped on request, has saved its state, and can be started again.
enum { CHI_EXIT_STOPPED = 75 };

typedef struct {
	int workers, min_workers, restarts;
	double lost_after; // seconds of silence until a worker counts as lost
	double start_timeout; // seconds until all workers have joined
	double stall; // seconds of a collective's wait until the job fails; 0: no limit
	double stop_timeout; // seconds that workers have to stop on request
	double end_timeout; // seconds that finished workers have to exit
	// Workers from this number on are spare: one that fails starts again while the others go on.
	int spare_from; // 0: none
} chi_verdict_options;

// What an agent reports about its worker.
typedef struct {
	chi_health_note health;
	double silence; // seconds since the worker's last heartbeat
	double unchanged; // seconds since its step or its wait changed
	bool out_of_memory; // the host has killed processes for lack of memory
} chi_worker_report;

// The owner's actions, which must not call back.
typedef struct {
	void *user;
	// attempt: from 1.
	void (*start)(void *user, int attempt, int workers);
	void (*stop)(void *user); // asks all workers to stop after their step
	void (*kill)(void *user); // also the launchers
	// The hosts' capacity in workers. lost: a host not to use again, or "".
	int (*capacity)(void *user, const char *lost);
	void (*say)(void *user, const char *line);
	// Failures of workers and other events, each one JSON object.
	void (*event)(void *user, const char *json);
	// Ends a spare worker. again: starts it again.
	void (*replace)(void *user, int attempt, int worker, bool again);
} chi_verdict_owner;

typedef enum {
	CHI_VERDICT_RUNS,
	CHI_VERDICT_ENDS, // kills an attempt's remaining processes
	CHI_VERDICT_PAUSES, // before the next attempt
	CHI_VERDICT_OVER
} chi_verdict_phase;

typedef struct chi_verdict chi_verdict;
chi_verdict *chi_verdict_new(const chi_verdict_options *o, const chi_verdict_owner *owner);
void chi_verdict_free(chi_verdict *v);

// Events. Those of an earlier attempt or an unknown worker are ignored. now never decreases.
void chi_verdict_begin(chi_verdict *v, double now);
// An agent asks: true: start the worker.
bool chi_verdict_joined(
		chi_verdict *v, double now, int attempt, int worker, const char *host, long pid);
void chi_verdict_heard(
		chi_verdict *v, double now, int attempt, int worker, const chi_worker_report *r);
void chi_verdict_ended(chi_verdict *v, double now, int attempt, int worker,
		const chi_worker_report *r, const chi_process_end *end);
// The worker's agent has ended. status: CHOIR_END after a goodbye; CHOIR_PEER_LOST or
// CHOIR_TIMEOUT without one; else its failure, with the reason why.
void chi_verdict_gone(
		chi_verdict *v, double now, int attempt, int worker, choir_status status, const char *why);
// A launcher has ended or could not start. host: "": the launcher of all workers.
void chi_verdict_launcher_ended(
		chi_verdict *v, double now, int attempt, const char *host, const char *how);
void chi_verdict_stop(chi_verdict *v, double now, int number); // a signal; the second one kills
void chi_verdict_tick(chi_verdict *v, double now); // at least every quarter second

chi_verdict_phase chi_verdict_now(const chi_verdict *v);
int chi_verdict_attempt(const chi_verdict *v);
int chi_verdict_workers(const chi_verdict *v);
bool chi_verdict_is_spare(const chi_verdict *v, int worker);
// After the end. CHOIR_OK: every worker has finished. CHOIR_CANCELLED: the job was stopped;
// *number is 0 if the workers have saved, else the signal. Else the failure, with its *text.
choir_status chi_verdict_result(const chi_verdict *v, int *number, const char **text);
bool chi_verdict_has_succeeded(const chi_verdict *v); // this attempt
// For choir status: lines, or one line of JSON.
void chi_verdict_describe(const chi_verdict *v, double now, bool json, chi_text *out);
// "4 workers, step 1503".
const char *chi_verdict_progress(const chi_verdict *v, char *out, size_t size);
void chi_verdict_say(const chi_verdict *v, const char *fmt, ...) CHOIR_PRINTF(2, 3);
void chi_verdict_event(
		const chi_verdict *v, double now, const char *event, int worker, const char *why);
