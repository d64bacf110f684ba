// Strategies place replicas on devices and keep them in step. replica.h, cross.h and update.h
// have the calls inside of a run.
//
// With R replicas on P devices the first R mod P devices carry one replica more, in contiguous
// blocks. The replicas of a device run one after another, in the order of their ids. A run's
// result depends on the program, the seed, R and the global batch, not on P.
//
// Errors: after a fork the child may only free a strategy that was made before it, the default
// one included. Running it, entering its scope or making a variable in it fails with
// CHOIR_STATE.
// Threads: constructors and getters: any. All other calls need one thread at a time for each
// strategy. Two strategies may run at the same time on two threads.
#pragma once

#include "cluster.h"
#include "replica.h"
#include "scope.h"

CHOIR_C_BEGIN

// Strategies

// The form of the result when indexed slices (tensor.h) are reduced.
typedef enum {
	// The rows of all replicas, in the order of the replicas.
	CHOIR_SLICES_CONCATENATED = 0,
	// Each row once, ascending, with the value that the dense sum would have.
	CHOIR_SLICES_MERGED,
	// Merged rows, or the dense tensor if that takes fewer bytes.
	CHOIR_SLICES_SMALLEST
} choir_slices_result;

// How values travel between devices. Only .slices changes results, and only their form. 0 in a
// field: the strategy's option, or else Choir's choice.
typedef struct {
	size_t size;
	// Values of a batch (choir_cross_batch_reduce_to) that share dtype, divisor and destination
	// travel concatenated, in packs. bytes_per_pack: a pack takes whole values until it is
	// larger than this. num_packs: the number of packs, all of equal length but the last (one
	// pack if there are fewer elements). Both 0: each value travels by itself. At most one of
	// the two may be set.
	int64_t bytes_per_pack, num_packs;
	// Seconds that a collective may take; CHOIR_FOREVER: no limit
	double timeout;
	const char *implementation; // as .cross_device_ops below, or "auto": the strategy's
	choir_slices_result slices;
} choir_communication_options;

// The number of shards that a variable is cut into, along axis 0 (variable.h): at most one for
// each row. With one shard it is not cut.
typedef enum {
	CHOIR_PARTITION_NONE = 0,
	CHOIR_PARTITION_FIXED, // .max_shards, which must be set
	// The largest number of shards with at least .partition_size bytes each (0: 256 KiB), but at
	// most .max_shards (0: 1).
	CHOIR_PARTITION_MIN_SIZE,
	// The smallest number of shards with at most .partition_size bytes each, which must be set,
	// or one row each if a row is larger; but at most .max_shards (0: no limit).
	CHOIR_PARTITION_MAX_SIZE
} choir_partition;

