// A strategy places replicas on devices and synchronizes the replicas. The calls inside a run are
// in replica.h, cross.h and update.h.
//
// Each device runs a block of consecutive replicas, one after another, in the order of their ids.
// With R replicas on P devices, the first R mod P devices run one replica more. A run's result
// depends on the program, the seed, R and the global batch. It does not depend on P.
//
// Errors: after a fork, the child process can only free the parent's strategies. Runs, scopes and
// new variables of these strategies fail with CHOIR_STATE, also those of the default strategy.
// Threads: any thread may call constructors and getters. Other calls on a strategy must come from
// one thread at a time.
#pragma once

#include "cluster.h"
#include "precision.h"
#include "replica.h"
#include "scope.h"

CHOIR_C_BEGIN

// Strategies

// The form of the result when indexed slices (tensor.h) are reduced.
typedef enum {
	// The rows of all replicas, in the order of the replicas.
	CHOIR_SLICES_CONCATENATED = 0,
	// Each row once, in ascending order. A row has the same bits as in the dense sum.
	CHOIR_SLICES_MERGED,
	// The dense tensor if it has fewer bytes than the merged rows, else the merged rows.
	CHOIR_SLICES_SMALLEST
} choir_slices_result;

// How values travel between devices. .slices changes the form of results; no other field changes
// results. A field that is 0 has its value from the strategy's .communication, or else Choir's
// default.
typedef struct {
	size_t size;
	// In a batch (choir_cross_batch_reduce_to), values with the same dtype, divisor and
	// destination are concatenated to packs. At most one of the two fields may be set. If both are
	// 0, each value is a separate collective.
	// bytes_per_pack: a pack gets whole values until it has more than this number of bytes.
	// num_packs: the number of packs. All packs but the last have the same length. If there are
	// fewer elements than packs, there is one pack.
	int64_t bytes_per_pack, num_packs;
	// Seconds that a collective waits for the next device to join; CHOIR_FOREVER: no limit.
	double timeout;
	const char *implementation; // see .cross_device_ops; "auto": the strategy's
	choir_slices_result slices;
} choir_communication_options;

// The number of shards into which a variable is cut along axis 0 (variable.h), at most one for
// each row. If the number is 1, the variable is not cut.
typedef enum {
	CHOIR_PARTITION_NONE = 0,
	CHOIR_PARTITION_FIXED, // .max_shards, which must be set
	// The largest number of shards with at least .partition_size bytes each (0: 256 KiB), but at
	// most .max_shards (0: 1).
	CHOIR_PARTITION_MIN_SIZE,
	// The smallest number of shards with at most .partition_size bytes each, but at most
	// .max_shards (0: no limit). If one row is larger, each shard has one row. .partition_size
	// must be set.
	CHOIR_PARTITION_MAX_SIZE
} choir_partition;

