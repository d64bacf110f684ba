// The state of a worker that serves a coordinator, and how it gets values from the servers. What
// the thread and the main thread share is protected by the post's lock.
#pragma once

#include "coordinator/push_pull_messages.h"
#include "coordinator/network_thread.h"
#include "coordinator/protocol.h"
#include "coordinator/task.h"

#include "base/process_memory.h"

// A variable of the job.
typedef struct {
	bool whole; // was read whole, so each run begins with it
	uint64_t fetched; // the run that has rows of it
	uint64_t *row; // the run that has fetched it; NULL: none
} chi_remote_part;

typedef struct {
	chi_peer *peer;
	int64_t pid;
	uint64_t incarnation;
	uint64_t open; // address of its chi_open_values; 0: its values come by messages
	uint64_t version; // of the values here; 0: none
	uint64_t pulled; // version of the last values that were read, also of rows
	uint64_t ordinal; // of the closure's next change
	bool pulls; // awaits values
	size_t awaited; // answers to changes
	bool reads; // it may read this process's memory
	chi_pack values;
} chi_remote_server;

typedef struct chi_named_dataset {
	struct chi_named_dataset *next;
	int function;
	choir_distributed_dataset *data;
} chi_named_dataset;

typedef struct chi_named_values {
	struct chi_named_values *next;
	int function;
	choir_values *set;
} chi_named_values;

typedef struct chi_remote_worker chi_remote_worker;

// The closure that runs.
struct choir_closure {
	chi_remote_worker *worker;
	uint64_t id; // 0: none
	int attempt;
	choir_values *args, *results;
};

typedef struct chi_waiting_closure {
	struct chi_waiting_closure *next;
	chi_pack pack;
} chi_waiting_closure;

struct chi_remote_worker {
	choir_task *task;
	const choir_coordinator_options *o;
	choir_strategy *strategy;
	chi_job_model model;
	chi_post post;
	chi_remote remote;
	chi_peer *coordinator;
	int number, servers;
	chi_remote_server server[CHI_SERVERS_MAX];
	chi_remote_part *part; // of the model's variables
	uint64_t run; // counts refreshes
	bool fetching; // a replica awaits rows
	chi_staleness staleness; // of this closure's pushes
	bool welcome, ended; // ended: a connection is lost: end
	chi_error end;
	chi_error answer; // the first failure
	chi_atomic64 token; // of the message that is offered; 0: none
	uint64_t tokens;
	uint64_t *address; // of a server's values
	chi_process_memory_part *memory;
	size_t addresses, memory_capacity;
	chi_waiting_closure *first, **last; // closures
	chi_named_dataset *datasets;
	chi_named_values *values;
	choir_closure closure;
};

// With the lock: fails if a connection is lost.
choir_status chi_worker_check(chi_remote_worker *w);
// Of chi_remote (strategy/remote_variables.h).
choir_status chi_worker_refresh(void *worker);
choir_status chi_worker_fetch(void *worker, choir_variable *v, int64_t n, const int64_t row[]);
