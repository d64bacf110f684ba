// A worker's state, and its reads from the servers. The network thread's lock protects what the
// main thread shares.
#pragma once

#include "coordinator/push_pull_messages.h"
#include "coordinator/network_thread.h"
#include "coordinator/protocol.h"
#include "coordinator/task.h"

#include "base/process_memory.h"

typedef struct {
	bool whole; // read whole once, so each run begins with it
	uint64_t fetched; // the last run with rows of it
	uint64_t *row; // the last run that fetched each; or NULL
} chi_remote_part;

typedef struct {
	chi_peer *peer;
	int64_t pid;
	uint64_t incarnation;
	uint64_t open; // address of chi_open_values; 0: values come by messages
	uint64_t version; // of the values here, or 0
	uint64_t pulled; // version of the last values or rows read
	uint64_t ordinal; // of the closure's next change
	bool pulls; // awaits values
	size_t awaited;
	bool reads; // this process's memory
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

// The running closure.
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
	chi_network_thread network;
	chi_remote remote;
	chi_peer *coordinator;
	int number, servers;
	chi_remote_server server[CHI_SERVERS_MAX];
	chi_remote_part *part; // of the model's variables
	uint64_t run; // counts refreshes
	bool fetching; // by a replica
	chi_staleness staleness; // of this closure's pushes
	bool welcome, ended; // ended: a connection is lost, as end says
	chi_error end;
	chi_error answer; // the first failure
	chi_atomic64 token; // of the offered message, or 0
	uint64_t tokens;
	uint64_t *address; // of a server's values
	chi_process_memory_part *memory;
	size_t addresses, memory_capacity;
	chi_waiting_closure *first, **last; // closures
	chi_named_dataset *datasets;
	chi_named_values *values;
	choir_closure closure;
};

// With the lock. Fails if a connection is lost.
choir_status chi_worker_check(chi_remote_worker *w);
// Of chi_remote (strategy/remote_variables.h).
choir_status chi_worker_refresh(void *worker);
choir_status chi_worker_fetch(void *worker, choir_variable *v, int64_t n, const int64_t row[]);