// An option that a kind of strategy does not have is CHOIR_INVALID.
typedef struct {
	size_t size;
	// Device names, "cpu:0,cpu:1": at most 1024, each once. NULL or "": those of the environment
	// variable CHOIR_DEVICES; without it one CPU device per replica, at most one per processor
	// available to this process. Devices without a replica stay idle.
	const char *devices;
	// Replicas of the job, at most 2^20. 0: one for each device named; 1 if none is named.
	int replicas;
	// Threads that share the work of a device: matrix products, attention, normalization, large
	// elementwise operations. 0: one thread, which may use an equal share of all processors if
	// threads are pinned (.pin). The bits do not depend on it.
	int cores_per_device;
	// Whether the strategy's threads are pinned; the caller's thread never is. Default: on if
	// the process was started with a narrowed affinity mask and has at least as many processors
	// as devices.
	choir_toggle pin;
	uint64_t seed; // of random numbers and random initial values
	// Seconds that a replica waits while no other replica arrives or returns, before the run
	// fails with CHOIR_TIMEOUT. 0: 60; CHOIR_FOREVER: no limit.
	double timeout;
	// The algorithm of sums between devices: "direct" (devices of host memory only), "ring",
	// "hierarchical_copy", "reduce_to_one_device", or a registered one
	// (extend/cross_device_ops_table.h), to the same bits. NULL: the one with the best score.
	// With a .cluster there is a single algorithm.
	const char *cross_device_ops;
	// Central storage, parameter server: the devices that hold variables. NULL: the device that
	// carries the replicas if there is only one, else cpu:0.
	const char *parameter_devices;
	// Its .implementation means the same as .cross_device_ops.
	const choir_communication_options *communication;
	// Parameter server: the number of workers, at most 1024; 0: 1. Replicas are divided among
	// them in contiguous blocks; the first ones have one more. Each has at least one.
	int workers;
	// Parameter server with several workers. On, the default: a worker reads, writes and updates
	// a variable under that variable's lock. Off: by relaxed atomics, on devices of host memory
	// only. A value that is read may then mix several updates, and one of two updates that write
	// an element at the same time may be lost. ON_READ variables and update functions always
	// take their locks.
	choir_toggle locked_updates;
	// Parameter server: how mirrored variables are cut into shards, which lie on the parameter
	// devices in turn; more than 4096 are CHOIR_INVALID. Never cut are scalars, variables
	// colocated with an uncut or a non-slot variable, and wrapped memory.
	choir_partition partition;
	int64_t partition_size; // bytes
	int max_shards;
	// Multi-worker mirrored: the workers. The cluster must outlive the strategy. .replicas
	// counts the replicas of all workers; .devices are this worker's. NULL: this process alone.
	choir_cluster *cluster;
	// Multi-worker mirrored, on: a separate thread exchanges large gradients with the other
	// workers during the backward pass, to the same bits. Default: the environment variable
	// CHOIR_OVERLAP ("on", "off"), else on if every worker has a processor that would be idle.
	// No effect on devices with memory of their own. Must be the same on all workers.
	choir_toggle overlap;
	// Multi-worker mirrored: how often the workers compare, by checksums, the values of mirrored
	// variables and the learning rates of optimizers, of which each has a copy. They also
	// compare them before each save. If a value differs the run or save fails with CHOIR_STATE,
	// naming the first variable or optimizer and two workers. The options of new layers are
	// compared, too. 0: after the 1st, 10th, 100th and every 1000th update; N: after each of the
	// first three and after every N-th; CHOIR_NONE: never. Must be the same on all workers.
	int64_t compare_steps;
} choir_strategy_options;

// The type of the constructors below. Free the result with choir_strategy_free. CHOIR_INVALID:
// an option, with its value. CHOIR_NOT_FOUND: an unknown device or cross-device operation.
// CHOIR_UNSUPPORTED: the cross-device operations cannot serve these devices. Or the reason why a
// device cannot be opened.
typedef choir_strategy *choir_strategy_constructor(const choir_strategy_options *o);

// Mirrored: any number of replicas on any number of devices, and the same value of a variable on
// all of them.
choir_strategy *choir_mirrored_strategy_new(const choir_strategy_options *o);

// One replica on one device. If CHOIR_DEVICES names several, it takes the first. CHOIR_INVALID:
// .replicas above 1, or several .devices.
choir_strategy *choir_one_device_strategy_new(const choir_strategy_options *o);

// Central storage: variables lie once, on one parameter device (.parameter_devices), which need
// not carry replicas. Devices that do not share its memory read copies, which are sent for each
// read. Writes of replicas are aggregated and written there. The result is mirrored's, bit for
// bit. CHOIR_INVALID: several parameter devices.
choir_strategy *choir_central_storage_strategy_new(const choir_strategy_options *o);

// Parameter server on one machine: several workers, each with its own replicas and its own loop,
// which do not wait for each other (choir_strategy_run_workers). Variables, or their shards
// (.partition), lie once, on the parameter devices in turn. A read is a copy, which updates of
// other workers do not change. Sums over a worker's replicas are applied where the variable
// lies, in the order in which they arrive. An ON_READ variable has a component for each replica
// of every worker.
//
// The strategy's own calls, such as choir_strategy_run, are those of its first worker. With one
// worker the result is mirrored's, bit for bit.
choir_strategy *choir_parameter_server_strategy_new(const choir_strategy_options *o);

// Mirrored over several workers, each a process with the same program (cluster.h). A variable
// has the same value on all devices of all workers, and all replicas are in step. Replicas are
// divided among the workers in contiguous blocks, the first ones larger by one, and then among
// devices; by default there is one for each device of all workers. The result is that of
// mirrored with as many replicas, bit for bit.
//
// All workers make the same calls in the same order, else CHOIR_STATE: those in replicas, those
// that make variables, and those outside of replicas that need all workers (reductions, results
// of metrics). If a worker fails, the others fail with CHOIR_CANCELLED and its reason, and the
// cluster is unusable. CHOIR_INVALID: fewer replicas than workers. CHOIR_STATE: options that
// differ.
choir_strategy *choir_multi_worker_mirrored_strategy_new(const choir_strategy_options *o);

