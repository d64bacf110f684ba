// Decides when a job starts again (0091): a state machine without processes, connections or a
// clock. The owner reports events with their times and carries out the decisions. A failure waits
// a second for its possible cause.
#pragma once

#include "base/process.h"
#include "base/text.h"
#include "trace/health.h"

enum { CHI_HOST_NAME = 64, CHI_RESTART_POLICY_TEXT = 1024, CHI_MAX_WORKERS = 4096 };
// EX_TEMPFAIL: the program stopped on request, has saved, and can start again.
enum { CHI_EXIT_STOPPED = 75 };

typedef struct {
	int workers, min_workers, restarts;
	double lost_after; // seconds of silence until a worker counts as lost
	double start_timeout; // seconds until all workers have joined
	double stall; // seconds of a collective's wait until the job fails; 0: no limit
	double stop_timeout; // seconds that workers have to stop on request
	double end_timeout; // seconds that finished workers have to exit
	// From this number on workers are spare: a failed one restarts while the others go on.
	int spare_from; // 0: none
} chi_restart_policy_options;

// An agent's report about its worker.
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
	// Ends a spare worker. again: restarts it.
	void (*replace)(void *user, int attempt, int worker, bool again);
} chi_restart_policy_owner;

typedef enum {
	CHI_RESTART_POLICY_RUNS,
	CHI_RESTART_POLICY_ENDS, // kills an attempt's remaining processes
	CHI_RESTART_POLICY_PAUSES, // before the next attempt
	CHI_RESTART_POLICY_OVER
} chi_restart_policy_phase;

typedef struct chi_restart_policy chi_restart_policy;
chi_restart_policy *chi_restart_policy_new(
		const chi_restart_policy_options *o, const chi_restart_policy_owner *owner);
void chi_restart_policy_free(chi_restart_policy *p);

// Events. Earlier attempts and unknown workers are ignored. now never decreases.
void chi_restart_policy_begin(chi_restart_policy *p, double now);
// An agent asks: true: start the worker.
bool chi_restart_policy_joined(
		chi_restart_policy *p, double now, int attempt, int worker, const char *host, long pid);
void chi_restart_policy_heard(
		chi_restart_policy *p, double now, int attempt, int worker, const chi_worker_report *r);
void chi_restart_policy_ended(chi_restart_policy *p, double now, int attempt, int worker,
		const chi_worker_report *r, const chi_process_end *end);
// The worker's agent has ended. status: CHOIR_END after a goodbye; CHOIR_PEER_LOST or
// CHOIR_TIMEOUT without one; else its failure.
void chi_restart_policy_gone(chi_restart_policy *p, double now, int attempt, int worker,
		choir_status status, const char *why);
// A launcher has ended or could not start. host: "": the launcher of all workers.
void chi_restart_policy_launcher_ended(
		chi_restart_policy *p, double now, int attempt, const char *host, const char *how);
// The agent or ssh of a spare worker has ended; no other one starts it.
void chi_restart_policy_spare_ended(
		chi_restart_policy *p, double now, int attempt, int worker, const char *how);
void chi_restart_policy_stop(
		chi_restart_policy *p, double now, int number); // a signal; the second one kills
void chi_restart_policy_tick(chi_restart_policy *p, double now); // at least every quarter second

chi_restart_policy_phase chi_restart_policy_now(const chi_restart_policy *p);
int chi_restart_policy_attempt(const chi_restart_policy *p);
int chi_restart_policy_workers(const chi_restart_policy *p);
bool chi_restart_policy_is_spare(const chi_restart_policy *p, int worker);
uint64_t chi_restart_policy_step(const chi_restart_policy *p); // the newest of all workers
// After the end. CHOIR_OK: every worker has finished. CHOIR_CANCELLED: the job was stopped;
// *number is 0 if the workers have saved, else the signal. Else the failure, with its *text.
choir_status chi_restart_policy_result(
		const chi_restart_policy *p, int *number, const char **text);
bool chi_restart_policy_has_succeeded(const chi_restart_policy *p); // this attempt
// For choir status: lines, or one line of JSON.
void chi_restart_policy_describe(
		const chi_restart_policy *p, double now, bool json, chi_text *out);
// "4 workers, step 1503".
const char *chi_restart_policy_progress(const chi_restart_policy *p, char *out, size_t size);
void chi_restart_policy_say(const chi_restart_policy *p, const char *fmt, ...) CHOIR_PRINTF(2, 3);
void chi_restart_policy_event(
		const chi_restart_policy *p, double now, const char *event, int worker, const char *why);
