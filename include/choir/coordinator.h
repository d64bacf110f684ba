// The coordinator: one process schedules closures on workers, and parameter servers (ps) keep the
// variables (TensorFlow's ClusterCoordinator and ParameterServerStrategy). Workers may join and
// leave at any time. All processes run the same program with the same table of functions, because
// closures are sent by name.
//
// In each process .build makes the same variables and optimizers, with memory for all variables.
// The servers keep the values; ON_READ variables stay in each worker. Other variables and shards
// are numbered from 0; number i is on server (i mod number of servers).
//
// At the start of each run a worker gets the servers' values of the variables that it has read
// before, and others at their first read. If a variable is only read by rows, as in an embedding,
// only these rows and their gradients are sent. A closure's changes of variables (gradients,
// assign, assign_add, assign_sub) are applied exactly once, even if the closure runs again after
// the loss of a worker. Other effects may repeat.
//
// Errors: a process with another key, program or table cannot join; its error says what differs.
// If a server is lost, all calls fail with CHOIR_PEER_LOST, and name it. CHOIR_UNSUPPORTED: an
// update function (update.h) or choir_variable_scatter in a closure; a dynamic loss scale;
// global_clip_norm or CHOIR_NONFINITE_SKIP with several servers.
// Threads: one for a coordinator. Choir starts a thread in each worker and coordinator.
#pragma once

#include "input.h"

CHOIR_C_BEGIN

typedef struct choir_task choir_task; // TensorFlow's ClusterResolver

// The task of this process in the job.
typedef struct {
	size_t size;
	// "coordinator", "worker" or "ps". NULL: the fields from .type to .servers come from the
	// environment. In a TF_CONFIG with ps tasks, the chief is the coordinator. With
	// CHOIR_TASK="SERVERS@ADDRESS", process 0 is the coordinator, the next SERVERS processes are
	// servers, the others workers. A process's number is CHOIR_WORKER, else the launcher's. Others
	// reach a server at CHOIR_HOST (default: its host name).
	const char *type;
	int index; // of this ps, from 0
	// Where the coordinator listens: "unix:/run/job/socket", "127.0.0.1:7000" or "host:7000".
	const char *address;
	const char *ps_address; // where this ps listens for workers
	int servers; // coordinator: the number of ps tasks, 1 to 16
	// A file with the job's key (choir_task_make_key), which TCP needs. NULL: the environment
	// variable CHOIR_KEY_FILE, else `choir run`'s key for a job on several hosts.
	const char *key_file;
	// On: TCP is not encrypted, but both ends prove that they have the key. Unix sockets and
	// loopback are never encrypted. Default: off.
	choir_toggle plain;
	double start_timeout; // seconds to wait for other processes; 0: 60
	double heartbeat; // seconds between heartbeats; 0: 0.5
	double lost_after; // seconds of silence until a process is lost; 0: 5
} choir_task_options;

// Makes a task. CHOIR_NOT_FOUND: no type in o or the environment; no key file or libchoir-net.
// CHOIR_INVALID also: a key file that other users can read; a malformed environment variable.
// CHOIR_UNSUPPORTED: TCP in a build without OpenSSL.
choir_task *choir_task_new(const choir_task_options *o);
void choir_task_free(choir_task *t); // free its coordinator first
const char *choir_task_type(const choir_task *t); // "coordinator", "worker", "ps"
int choir_task_index(const choir_task *t);
// Writes a new key of 32 random bytes, with mode 600. CHOIR_STATE: the file exists.
CHOIR_MUST_CHECK choir_status choir_task_make_key(const char *path);

typedef struct choir_closure choir_closure; // one call of a function on a worker

// The function of a closure. If it fails, the closure fails.
typedef choir_status choir_closure_fn(choir_closure *c, void *user);

choir_strategy *choir_closure_strategy(choir_closure *c); // the worker's strategy
// The arguments of choir_coordinator_schedule, valid until the function returns.
choir_values *choir_closure_args(choir_closure *c);
// Copies value to the leaf called name of the closure's result. If the result has more than
// 64 MiB, the closure fails with CHOIR_INVALID.
CHOIR_MUST_CHECK choir_status choir_closure_return(
		choir_closure *c, const char *name, choir_tensor *value);
// The worker's dataset (TensorFlow's create_per_worker_dataset), which the function called name
// makes when a closure first asks. The worker owns it. After joining again it reads from the
// start.
choir_distributed_dataset *choir_closure_dataset(choir_closure *c, const char *name);
// The worker's values (TensorFlow's per-worker values): the results of the closure function called
// name, which runs when a closure first asks. They last until choir_task_serve returns; closures
// may change them. NULL: the function failed.
choir_values *choir_closure_values(choir_closure *c, const char *name);
int choir_closure_worker(const choir_closure *c);
// 1, plus the number of workers lost while they had the closure
int choir_closure_attempt(const choir_closure *c);

