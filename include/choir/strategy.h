// A strategy places replicas on devices and synchronizes them. replica.h, cross.h and update.h
// declare the calls inside a run.
//
// Each device runs a block of consecutive replicas, one after another. With R replicas on P
// devices, each of the first (R mod P) devices runs one replica more than the others. A run's
// result depends on the program, the seed, R and the global batch, not on P.
//
// Errors: in a replica or in another strategy's context, runs, reductions and choir_strategy_cross
// fail with CHOIR_STATE. After a fork, the child can only free the parent's strategies.
// Threads: any for constructors and getters; one at a time for a strategy's other calls.
#pragma once

#include "cluster.h"
#include "precision.h"
#include "replica.h"
#include "scope.h"

CHOIR_C_BEGIN

// The result of a reduction of indexed slices (tensor.h).
typedef enum {
	// The rows of all replicas, in order.
	CHOIR_SLICES_CONCATENATED = 0,
	// Each row once, in ascending order, with the bits of the dense sum.
	CHOIR_SLICES_MERGED,
	// The smaller of the dense tensor and the merged rows.
	CHOIR_SLICES_SMALLEST
} choir_slices_result;

// How values travel between devices. Only .slices changes results. A field that is 0 has the value
// in the strategy's .communication, or else Choir's default.
typedef struct {
	size_t size;
	// choir_cross_batch_reduce_to concatenates values with the same dtype, divisor and destination
	// into packs. Set at most one. bytes_per_pack: a pack takes values until it has more bytes.
	// num_packs: packs of one length except the last; one pack if there are fewer elements. Both
	// 0: each value is a collective.
	int64_t bytes_per_pack, num_packs;
	// Seconds that a collective waits for the next device; CHOIR_FOREVER: no limit.
	double timeout;
	const char *implementation; // as .cross_device_ops; "auto": the strategy's
	choir_slices_result slices;
} choir_communication_options;

// The number of shards into which a variable is cut along axis 0, at most one per row
// (variable.h).
typedef enum {
	CHOIR_PARTITION_NONE = 0,
	CHOIR_PARTITION_FIXED, // .max_shards, which must be set
	// As many shards as possible, up to .max_shards (0: 1), of at least .partition_size bytes (0:
	// 256 KiB) each.
	CHOIR_PARTITION_MIN_SIZE,
	// As few shards as possible, up to .max_shards (0: no limit), of at most .partition_size bytes
	// (required) each, or one row.
	CHOIR_PARTITION_MAX_SIZE
} choir_partition;

