// The coordinator: one process schedules closures on workers, and parameter servers (ps) keep the
// variables (TensorFlow's ClusterCoordinator and ParameterServerStrategy). Workers may join and
// leave at any time. All processes run the same program. The task of a process says whether it is
// the coordinator, a worker or a server. A C function cannot be sent to another process. So a
// closure has a name in a table of functions, which is the same in all processes.
//
// In each process, the function .build of the program makes the same variables and optimizers. The
// servers then have the values. Variables and shards are numbered together from 0, without ON_READ
// variables. Number i is on server i modulo the number of servers. Each run of a worker begins
// with the servers' values of the variables that it has read before. If a variable is only read by
// rows, as in an embedding, only these rows and the rows of its gradient are sent. A row is
// fetched when a run first reads it. A worker sends its gradients to the servers, and their
// optimizers apply them. The assign, assign_add and assign_sub calls of a closure are sent, too.
// The servers apply all of these changes exactly once for each closure, even if the closure runs
// again because a worker was lost. Everything else that a closure does may happen several times.
// ON_READ variables stay in each worker. Each process has memory for all variables.
//
// Errors: a process with another key, program or table cannot join the job. It fails, and the text
// says what differs. If a server is lost, the job ends: all calls fail with CHOIR_PEER_LOST, and
// the text names the server. CHOIR_UNSUPPORTED: an update function or a scatter in a closure; a
// dynamic loss scale; with several servers, global_clip_norm or CHOIR_NONFINITE_SKIP.
// Threads: one thread uses a coordinator. Workers and coordinators have one more thread, which
// sends and receives.
#pragma once

#include "input.h"

CHOIR_C_BEGIN

// Tasks

typedef struct choir_task choir_task; // TensorFlow's ClusterResolver

// The task of this process in the job.
typedef struct {
	size_t size;
	// "coordinator", "worker" or "ps". NULL: the environment sets this field and the fields up to
	// .servers. TF_CONFIG, if it has ps tasks; its chief is the coordinator. Or CHOIR_TASK:
	// SERVERS@ADDRESS. Process 0 is then the coordinator, the next ones are the servers. The
	// process's number is in CHOIR_WORKER, or comes from the launcher.
	const char *type;
	int index; // of this ps, from 0
	// The address at which the coordinator listens: "unix:/run/job/socket", "127.0.0.1:7000" or
	// "host:7000".
	const char *address;
	const char *ps_address; // the address at which this ps listens for workers
	int servers; // coordinator: the number of ps tasks, 1 to 16
	// A file with the job's key (choir_task_make_key, `choir key`). Only its owner may be able to
	// read it. TCP needs a key. NULL: the environment variable CHOIR_KEY_FILE, if set.
	const char *key_file;
	// On: the network is trusted, and nothing is encrypted. Both ends still prove that they have
	// the key. Unix sockets and loopback connections are never encrypted. Default: off.
	choir_toggle plain;
	double start_timeout; // seconds to wait for the coordinator, servers and a worker; 0: 60
	double heartbeat; // seconds between heartbeats; 0: 0.5
	double lost_after; // seconds without a heartbeat after which a process is lost; 0: 5
} choir_task_options;

// Makes a task. CHOIR_NOT_FOUND: no type in o or the environment; no key file; no libchoir-net.
// CHOIR_INVALID: a missing address; an index or a time out of range; a key file that other users
// can read; a malformed environment. CHOIR_UNSUPPORTED: TCP in a build without OpenSSL.
choir_task *choir_task_new(const choir_task_options *o);
void choir_task_free(choir_task *t); // free its coordinator first
const char *choir_task_type(const choir_task *t); // "coordinator", "worker", "ps"
int choir_task_index(const choir_task *t);
// Writes a new key of 32 random bytes to the file path, with mode 600. CHOIR_STATE: the file
// exists.
CHOIR_MUST_CHECK choir_status choir_task_make_key(const char *path);

// Closures

typedef struct choir_closure choir_closure; // one call of a function on a worker

// The function of a closure, called on a worker. If it fails, the closure fails.
typedef choir_status choir_closure_fn(choir_closure *c, void *user);

choir_strategy *choir_closure_strategy(choir_closure *c); // the worker's strategy
// The arguments given to choir_coordinator_schedule. The set is valid until the function returns.
choir_values *choir_closure_args(choir_closure *c);
// Sets a leaf of the closure's result. The tensor is copied. value NULL: returns the failure that
// made the tensor NULL.
CHOIR_MUST_CHECK choir_status choir_closure_return(
		choir_closure *c, const char *name, choir_tensor *value);
