// The coordinator: one program schedules closures on workers that come and go, and keeps what they
// train on parameter servers (TensorFlow's ClusterCoordinator and ParameterServerStrategy). All
// processes run the same program, and its task says what a process is. A C function does not
// travel, so closures are named in a table that is the same in all processes.
//
// The coordinator, the workers and the servers each make the same variables and optimizers, by one
// function of the program (.build). The values are then those of the servers: variable i, or shard
// i, belongs to server i modulo the number of servers. Each run of a worker begins with the
// servers' values. An update of a worker's optimizer is sent to the servers, which apply it with
// their optimizer. assign, assign_add and assign_sub in a closure are sent, too. They happen on
// the servers exactly once for each closure, even if the closure runs again because a worker died.
// Everything else that a closure does may happen several times. ON_READ variables stay in each
// worker. Update functions and scatters in a closure are CHOIR_UNSUPPORTED. Each process has
// memory for all variables.
//
// Errors: messages of another key, program or table never get in; the process that has them fails
// with the difference. A lost server ends the job: all calls fail with CHOIR_PEER_LOST and its
// name. Threads: one thread uses a coordinator. Workers and coordinators have one more thread,
// which sends and receives.
#pragma once

#include "input.h"

CHOIR_C_BEGIN

// Tasks

typedef struct choir_task choir_task; // TensorFlow's ClusterResolver

// The task of this process in the job.
typedef struct {
	size_t size;
	// "coordinator", "worker" or "ps". NULL: TF_CONFIG decides all fields up to .servers; its
	// chief is the coordinator.
	const char *type;
	int index; // of a ps
	// Where the coordinator listens: "unix:/run/job/socket", "127.0.0.1:7000" or "host:7000".
	const char *address;
	const char *ps_address; // where this ps listens for workers
	int servers; // coordinator: the number of ps tasks, 1 to 16
	// A file with the job's key, which only its owner can read (choir_task_make_key, choir key).
	// Needed for TCP. NULL: the environment variable CHOIR_KEY_FILE, if set.
	const char *key_file;
	// On: nothing is encrypted, because the network is trusted. Both ends still prove the key. The
	// bytes of Unix sockets and of loopback are never encrypted.
	choir_toggle plain;
	double start_timeout; // seconds until the coordinator, the servers, a worker are there; 0: 60
	double heartbeat; // seconds between heartbeats; 0: 0.5
	double lost_after; // seconds without a heartbeat, then a process counts as lost; 0: 5
} choir_task_options;

// CHOIR_INVALID: no type in o or TF_CONFIG; an address, index or time out of range; a key file
// that others can read. CHOIR_NOT_FOUND: no key file; no libchoir-net. CHOIR_UNSUPPORTED: TCP in a
// build without OpenSSL.
choir_task *choir_task_new(const choir_task_options *o);
void choir_task_free(choir_task *t); // after its coordinator
const char *choir_task_type(const choir_task *t); // "coordinator", "worker", "ps"
int choir_task_index(const choir_task *t);
// Writes a new key of 32 random bytes to path, with mode 600. CHOIR_STATE: the file exists.
CHOIR_MUST_CHECK choir_status choir_task_make_key(const char *path);

// Closures

typedef struct choir_closure choir_closure; // one call of a function on a worker

// The function of a closure, called on a worker. Its failure is the closure's.
typedef choir_status choir_closure_fn(choir_closure *c, void *user);

choir_strategy *choir_closure_strategy(choir_closure *c); // the worker's, for its runs
// The arguments that were scheduled. The set is valid until the function returns.
choir_values *choir_closure_args(choir_closure *c);
// Sets a leaf of the closure's result. The tensor is copied. A NULL value is its own failure.
CHOIR_MUST_CHECK choir_status choir_closure_return(
		choir_closure *c, const char *name, choir_tensor *value);
// The worker's dataset, made by the function called name when a closure first asks for it
// (TensorFlow's create_per_worker_dataset). A worker that comes back begins at its start. It
// belongs to the worker. CHOIR_NOT_FOUND: no such function.
choir_distributed_dataset *choir_closure_dataset(choir_closure *c, const char *name);
int choir_closure_worker(const choir_closure *c); // the worker's number
int choir_closure_attempt(const choir_closure *c); // 1, and 1 more after each lost worker