// CHOIR_INVALID: an option of another kind of strategy is set, except .overlap and .compare_steps.
// All workers of a cluster need the same .overlap, .compare_steps, .precision and .wire.
typedef struct choir_strategy_options {
	size_t size;
	// Up to 1024 different device names: "cpu:0,cpu:1". NULL or "": the environment variable
	// CHOIR_DEVICES, else all accelerators, else one CPU device per replica, at most one per
	// available processor. "remote:HOST:PORT" names all devices of a server (serve.h).
	const char *devices;
	// The number of replicas of the job, at most 2^20. 0: one for each named device, else one for
	// each accelerator, else one; at least one for each of .workers.
	int replicas;
	// Threads that share a device's large operations, with the same bits. 0: one; for a pinned
	// device, an equal share of the processors.
	int cores_per_device;
	// Whether the strategy's threads are pinned. Default: on if the process started with a
	// narrowed affinity mask, has a processor for each device, and shares none with another
	// worker.
	choir_toggle pin;
	uint64_t seed; // of random numbers and initial values
	// Seconds that a replica waits for another before CHOIR_TIMEOUT. 0: 60; CHOIR_FOREVER: no
	// limit.
	double timeout;
	// The algorithm that sums between devices: "direct" (host memory only), "ring",
	// "hierarchical_copy", "reduce_to_one_device", or a registered name (extend.h). All give the
	// same bits. NULL: that with the highest score; with several workers in .cluster always
	// "workers".
	const char *cross_device_ops;
	// Central storage, parameter server: the devices of variables. NULL: the device that runs all
	// replicas, or cpu:0 if several devices do.
	const char *parameter_devices;
	// How values travel. Do not set both its .implementation and .cross_device_ops.
	const choir_communication_options *communication;
	// Parameter server: the number of workers, 1 to 1024, each with at least one replica; 0: 1.
	int workers;
	// Parameter server with several workers. On (default): a variable's lock guards each read,
	// write and update. Off: relaxed atomics on host memory, so a read may mix updates, and one of
	// two simultaneous writes of an element may be lost. ON_READ variables and update functions
	// always use locks.
	choir_toggle locked_updates;
	// Parameter server: how mirrored variables are cut into at most 4096 shards, which are placed
	// round-robin. Scalars, wrapped memory, and variables colocated with an uncut or non-slot
	// variable stay whole.
	choir_partition partition;
	int64_t partition_size; // bytes
	int max_shards;
	// Multi-worker mirrored: the workers; .devices are this worker's. It must outlive the
	// strategy. NULL: one worker.
	choir_cluster *cluster;
	// Multi-worker mirrored. On: another thread exchanges large gradients during the backward
	// pass, with the same bits. Default: the environment variable CHOIR_OVERLAP ("on", "off"),
	// else on if every worker has an idle processor. No effect on devices with separate memory.
	choir_toggle overlap;
	// Multi-worker mirrored: the workers compare checksums of mirrored variables, learning rates
	// and options of new layers. Before saves, and after the 1st, 10th, 100th and every
	// .compare_steps-th update (0: 1000). CHOIR_NONE: never. CHOIR_STATE: they differ.
	int64_t compare_steps;
	// The precision of the replicas' operations. Default: F32.
	choir_precision precision;
	// The dtype in which f32 gradients are summed and sent: CHOIR_F32 (default), CHOIR_BF16, or
	// CHOIR_F16, which needs a loss scale (optimizer.h). Each replica's gradient and each node of
	// the canonical tree are rounded to this dtype. Indexed slices are rounded, but travel in f32.
	// With one replica nothing is rounded. CHOIR_UNSUPPORTED: a device cannot add 16-bit numbers.
	choir_dtype wire;
	// In place of .devices: servers (serve.h) as in "cluster" of TF_CONFIG, {"worker":
	// ["node1:7000", "node2:7000"]}, with all of their devices in this order.
	const char *cluster_spec;
} choir_strategy_options;

// The type of the constructors below. CHOIR_UNSUPPORTED: the cross-device operations do not
// support the devices. Opening a device may also fail.
typedef choir_strategy *choir_strategy_constructor(const choir_strategy_options *o);

// Mirrored: a variable has the same value on all devices.
choir_strategy *choir_mirrored_strategy_new(const choir_strategy_options *o);

// One device: one replica. Default: the first device of CHOIR_DEVICES.
choir_strategy *choir_one_device_strategy_new(const choir_strategy_options *o);

// Central storage: a mirrored variable has one copy, on the parameter device, which need not run
// replicas. Other memory copies it for each read. Results have a mirrored strategy's bits.
choir_strategy *choir_central_storage_strategy_new(const choir_strategy_options *o);

// Parameter server, on one machine. Each worker has replicas and a loop
// (choir_strategy_run_workers), and waits for no other. A mirrored variable or shard has one copy,
// placed round-robin on the parameter devices. With several workers, a read is a copy, and
// workers' sums of gradients are applied in the order of arrival. An ON_READ variable has a
// component for each replica of every worker.
//
// A call on the strategy itself acts for the first worker. With one worker, results have the bits
// of a mirrored strategy.
choir_strategy *choir_parameter_server_strategy_new(const choir_strategy_options *o);