// An option that this kind of strategy does not have is CHOIR_INVALID, but .overlap and
// .compare_steps are ignored.
typedef struct choir_strategy_options {
	size_t size;
	// Up to 1024 different device names: "cpu:0,cpu:1". NULL or "": the devices in the
	// environment variable CHOIR_DEVICES. Without it: all accelerators, which are the devices of
	// kinds that are registered as such. Without those: one CPU device per replica, at most one
	// per processor available to this process. Devices without a replica stay idle.
	const char *devices;
	// The number of replicas of the job, at most 2^20. 0: one for each named device or
	// accelerator (1 on CPUs that are not named), and at least one for each of .workers.
	int replicas;
	// The number of threads that share a device's matrix products, attention, normalization and
	// large elementwise operations. 0: one thread. If this thread is pinned (.pin), it may use an
	// equal share of all processors. The bits do not depend on the number of threads.
	int cores_per_device;
	// Whether the strategy pins its threads. The caller's thread is never pinned. Default: on if
	// the process was started with a narrowed affinity mask and has at least one processor per
	// device.
	choir_toggle pin;
	uint64_t seed; // for random numbers and random initial values
	// Seconds that a replica waits for another replica. If no replica arrives or returns in this
	// time, the run fails with CHOIR_TIMEOUT. 0: 60; CHOIR_FOREVER: no limit.
	double timeout;
	// The algorithm that sums between devices: "direct" (devices of host memory only), "ring",
	// "hierarchical_copy", "reduce_to_one_device", or a registered one
	// (extend/cross_device_ops_table.h). All algorithms give the same bits. NULL: the algorithm
	// with the highest score. With several workers in .cluster, the algorithm is always "workers".
	const char *cross_device_ops;
	// Central storage, parameter server: the devices that hold variables. NULL: the device that
	// runs all replicas, or cpu:0 if several devices run replicas.
	const char *parameter_devices;
	// How values travel. .implementation has the meaning of .cross_device_ops; set only one of the
	// two.
	const choir_communication_options *communication;
	// Parameter server: the number of workers, at most 1024; 0: 1. Replicas are divided among
	// workers as among devices. Each worker needs a replica.
	int workers;
	// Parameter server with several workers. On (default): a worker reads, writes and updates a
	// variable under the variable's lock. Off: workers use relaxed atomics instead of locks, and
	// the parameter devices must have host memory. Then a read may mix several updates, and one of
	// two simultaneous writes of an element may be lost. ON_READ variables and update functions
	// always use locks.
	choir_toggle locked_updates;
	// Parameter server: how mirrored variables are cut into shards. CHOIR_INVALID: more than 4096
	// shards of a variable. The shards are placed round-robin on the parameter devices. Scalars,
	// wrapped memory, and variables colocated with an uncut or a non-slot variable are never cut.
	choir_partition partition;
	int64_t partition_size; // bytes
	int max_shards;
	// Multi-worker mirrored: the cluster of workers. It must outlive the strategy. With a cluster,
	// .devices names this worker's devices. NULL: this process is the only worker.
	choir_cluster *cluster;
	// Multi-worker mirrored. On: a separate thread exchanges large gradients with the other
	// workers during the backward pass. The bits do not change. Default: the environment variable
	// CHOIR_OVERLAP ("on", "off"). Without it: on if every worker has an idle processor. .overlap
	// must be the same on all workers. It has no effect on devices with separate memory.
	choir_toggle overlap;
	// Multi-worker mirrored: the workers compare mirrored variables (by checksums), learning rates
	// of optimizers, and options of new layers. They compare after the 1st, 10th, 100th and every
	// .compare_steps-th update (0: every 1000th), and before each save. CHOIR_NONE: never. At a
	// difference, the run or save fails with CHOIR_STATE, and the text names the first variable or
	// optimizer and two workers. .compare_steps must be the same on all workers.
	int64_t compare_steps;
	// What the replicas' operations run in. DEFAULT: CHOIR_PRECISION_F32. All workers need the
	// same. choir_strategy_precision says what AUTO took.
	choir_precision precision;
} choir_strategy_options;

// The type of the constructors below. Free the result with choir_strategy_free. CHOIR_INVALID: an
// invalid option. CHOIR_NOT_FOUND: an unknown device or cross-device operation. CHOIR_UNSUPPORTED:
// the cross-device operations do not support these devices. A constructor also fails if a device
// cannot be opened.
typedef choir_strategy *choir_strategy_constructor(const choir_strategy_options *o);

// Makes a mirrored strategy: any number of replicas on any number of devices. A variable has the
// same value on all devices.
choir_strategy *choir_mirrored_strategy_new(const choir_strategy_options *o);

// Makes a strategy of one replica on one device. If CHOIR_DEVICES names several devices, the
// strategy uses the first. CHOIR_INVALID: .replicas is above 1, or .devices names several.
choir_strategy *choir_one_device_strategy_new(const choir_strategy_options *o);

// Makes a central storage strategy. Each mirrored variable has one copy, on the parameter device
// (.parameter_devices). This device need not run replicas. A device with other memory copies the
// variable for each read. Writes of replicas are aggregated and applied on the parameter device.
// Results are bit-identical to those of a mirrored strategy. CHOIR_INVALID: several parameter
// devices.
choir_strategy *choir_central_storage_strategy_new(const choir_strategy_options *o);

// Makes a parameter server strategy, on one machine. Each worker has separate replicas and a
// separate loop (choir_strategy_run_workers), and does not wait for other workers. Each mirrored
// variable or shard (.partition) has one copy. The copies are placed round-robin on the parameter
// devices. With several workers a read is a copy, which later updates do not change. The sum over
// a worker's replicas is applied on the variable's device. Sums of several workers are applied in
// the order of arrival. An ON_READ variable has a component for each replica of every worker.
//
// A call on the strategy itself, such as choir_strategy_run, acts for the first worker. With one
// worker, results are bit-identical to those of a mirrored strategy.
choir_strategy *choir_parameter_server_strategy_new(const choir_strategy_options *o);

// Makes a mirrored strategy over several workers. Each worker is a process with the same program
// (cluster.h). A variable has the same value on all devices of all workers, and all replicas run
// synchronously. Each worker runs a block of consecutive replicas, divided among its devices. By
// default there is one replica for each device of all workers. Results are bit-identical to those
// of a mirrored strategy with the same number of replicas.
//
// All workers must make these calls in the same order, else CHOIR_STATE: calls in replicas, calls
// that make variables, and calls outside of replicas that need all workers (reductions, results of
// metrics). If a worker fails, the others fail with CHOIR_CANCELLED and the text of the failure.
// Then the cluster cannot be used again. CHOIR_INVALID: fewer replicas than workers. CHOIR_STATE:
// the workers' options differ.
choir_strategy *choir_multi_worker_mirrored_strategy_new(const choir_strategy_options *o);