// A function of the table: a closure's, or that of a dataset. Set one of the two.
typedef struct {
	const char *name;
	choir_closure_fn *fn;
	choir_dataset_fn *dataset;
} choir_function;

// Makes layers and optimizers in s. All processes call it once, and make the same variables in the
// same order.
typedef choir_status choir_build_fn(choir_strategy *s, void *user);

// What all processes of a job have in common.
typedef struct {
	size_t size;
	const choir_function *functions; // ends with a NULL name; must be valid as long as the job
	choir_build_fn *build;
	void *user; // of build and the functions, in this process
	// Text that must be equal in all processes. NULL: the content of the program's file.
	const char *program;
	int queue; // closures that wait; schedule blocks where there are more; 0: 262144
	int window; // closures that a worker has beside the running one; 0: 1; CHOIR_ZERO: none
	int attempts; // a closure fails after so many lost workers; 0: 8
} choir_coordinator_options;

// Serves as the worker or ps of the task, until the job ends: CHOIR_OK after the coordinator was
// freed. options: of the process's parameter server strategy, .workers must be 0 or 1; the seed,
// .replicas and shards must be the coordinator's. CHOIR_PEER_LOST: the coordinator is lost, or has
// given this process up; a worker may then serve again. CHOIR_STATE: another program, build or
// table than the coordinator's. CHOIR_TIMEOUT: no coordinator within .start_timeout.
CHOIR_MUST_CHECK choir_status choir_task_serve(
		choir_task *t, const choir_strategy_options *options, const choir_coordinator_options *o);

// Coordinators

typedef struct choir_coordinator choir_coordinator;
typedef struct choir_remote_value choir_remote_value;

// Makes the coordinator of a parameter server strategy, calls .build, and waits for the servers
// and the first worker. From here on s's variables are on the servers: a read, a save or an
// assignment of the program first fetches all values, slots and counters in one consistent step,
// between two closures. So choir_strategy_save and checkpoints keep what the servers have, and
// after a restore the servers have what was restored. CHOIR_INVALID: another kind of strategy, or
// several .workers; an empty table. CHOIR_STATE: s has variables or a coordinator; the address is
// in use. CHOIR_TIMEOUT: a server or the first worker did not come.
choir_coordinator *choir_coordinator_new(
		choir_strategy *s, choir_task *t, const choir_coordinator_options *o);
// Ends the job: workers and servers return. Waits at most 2 seconds. The variables of s keep the
// values that were fetched last.
void choir_coordinator_free(choir_coordinator *c);

// Schedules a call of the function called name on some worker, and returns at once. args: plain
// tensors, which are copied, or NULL. *value becomes a handle of the result; value may be NULL.
// Waits while the queue is full. If an earlier closure has failed, fails with its failure, once:
// then all closures that were waiting, and this one, are CHOIR_CANCELLED. CHOIR_NOT_FOUND: no such
// function.
CHOIR_MUST_CHECK choir_status choir_coordinator_schedule(
		choir_coordinator *c, const char *name, choir_values *args, choir_remote_value **value);
// Waits until no closure waits or runs. Fails like schedule. CHOIR_TIMEOUT: closures wait, but
// there has been no worker for .start_timeout.
CHOIR_MUST_CHECK choir_status choir_coordinator_join(choir_coordinator *c);
// The same without waiting. *done: no closure waits or runs.
CHOIR_MUST_CHECK choir_status choir_coordinator_done(choir_coordinator *c, bool *done);
// Waits for a closure's result, a set that belongs to value. A result stays when its worker is
// lost. Fails with the closure's own failure. CHOIR_CANCELLED: schedule it again.
CHOIR_MUST_CHECK choir_status choir_coordinator_fetch(
		choir_coordinator *c, choir_remote_value *value, choir_values **result);
void choir_remote_value_free(choir_remote_value *v); // before its coordinator
int choir_coordinator_workers(const choir_coordinator *c); // workers that are there now

CHOIR_C_END