// Multi-worker mirrored: mirrored over processes of the same program (cluster.h). Each worker runs
// a block of consecutive replicas (at least one; default: one for each device), synchronously with
// the others. Results have the bits of a mirrored strategy with as many replicas.
//
// All workers make these calls in the same order: calls in replicas, calls that make variables
// and, outside of replicas, reductions and metric results. CHOIR_STATE: the calls or the workers'
// options differ. If a worker fails, the others fail with CHOIR_CANCELLED and its text, and the
// cluster is unusable.
choir_strategy *choir_multi_worker_mirrored_strategy_new(const choir_strategy_options *o);

// Makes a strategy of a kind: "default" (a new one, like one_device), "one_device", "mirrored",
// "central_storage", "parameter_server", "multi_worker_mirrored", or a registered kind (extend.h).
choir_strategy *choir_strategy_new(const char *name, const choir_strategy_options *o);

// Makes a strategy of s's kind and options. If these name no devices, it reads CHOIR_DEVICES
// again. CHOIR_STATE: s is the default strategy.
choir_strategy *choir_strategy_copy_new(const choir_strategy *s);

// Frees s, its threads and all of its objects, unless it is the default strategy. Scopes and runs
// of s must have ended, except runs left by an exception or longjmp (status.h). If the calling
// thread has set s, it then has no set strategy.
void choir_strategy_free(choir_strategy *s);

// The strategy of a program that makes none: one replica on the first device of CHOIR_DEVICES,
// else on the first accelerator, else on cpu:0. Its scope cannot be inside another's.
choir_strategy *choir_default_strategy(void);

// The calling thread's strategy and context

// The strategy of this thread's innermost scope, replica, merge call or update; else the one that
// the thread has set; else the default strategy. NULL: it cannot be made.
choir_strategy *choir_strategy_current(void);

// False if the current strategy is the default strategy.
bool choir_has_strategy(void);

// Whether this thread is in a scope, merge call or update or, outside of all contexts, has set a
// strategy.
bool choir_in_cross_replica_context(void);

// Sets this thread's strategy outside of scopes and runs; s must live until it sets another. NULL:
// the default one. CHOIR_STATE: in a scope, replica, merge call or update.
CHOIR_MUST_CHECK choir_status choir_strategy_set_current(choir_strategy *s);

// Getters

// A replica has a replica_id in the job, from 0, and in this process a local_replica: replica_id
// minus choir_strategy_first_replica_id.

// The number of replicas of the job.
int choir_strategy_replicas(const choir_strategy *s);

// The number of replicas in this process. Sets (value.h) have values of only these.
int choir_strategy_local_replicas(const choir_strategy *s);

// The lowest replica_id in this process.
int choir_strategy_first_replica_id(const choir_strategy *s);

// The devices that run replicas, in the order of .devices.
int choir_strategy_worker_devices(const choir_strategy *s);
choir_device *choir_strategy_worker_device(const choir_strategy *s, int index);

// The index of d among these devices, or CHOIR_NONE.
int choir_strategy_worker_device_index(const choir_strategy *s, const choir_device *d);

// "mirrored", ...
const char *choir_strategy_name(const choir_strategy *s);

// The algorithm that sums between devices if a call names no other.
const char *choir_strategy_cross_device_ops(const choir_strategy *s);

// The number of workers that choir_strategy_run_workers calls.
int choir_strategy_workers(const choir_strategy *s);

// The devices that hold variables.
int choir_strategy_parameter_devices(const choir_strategy *s);
choir_device *choir_strategy_parameter_device(const choir_strategy *s, int index);

// False: shapes may differ between steps and replicas.
bool choir_strategy_require_static_shapes(const choir_strategy *s);

// True: the first or only worker, which writes checkpoints and summaries.
bool choir_strategy_is_chief(const choir_strategy *s);

// The option .cluster, or NULL.
choir_cluster *choir_strategy_cluster(const choir_strategy *s);

// The median time to wake the .overlap thread, in seconds. 0: no such thread.
double choir_strategy_overlap_latency(const choir_strategy *s);