// Makes a strategy of the kind name: "default" (a new strategy like one_device), "one_device",
// "mirrored", "central_storage", "parameter_server", "multi_worker_mirrored", or a registered kind
// (extend/strategy_table.h). CHOIR_NOT_FOUND: the kind is unknown.
choir_strategy *choir_strategy_new(const char *name, const choir_strategy_options *o);

// Makes a new strategy with s's kind and options. If s's options name no devices, CHOIR_DEVICES is
// read again. CHOIR_STATE: s is the default strategy.
choir_strategy *choir_strategy_copy_new(const choir_strategy *s);

// Frees s, its threads and all objects that were made in s. All scopes and runs of s must have
// ended. But a run that a function left by an exception or longjmp (status.h) is ended first. If
// the calling thread has set s (choir_strategy_set_current), it then has no set strategy. The
// default strategy is never freed.
void choir_strategy_free(choir_strategy *s);

// The default strategy, for a program that makes no strategy. It has one replica, on the first
// device of CHOIR_DEVICES, on the first accelerator or on cpu:0. The first call makes it. Its
// scope cannot be inside another strategy's scope.
choir_strategy *choir_default_strategy(void);

// The calling thread's strategy and context

// The strategy of this thread's innermost scope, replica, merge call or update. Outside of these
// contexts, the strategy set by choir_strategy_set_current, or else the default strategy. NULL:
// the default strategy cannot be made.
choir_strategy *choir_strategy_current(void);

// Whether the current strategy is not the default one.
bool choir_has_strategy(void);

// Whether this thread is in cross-replica context: in a scope, a merge call or an update. Outside
// of all contexts: whether the thread has set a strategy (choir_strategy_set_current). False in
// every replica, also in the default replica.
bool choir_in_cross_replica_context(void);

// Makes s the current strategy of this thread outside of scopes and runs, until the thread sets
// another strategy. s must live until then. NULL: the thread is in the default replica again.
// CHOIR_STATE: the thread is inside a scope, replica, merge call or update.
CHOIR_MUST_CHECK choir_status choir_strategy_set_current(choir_strategy *s);

// Getters of strategies

// In all headers a replica has two numbers, both counted from 0. replica_id is its number among
// all replicas of the job, on all workers. local_replica is its number among the replicas of this
// process: replica_id minus choir_strategy_first_replica_id.

// The number of replicas of the job.
int choir_strategy_replicas(const choir_strategy *s);

// The number of replicas in this process. Sets (value.h) hold values of only these replicas.
int choir_strategy_local_replicas(const choir_strategy *s);

// The replica_id of the first replica in this process.
int choir_strategy_first_replica_id(const choir_strategy *s);

// The number of devices that run replicas, and the index-th of them, in the order of .devices.
int choir_strategy_worker_devices(const choir_strategy *s);
choir_device *choir_strategy_worker_device(const choir_strategy *s, int index);

// The index of d among the devices that run replicas, or CHOIR_NONE.
int choir_strategy_worker_device_index(const choir_strategy *s, const choir_device *d);

// The kind of s, as choir_strategy_new names it, for example "mirrored".
const char *choir_strategy_name(const choir_strategy *s);

// The algorithm that sums between s's devices if a call names none, for example "direct". With
// several workers in .cluster it is "workers".
const char *choir_strategy_cross_device_ops(const choir_strategy *s);

// The number of workers that choir_strategy_run_workers calls.
int choir_strategy_workers(const choir_strategy *s);

// The number of devices that hold variables, and the index-th of them. In mirrored and one-device
// strategies these are the devices that run replicas.
int choir_strategy_parameter_devices(const choir_strategy *s);
choir_device *choir_strategy_parameter_device(const choir_strategy *s, int index);

// Always false: shapes may differ between steps. They may also differ between replicas, unless a
// call forbids it.
bool choir_strategy_require_static_shapes(const choir_strategy *s);

// Whether this process writes checkpoints and summaries. True on the first worker of a cluster,
// and without a cluster.
bool choir_strategy_is_chief(const choir_strategy *s);

// The .cluster of s, or NULL.
choir_cluster *choir_strategy_cluster(const choir_strategy *s);

// The median latency of waking the .overlap thread, in seconds, measured when s was made. 0: there
// is no such thread.
double choir_strategy_overlap_latency(const choir_strategy *s);