// A function of the table: .fn for closures, or .dataset for choir_closure_dataset.
typedef struct {
	const char *name;
	choir_closure_fn *fn;
	choir_dataset_fn *dataset;
} choir_function;

// Makes layers and optimizers in s, whose scope is entered, once in each process, with the same
// variables in the same order.
typedef choir_status choir_build_fn(choir_strategy *s, void *user);

// The options that all processes share.
typedef struct {
	size_t size;
	const choir_function *functions; // ends with a NULL name; must be valid until the job ends
	choir_build_fn *build;
	void *user; // of build and the functions of this process
	// Must be equal in all processes. NULL: the content of the program's file.
	const char *program;
	int queue; // the largest number of waiting closures, at which schedule blocks; 0: 262144
	// The number of closures that wait on a worker while another runs. 0: one, or more while
	// closures take under half a millisecond. CHOIR_ZERO: none.
	int window;
	int attempts; // a closure fails after this number of lost workers; 0: 8
} choir_coordinator_options;

// Serves as the task's worker or ps, until the coordinator is freed. options are those of the
// process's parameter server strategy: .workers is 0 or 1; .seed, .replicas and shards are the
// coordinator's. CHOIR_PEER_LOST: the coordinator is lost, or has given this process up; a worker
// may then call this again. CHOIR_STATE: the program, the variables of .build or the table differ.
// CHOIR_TIMEOUT: no coordinator within .start_timeout.
CHOIR_MUST_CHECK choir_status choir_task_serve(
		choir_task *t, const choir_strategy_options *options, const choir_coordinator_options *o);

typedef struct choir_coordinator choir_coordinator;
typedef struct choir_remote_value choir_remote_value;

// Makes the coordinator of a parameter server strategy whose .workers is 0 or 1, calls .build, and
// waits for the servers and the first worker. If the program then reads, saves or writes
// variables, or runs s, Choir waits for running closures, starts no others, and fetches all
// values, slots and counters. After a read or save, closures go on. After a write, restore or run,
// they wait until the program reads a variable or calls c again, which first sets the servers'
// values. CHOIR_INVALID also: an empty table; no .build. CHOIR_STATE: s has variables or a
// coordinator; the task is not a coordinator; the address is in use. CHOIR_TIMEOUT: a server or
// the first worker has not joined within .start_timeout.
choir_coordinator *choir_coordinator_new(
		choir_strategy *s, choir_task *t, const choir_coordinator_options *o);
// Ends the job; waits at most 2 seconds for workers and servers. The strategy's variables keep the
// last fetched values.
void choir_coordinator_free(choir_coordinator *c);

// Schedules a call of a function on any worker. Blocks only while the queue is full. args has
// plain tensors, which are copied; NULL: none. *value becomes a handle of the result; value may be
// NULL. If an earlier closure has failed, returns that failure, once. This closure and all waiting
// ones then fail with CHOIR_CANCELLED. CHOIR_INVALID: args have more than 64 MiB.
CHOIR_MUST_CHECK choir_status choir_coordinator_schedule(
		choir_coordinator *c, const char *name, choir_values *args, choir_remote_value **value);
// Waits until all closures have ended. Returns a closure's failure as choir_coordinator_schedule
// does. CHOIR_TIMEOUT: no worker for .start_timeout.
CHOIR_MUST_CHECK choir_status choir_coordinator_join(choir_coordinator *c);
// Like choir_coordinator_join without the wait. *done: all closures have ended.
CHOIR_MUST_CHECK choir_status choir_coordinator_done(choir_coordinator *c, bool *done);
// Waits for a closure's result or failure. value owns *result, also after its worker's loss.
// CHOIR_CANCELLED: another closure failed first; schedule this again.
CHOIR_MUST_CHECK choir_status choir_coordinator_fetch(
		choir_coordinator *c, choir_remote_value *value, choir_values **result);
// Calls a function once on each present worker, and waits (TensorFlow's read_all of per-worker
// variables). sets gets *n results, in the order of workers, which the caller frees. A worker lost
// meanwhile has no set. Only this call returns a failure of the function. CHOIR_INVALID: there are
// more than capacity workers.
CHOIR_MUST_CHECK choir_status choir_coordinator_read_all(
		choir_coordinator *c, const char *name, int capacity, choir_values *sets[], int *n);
void choir_remote_value_free(choir_remote_value *v); // free it before its coordinator
// A closure's staleness: a server's changes between its sending values and getting gradients. Sets
// *mean and *max over finished closures; 0 before the first.
void choir_coordinator_staleness(const choir_coordinator *c, double *mean, int64_t *max);
int choir_coordinator_workers(const choir_coordinator *c); // at present

CHOIR_C_END