// Makes a strategy of a kind by its name: "default" (a new one, which behaves as one_device),
// "one_device", "mirrored", "central_storage", "parameter_server", "multi_worker_mirrored", or a
// registered one (extend/strategy_table.h). CHOIR_NOT_FOUND: an unknown name.
choir_strategy *choir_strategy_new(const char *name, const choir_strategy_options *o);

// Makes a new strategy with s's kind and options. If s's options name no devices, CHOIR_DEVICES
// is read again. CHOIR_STATE: s is the default strategy.
choir_strategy *choir_strategy_copy_new(const choir_strategy *s);

// Frees s, its threads and all that belongs to it. None of its scopes may be entered, and no run
// may be under way. A run that a function left by an exception or longjmp (status.h) is ended
// first. choir_strategy_set_current of s is undone for the calling thread. The default strategy
// stays.
void choir_strategy_free(choir_strategy *s);

// The strategy of a program that names none: one replica, on the first device of CHOIR_DEVICES
// or on cpu:0. Made at the first call. Its scope cannot be inside another strategy's.
choir_strategy *choir_default_strategy(void);

// The calling thread's strategy and context

// The strategy of the innermost scope, replica, merge call or update of this thread. Outside of
// all, that of choir_strategy_set_current, else the default one. NULL: that cannot be made.
choir_strategy *choir_strategy_current(void);

// Whether the current strategy is not the default one.
bool choir_has_strategy(void);

// Whether this thread is in a scope, a merge call or an update, or has set a strategy and is
// outside of all contexts. False in a replica, the default one included.
bool choir_in_cross_replica_context(void);

// Makes s current for this thread outside of scopes and runs, until another strategy is set; s
// must live as long. NULL: the default replica again. CHOIR_STATE: inside a scope, replica,
// merge call or update.
CHOIR_MUST_CHECK choir_status choir_strategy_set_current(choir_strategy *s);

// Getters of strategies

// Replicas have two numbers. replica_id, in all headers, counts the replicas of the job, on all
// workers. local_replica counts those of this process, and is replica_id minus
// choir_strategy_first_replica_id. Without other workers both are equal.

// The number of replicas of the job. A replica_id is 0 to this - 1.
int choir_strategy_replicas(const choir_strategy *s);

// The number of replicas in this process, whose values sets (value.h) hold. A local_replica is 0
// to this - 1.
int choir_strategy_local_replicas(const choir_strategy *s);

// The replica_id of the first replica in this process.
int choir_strategy_first_replica_id(const choir_strategy *s);

// The number of devices that carry replicas, and the index-th of them, in the order of .devices.
int choir_strategy_worker_devices(const choir_strategy *s);
choir_device *choir_strategy_worker_device(const choir_strategy *s, int index);

// The index of d among the devices that carry replicas, or CHOIR_NONE.
int choir_strategy_worker_device_index(const choir_strategy *s, const choir_device *d);

// The kind of s, as choir_strategy_new names it: "mirrored".
const char *choir_strategy_name(const choir_strategy *s);

// The algorithm of sums between s's devices if a call names none, as .cross_device_ops:
// "direct". With a .cluster it is "workers".
const char *choir_strategy_cross_device_ops(const choir_strategy *s);

// The number of workers that choir_strategy_run_workers calls.
int choir_strategy_workers(const choir_strategy *s);

// The number of devices that hold variables, and the index-th of them. For mirrored and
// one-device these are the devices that carry replicas.
int choir_strategy_parameter_devices(const choir_strategy *s);
choir_device *choir_strategy_parameter_device(const choir_strategy *s, int index);

// Always false: shapes may differ from step to step, and between replicas unless a call says
// otherwise.
bool choir_strategy_require_static_shapes(const choir_strategy *s);

// Whether this process writes checkpoints and summaries: it is the first worker of a cluster, or
// a single process.
bool choir_strategy_is_chief(const choir_strategy *s);

// NULL: s is of this process alone.
choir_cluster *choir_strategy_cluster(const choir_strategy *s);

// Median wake-up latency, in seconds, of the thread of .overlap, measured when s was made. 0:
// there is no such thread.
double choir_strategy_overlap_latency(const choir_strategy *s);