// The precision of s's replicas: F32, MIXED_BF16 or MIXED_F16. NULL: F32.
choir_precision choir_strategy_precision(const choir_strategy *s);

// Whether v was made in a scope of s.
bool choir_strategy_variable_created_in_scope(const choir_strategy *s, const choir_variable *v);

// Runs

// Calls fn once for each local replica. Devices run at the same time, on several threads; the
// first device uses the calling thread. So fn may read everything that user points to, but write
// only the parts for its replica. Returns after all replicas have returned and all requested
// updates are done. A merge function may make this call, too (see choir_cross_run).
//
// args: a set of s in which choir_replica_arg finds leaves, or NULL. results: NULL drops the
// replicas' results. If *results is NULL, the call makes a new set (free it with
// choir_values_free). Any other set is cleared first, and must not be args. Results of one name
// become one leaf (docs/rules.md, section 6). After a failure the set is empty.
//
// Returns the failure of the failed replica with the lowest replica_id. Cancelled replicas do not
// count. A failure in a replica's frame fails the replica even if fn ignores the failure. After a
// failure, variables that an update was changing are undefined (variable.h), and s can run again.
// The run's own failures:
// - CHOIR_INVALID: a set belongs to another strategy; a leaf has no value for a replica.
// - CHOIR_STATE: the thread is in a replica, in an update, or in another strategy's context;
//   another run of s is under way; replicas made different calls, or returned different names; an
//   exception or longjmp left a function (status.h).
// - CHOIR_TIMEOUT: a replica waited too long for another replica (.timeout). A function that never
//   returns cannot be stopped.
CHOIR_MUST_CHECK choir_status choir_strategy_run(choir_strategy *s, choir_replica_fn *fn,
		void *user, choir_values *args, choir_values **results);

// The function of one worker: a loop that runs group, a strategy with this worker's replicas.
// group is the thread's current strategy and must not be freed. Variables made in group belong to
// the parameter server strategy.
typedef choir_status choir_worker_fn(choir_strategy *group, int worker, void *user);

// Calls fn for all workers at the same time: the first worker on the calling thread, each other
// worker on a separate thread. Returns after all calls have returned. If s is no parameter server
// strategy, there is one worker, and group is s.
//
// If fn fails in one worker, the next run of every other worker fails with CHOIR_CANCELLED.
// Returns the failure of the failed worker with the lowest number. Cancelled workers do not count.
// A worker that never returns cannot be stopped. CHOIR_STATE: in a replica, or in another
// strategy's context; workers of s are running already.
CHOIR_MUST_CHECK choir_status choir_strategy_run_workers(
		choir_strategy *s, choir_worker_fn *fn, void *user);

// Reduces v over replicas to one tensor for the program. The result is in v's frame. If v has no
// frame (choir_variable_as_value), the result is in the frame of choir_strategy_cross. Sums are
// made in the canonical tree (docs/rules.md, section 8).
//
// With CHOIR_NO_AXIS, the tensors of v must have the same shape. If v is an ON_READ variable,
// these are its components. MEAN divides by the number of replicas. If all tensors have a count
// (choir_with_count), MEAN divides by the sum of the counts. A plain value, mirrored value or
// mirrored variable is the same for all replicas, so it is its own mean. Its SUM is CHOIR_INVALID,
// unless the value is the number 0 or there is one replica.
//
// With axes, each replica first sums its tensor along the axes, which removes them. MEAN then
// divides by the number of elements that all replicas summed. So sizes along the axes may differ
// between replicas, or be 0. A value that is the same for all replicas counts once for each
// replica.
//
// SUM keeps the dtype: f32, f64, i32, i64 or u8. Sums of integers wrap around. In a debug build of
// Choir, a sum of u8 above 255 is CHOIR_INVALID. MEAN keeps f32 and f64, gives f64 for i32 and
// i64, and gives f32 for u8 and bool. Other dtypes: CHOIR_UNSUPPORTED.
//
// v's frame keeps a failure. CHOIR_INVALID also: op is unknown; v is a destination; v has another
// number of replicas than s; shapes or dtypes differ; only some tensors have a count. CHOIR_STATE:
// in a replica, or in another strategy's context.
choir_tensor *choir_strategy_reduce(
		choir_strategy *s, choir_reduce_op op, choir_value *v, choir_axes axes);

// The cross-replica context of the program outside of runs, for the calls of cross.h. It is the
// same object each time. In a merge function it is the merge call's context. The program must
// clear the frame (choir_frame_clear), but not between choir_cross_set_arg and the run or update
// that uses the argument. CHOIR_STATE: in a replica, or in another strategy's context.
choir_cross *choir_strategy_cross(choir_strategy *s);

CHOIR_C_END