// The worker's dataset of this name (TensorFlow's create_per_worker_dataset). The function called
// name in the table makes the dataset when a closure first asks for it. The worker owns the
// dataset. A worker that joins again begins at the start of the dataset. CHOIR_NOT_FOUND: no such
// function.
choir_distributed_dataset *choir_closure_dataset(choir_closure *c, const char *name);
int choir_closure_worker(const choir_closure *c); // the worker's number
int choir_closure_attempt(const choir_closure *c); // 1, and 1 more for each lost worker

// A function of the table. Set either .fn, for a closure, or .dataset.
typedef struct {
	const char *name;
	choir_closure_fn *fn;
	choir_dataset_fn *dataset;
} choir_function;

// Makes layers and optimizers in s. Choir calls it once in each process. It must make the same
// variables in the same order in all processes.
typedef choir_status choir_build_fn(choir_strategy *s, void *user);

// The options that all processes of a job share.
typedef struct {
	size_t size;
	const choir_function *functions; // ends with a NULL name; must be valid until the job ends
	choir_build_fn *build;
	void *user; // is passed to build and the functions of this process
	// Text that must be equal in all processes. NULL: the content of the program's file.
	const char *program;
	int queue; // waiting closures at most: schedule blocks while the queue is full; 0: 262144
	// Closures that a worker holds besides the running one. 0: 1, and more while closures take
	// less than half a millisecond. CHOIR_ZERO: none.
	int window;
	int attempts; // a closure fails after it has lost this number of workers; 0: 8
} choir_coordinator_options;

// Serves as the worker or ps of the task until the job ends. Returns CHOIR_OK after the
// coordinator has been freed. options are those of the process's parameter server strategy:
// .workers must be 0 or 1; the seed, .replicas and the shards must be equal to the coordinator's.
// CHOIR_PEER_LOST: the coordinator is lost, or no longer waits for this process. A worker may then
// serve again. CHOIR_STATE: the program, the variables of .build or the table differ from the
// coordinator's. CHOIR_TIMEOUT: no coordinator answered within .start_timeout.
CHOIR_MUST_CHECK choir_status choir_task_serve(
		choir_task *t, const choir_strategy_options *options, const choir_coordinator_options *o);

// Coordinators

typedef struct choir_coordinator choir_coordinator;
typedef struct choir_remote_value choir_remote_value;

// Makes the coordinator of a parameter server strategy, calls .build, and waits for the servers
// and the first worker. From then on, the variables of s are on the servers. A read, a save or an
// assignment of the program first fetches all values, slots and counters. The fetch is consistent:
// no closure runs during it. So choir_strategy_save and checkpoints save the servers' values, and
// a restore sets the servers' values. CHOIR_INVALID: another kind of strategy, or several
// .workers; an empty table; no .build. CHOIR_STATE: s has variables or a coordinator; the task is
// not a coordinator; the address is in use. CHOIR_TIMEOUT: a server or the first worker has not
// joined within .start_timeout.
choir_coordinator *choir_coordinator_new(
		choir_strategy *s, choir_task *t, const choir_coordinator_options *o);
// Ends the job: choir_task_serve returns in workers and servers. This call waits for them for at
// most 2 seconds. The variables of s keep the values that were fetched last.
void choir_coordinator_free(choir_coordinator *c);

// Schedules a call of the function called name on any worker. Returns at once, but waits while the
// queue is full. args: plain tensors, which are copied, or NULL. *value becomes a handle of the
// result; value may be NULL. If an earlier closure has failed, this call returns that failure
// once. All waiting closures and this one are then CHOIR_CANCELLED. CHOIR_NOT_FOUND: no such
// function.
CHOIR_MUST_CHECK choir_status choir_coordinator_schedule(
		choir_coordinator *c, const char *name, choir_values *args, choir_remote_value **value);
// Waits until all closures have ended. Returns the failure of a closure as schedule does.
// CHOIR_TIMEOUT: closures wait, but there has been no worker for .start_timeout.
CHOIR_MUST_CHECK choir_status choir_coordinator_join(choir_coordinator *c);
// Like join, but does not wait. Sets *done to whether all closures have ended.
CHOIR_MUST_CHECK choir_status choir_coordinator_done(choir_coordinator *c, bool *done);
// Waits for a closure's result. value owns the set *result. A result remains valid after its
// worker is lost. If the closure has failed, returns its failure. CHOIR_CANCELLED: another closure
// failed before this one was complete; schedule it again.
CHOIR_MUST_CHECK choir_status choir_coordinator_fetch(
		choir_coordinator *c, choir_remote_value *value, choir_values **result);
void choir_remote_value_free(choir_remote_value *v); // free it before its coordinator
// The staleness of the gradients of all finished closures: how many changes a server has made
// between the worker's last pull from it and the push. *mean, *max: 0 before the first push.
void choir_coordinator_staleness(const choir_coordinator *c, double *mean, int64_t *max);
int choir_coordinator_workers(const choir_coordinator *c); // the number of workers at present

CHOIR_C_END
