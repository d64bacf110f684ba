// The state that restart_policy.c and blame.c share.
#pragma once

#include "supervisor/describe_worker.h"

// Of several failures the first one of the lowest grade counts.
typedef enum {
	CHI_CAUSE, // nothing else can have caused it
	CHI_ABORT, // an MPI may have ended it, because another worker has ended
	CHI_OWN_REPORT, // the worker has said so itself
	CHI_DISAGREEMENT, // it has waited for another one, or they differ
	CHI_CONSEQUENCE, // another worker has failed before
	CHI_LAUNCHER, // what started the workers has ended
	CHI_NO_FAILURE
} chi_grade;

typedef struct {
	chi_grade grade;
	int worker; // CHOIR_NONE: none
	double due; // when it counts
	bool external; // not the program's, so it may come again
	bool has_step;
	uint64_t step;
	char host[CHI_HOST_NAME]; // lost with it; "": none
	char way[CHI_RESTART_POLICY_TEXT]; // "was killed by SIGKILL"
} chi_failure;

struct chi_restart_policy {
	chi_restart_policy_options o;
	chi_restart_policy_owner owner;
	chi_restart_policy_phase phase;
	int attempt, workers, restarts; // restarts so far
	int idle; // consecutive failures without a step
	double begun; // this attempt
	double ticked;
	double until; // of ENDS and PAUSES
	double leaving; // when all workers had finished; HUGE_VAL: not yet
	double warned; // when a long wait was reported, or 0
	bool first_step; // of this attempt was reported
	int stop_number; // 0: runs on
	double stop_until;
	bool unsaved; // a worker stopped and did not report a save
	bool done;
	uint64_t saved; // 1 + the newest checkpoint's step
	chi_failure suspect, last; // last: of the attempt before
	chi_failure ignored; // of a higher grade than suspect
	choir_status status;
	char text[CHI_RESTART_POLICY_TEXT];
	chi_worker *worker; // of o.workers
};