// The precision after AUTO is resolved. NULL: F32.
choir_precision choir_strategy_precision(const choir_strategy *s);

// Whether v was made in a scope of s.
bool choir_strategy_variable_created_in_scope(const choir_strategy *s, const choir_variable *v);

// Runs

// Calls fn once for each local replica. Devices run at the same time, the first on the calling
// thread, so fn may write only its replica's part of *user. Returns after all replicas and
// updates. A merge function may also call choir_strategy_run.
//
// args is a set of s for choir_replica_arg, or NULL. results NULL: drops the replicas' results.
// *results NULL: makes a set, which the caller frees. Else first clears *results, which is not
// args. Results of one name become one leaf (docs/rules.md, section 6). After a failure the set is
// empty.
//
// Returns the failure of the lowest replica_id, but ignores CHOIR_CANCELLED. A failure in a
// replica's frame is the replica's, even if fn ignores it. After a failure, variables that an
// update was changing are undefined (variable.h), and s can run again. The run's own failures:
// - CHOIR_INVALID: a set belongs to another strategy; a leaf has no value for a replica.
// - CHOIR_STATE also: the thread is in an update; another run of s is under way; replicas made
//   different calls or returned different names; an exception or longjmp left a function
//   (status.h).
// - CHOIR_TIMEOUT: a replica waited too long for another. Choir cannot stop an endless function.
CHOIR_MUST_CHECK choir_status choir_strategy_run(choir_strategy *s, choir_replica_fn *fn,
		void *user, choir_values *args, choir_values **results);

// One worker's loop. group, this thread's current strategy, has this worker's replicas. The
// function runs it (choir_strategy_run), and must not free it. Variables of group belong to the
// parameter server strategy.
typedef choir_status choir_worker_fn(choir_strategy *group, int worker, void *user);

// Calls fn for all workers of a parameter server strategy at once, for the first on this thread,
// and waits. Another strategy has one worker, whose group is s.
//
// If fn fails, the next run of every other worker fails with CHOIR_CANCELLED. Returns the failure
// of the lowest worker, but ignores CHOIR_CANCELLED. CHOIR_STATE also: workers of s are running
// already.
CHOIR_MUST_CHECK choir_status choir_strategy_run_workers(
		choir_strategy *s, choir_worker_fn *fn, void *user);

// Reduces v over replicas to one tensor in v's frame, or in choir_strategy_cross's frame if v has
// none (choir_variable_as_value). Sums follow the canonical tree (docs/rules.md, section 8).
//
// With CHOIR_NO_AXIS, the tensors of v, or an ON_READ variable's components, need one shape. MEAN
// divides by the number of replicas or, if all tensors have a count (choir_with_count), by the sum
// of the counts. The MEAN of a plain or mirrored value or variable is this value. Its SUM is
// CHOIR_INVALID, unless it is the number 0 or there is one replica.
//
// With axes, each replica first sums its tensor along these, which the result lacks. Their sizes
// may differ or be 0. MEAN divides by the number of summed elements. A value that all replicas
// share counts once for each.
//
// SUM keeps the dtype. Integers wrap around, but in a debug build of Choir a sum of u8 above 255
// is CHOIR_INVALID. f16 and bf16 are summed in f32, then rounded once. CHOIR_UNSUPPORTED: a SUM of
// bool; indexed slices of f16 or bf16. MEAN gives f64 for i32 and i64, and f32 for u8 and bool.
//
// v's frame keeps a failure. CHOIR_INVALID also: v is a destination, or has another number of
// replicas; shapes or dtypes differ; only some tensors have a count.
choir_tensor *choir_strategy_reduce(
		choir_strategy *s, choir_reduce_op op, choir_value *v, choir_axes axes);

// The program's cross-replica context (cross.h) outside of runs, always the same object; in a
// merge function, the merge call's. The program must clear its frame (choir_frame_clear), but not
// between choir_cross_set_arg and the run or update.
choir_cross *choir_strategy_cross(choir_strategy *s);

CHOIR_C_END