bool choir_strategy_variable_created_in_scope(const choir_strategy *s, const choir_variable *v);

// Runs

// Calls fn once for each local replica. Devices run at the same time, the first on the calling
// thread, so fn only reads what user points to, or writes parts of it that belong to one
// replica. Returns when all replicas have returned and the updates that they asked for are done.
// It may also be called in a merge function (see choir_cross_run).
//
// args: a set of s in which choir_replica_arg finds leaves, or NULL. results: NULL drops what
// replicas return. Otherwise *results is NULL, and becomes a new set (free it with
// choir_values_free); or it is an earlier set other than args, which is cleared and filled
// again. Results of one name are one leaf (docs/rules.md, section 6). After a failure the set is
// empty.
//
// Fails with the failure of the lowest replica that failed by itself. A failure that fn ignored
// counts as well, if its frame has it. Variables that an update was changing are undefined after
// a failure (variable.h); s can run again. The run's own failures:
// - CHOIR_INVALID: a set of another strategy, a leaf without a value for some replica.
// - CHOIR_STATE: the thread is not in cross-replica context, or in that of another strategy, or
//   in an update; another run of s is under way; replicas diverged, or returned different names;
//   a function left without returning (status.h).
// - CHOIR_TIMEOUT: a replica waited too long for another (.timeout). A function that never
//   returns cannot be stopped.
CHOIR_MUST_CHECK choir_status choir_strategy_run(choir_strategy *s, choir_replica_fn *fn,
		void *user, choir_values *args, choir_values **results);

// The function of one worker: a loop that runs group, the strategy of the worker's own replicas.
// group is current and must not be freed. Variables made in it belong to the parameter server
// strategy.
typedef choir_status choir_worker_fn(choir_strategy *group, int worker, void *user);

// Calls fn once for each worker, all at the same time: the first on the calling thread, the
// others on threads of their own. Returns when all have returned. A strategy that is no
// parameter server is its own only worker.
//
// If fn returns a failure in one worker, the next run of every other worker is CHOIR_CANCELLED.
// Fails with the failure of the lowest worker that failed by itself. A worker that never returns
// cannot be stopped. CHOIR_STATE: the thread is not in cross-replica context, or in that of
// another strategy; workers of s are running already.
CHOIR_MUST_CHECK choir_status choir_strategy_run_workers(
		choir_strategy *s, choir_worker_fn *fn, void *user);

// Reduces v over replicas to one tensor for the program. The result is in v's frame, or, if v is
// a variable's own value (choir_variable_as_value), in the frame of choir_strategy_cross. Sums
// are made in the canonical tree (docs/rules.md, section 8).
//
// With CHOIR_NO_AXIS v's tensors (of an ON_READ variable its components) have one shape. MEAN
// divides by the number of replicas, or by the sum of the counts if all tensors have one
// (choir_with_count). A value that is the same for all replicas (plain, mirrored, a mirrored
// variable) is its own mean; its SUM is CHOIR_INVALID, unless it is the number 0 or there is one
// replica.
//
// With axes each replica first sums along them, which removes them. MEAN then divides by the
// number of elements that all replicas summed, so parts may be unequal or empty. A value that is
// the same for all counts once for each replica.
//
// SUM keeps the dtype: f32, f64, i32, i64 or u8. Integers wrap; in a debug build of Choir a sum
// of u8 above 255 is CHOIR_INVALID. MEAN keeps f32 and f64, gives f64 for i32 and i64, and f32
// for u8 and bool. Other dtypes: CHOIR_UNSUPPORTED.
//
// v's frame keeps a failure. CHOIR_INVALID also: an unknown op, a destination, a value of
// another number of replicas, shapes or dtypes that differ, counts of some tensors only.
// CHOIR_STATE: in a replica, or in another strategy's context.
choir_tensor *choir_strategy_reduce(
		choir_strategy *s, choir_reduce_op op, choir_value *v, choir_axes axes);

// The program's own cross-replica context, for the calls of cross.h; in a merge function that of
// the merge call. The same object each time. The program empties its frame (choir_frame_clear),
// but not between setting arguments and the run or update that uses them. CHOIR_STATE: in a
// replica, or in another strategy's context.
choir_cross *choir_strategy_cross(choir_strategy *s);

CHOIR_C_END
