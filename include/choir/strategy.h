// Strategies place replicas on devices and keep them in step. Calls inside of a run are in
// replica.h, cross.h and update.h.
//
// Each device carries a block of consecutive replicas. With R replicas on P devices the first R
// mod P blocks have one replica more. The replicas of a device run one after another, in the order
// of their ids. A run's result depends on the program, the seed, R and the global batch, not on P.
//
// Errors: after a fork the child process can only free a strategy that the parent made, the
// default one included. Running it, entering its scope or making a variable in it fails with
// CHOIR_STATE.
// Threads: any thread may call constructors and getters. Other calls of a strategy must come from
// one thread at a time.
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
	// Each row once, in ascending order, with the value that the dense sum would have.
	CHOIR_SLICES_MERGED,
	// Merged rows, or the dense tensor if that takes fewer bytes.
	CHOIR_SLICES_SMALLEST
} choir_slices_result;

// How values travel between devices. Only .slices changes results, and only their form. A field
// that is 0 means the strategy's option; if that is 0, too, Choir chooses.
typedef struct {
	size_t size;
	// Values of a batch (choir_cross_batch_reduce_to) with the same dtype, divisor and destination
	// are concatenated to packs. bytes_per_pack: whole values are added to a pack until it is
	// larger than this. num_packs: the number of packs. All but the last have the same length (one
	// pack if there are fewer elements). If both are 0, each value travels by itself. At most one
	// of the two may be set.
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
	// The smallest number of shards with at most .partition_size bytes each, or one row each if a
	// row is larger; but at most .max_shards (0: no limit). .partition_size must be set.
	CHOIR_PARTITION_MAX_SIZE
} choir_partition;

// An option that the kind of strategy does not have is CHOIR_INVALID.
typedef struct {
	size_t size;
	// Device names, "cpu:0,cpu:1": at most 1024, each once. NULL or "": the devices named by the
	// environment variable CHOIR_DEVICES. If it is not set: one CPU device per replica, at most
	// one per processor available to this process. Devices without a replica stay idle.
	const char *devices;
	// The number of replicas of the job, at most 2^20. 0: one for each named device, or 1 if no
	// device is named.
	int replicas;
	// The number of threads that share a device's matrix products, attention, normalization and
	// large elementwise operations. 0: one thread, which may use an equal share of all processors
	// if threads are pinned (.pin). The bits do not depend on this number.
	int cores_per_device;
	// Whether the strategy's threads are pinned; the caller's thread never is. Default: on if
	// the process was started with a narrowed affinity mask and has at least as many processors
	// as devices.
	choir_toggle pin;
	uint64_t seed; // of random numbers and random initial values
	// A run fails with CHOIR_TIMEOUT after a replica has waited for this many seconds in which no
	// other replica arrived or returned. 0: 60; CHOIR_FOREVER: no limit.
	double timeout;
	// The algorithm that sums between devices: "direct" (devices of host memory only), "ring",
	// "hierarchical_copy", "reduce_to_one_device", or a registered one
	// (extend/cross_device_ops_table.h). All give the same bits. NULL: the one with the best
	// score. A strategy with a .cluster has a single algorithm.
	const char *cross_device_ops;
	// Central storage, parameter server: the devices that hold variables. NULL: if a single device
	// carries all replicas, this device, else cpu:0.
	const char *parameter_devices;
	// How values travel. .implementation means the same as .cross_device_ops.
	const choir_communication_options *communication;
	// Parameter server: the number of workers, at most 1024; 0: 1. Each worker has a block of
	// consecutive replicas, at least one. The first blocks may have one more.
	int workers;
	// Parameter server with several workers. On (default): a worker reads, writes and updates a
	// variable under the variable's lock. Off: workers use relaxed atomics instead, on devices of
	// host memory only. Then a read may mix several updates. If two updates write an element at
	// the same time, one may be lost. ON_READ variables and update functions always use locks.
	choir_toggle locked_updates;
	// Parameter server: how mirrored variables are cut into shards, at most 4096 each (else
	// CHOIR_INVALID). The shards lie on the parameter devices in turn. Scalars, wrapped memory,
	// and variables colocated with an uncut or a non-slot variable are never cut.
	choir_partition partition;
	int64_t partition_size; // bytes
	int max_shards;
	// Multi-worker mirrored: the cluster of workers, which must outlive the strategy. .devices are
	// those of this worker. NULL: this process is the only worker.
	choir_cluster *cluster;
	// Multi-worker mirrored. On: a separate thread exchanges large gradients with the other
	// workers during the backward pass, with the same bits. Default: the environment variable
	// CHOIR_OVERLAP ("on", "off"). If it is not set: on if every worker has a processor that would
	// be idle. .overlap has no effect on devices with memory of their own, and must be the same on
	// all workers.
	choir_toggle overlap;
	// Multi-worker mirrored: how often the workers compare, by checksums, their copies of mirrored
	// variables and of the learning rates of optimizers. They also do so before each save. If a
	// copy differs, the run or save fails with CHOIR_STATE and names the first variable or
	// optimizer and two workers. The options of new layers are compared, too. 0: after the 1st,
	// 10th, 100th and every 1000th update; N: after each of the first three updates and after
	// every N-th; CHOIR_NONE: never. It must be the same on all workers.
	int64_t compare_steps;
} choir_strategy_options;

// The type of the constructors below. Free the result with choir_strategy_free. CHOIR_INVALID: an
// invalid option. CHOIR_NOT_FOUND: an unknown device or cross-device operation. CHOIR_UNSUPPORTED:
// the cross-device operations cannot serve these devices. A constructor also fails if a device
// cannot be opened.
typedef choir_strategy *choir_strategy_constructor(const choir_strategy_options *o);

// Makes a mirrored strategy: any number of replicas on any number of devices. A variable has the
// same value on all of them.
choir_strategy *choir_mirrored_strategy_new(const choir_strategy_options *o);

// Makes a strategy of one replica on one device. If CHOIR_DEVICES names several devices, it takes
// the first. CHOIR_INVALID: .replicas is above 1, or .devices names several.
choir_strategy *choir_one_device_strategy_new(const choir_strategy_options *o);

// Makes a central storage strategy. Each variable has one copy, on the parameter device
// (.parameter_devices), which need not carry replicas. Devices that do not share its memory get a
// copy for each read. Writes of replicas are aggregated and applied on that device. Results are
// those of mirrored, bit for bit. CHOIR_INVALID: several parameter devices.
choir_strategy *choir_central_storage_strategy_new(const choir_strategy_options *o);

// Makes a parameter server strategy, on one machine. Its workers do not wait for each other; each
// has its own replicas and loop (choir_strategy_run_workers). Each variable or shard (.partition)
// has one copy; the copies lie on the parameter devices in turn. A read is a copy, which updates
// of other workers do not change. Sums over a worker's replicas are applied on the variable's
// device, in the order in which they arrive. An ON_READ variable has a component for each replica
// of every worker.
//
// Calls on the strategy itself, such as choir_strategy_run, act for its first worker. With one
// worker results are those of mirrored, bit for bit.
choir_strategy *choir_parameter_server_strategy_new(const choir_strategy_options *o);

// Makes a mirrored strategy over several workers, each a process with the same program
// (cluster.h). A variable has the same value on all devices of all workers, and all replicas run
// in step. Replicas are divided in contiguous blocks among the workers, and then among their
// devices; the first blocks may have one replica more. By default there is one replica for each
// device of all workers. Results are those of mirrored with as many replicas, bit for bit.
//
// All workers must make these calls in the same order, else CHOIR_STATE: calls in replicas, calls
// that make variables, and those outside of replicas that need all workers (reductions, results of
// metrics). If a worker fails, the others fail with CHOIR_CANCELLED and its reason, and the
// cluster cannot be used again. CHOIR_INVALID: fewer replicas than workers. CHOIR_STATE: options
// that differ.
choir_strategy *choir_multi_worker_mirrored_strategy_new(const choir_strategy_options *o);

// Makes a strategy of a kind by its name: "default" (a new strategy like one_device),
// "one_device", "mirrored", "central_storage", "parameter_server", "multi_worker_mirrored", or a
// registered one (extend/strategy_table.h). CHOIR_NOT_FOUND: an unknown name.
choir_strategy *choir_strategy_new(const char *name, const choir_strategy_options *o);

// Makes a new strategy with s's kind and options. If s's options name no devices, CHOIR_DEVICES
// is read again. CHOIR_STATE: s is the default strategy.
choir_strategy *choir_strategy_copy_new(const choir_strategy *s);

// Frees s, its threads and all that belongs to s. No scope of s may be open, and no run of s under
// way, except one that a function left by an exception or longjmp (status.h). This run is ended
// first. choir_strategy_set_current of s is undone for the calling thread. The default strategy is
// never freed.
void choir_strategy_free(choir_strategy *s);

// The strategy of a program that makes none: one replica, on the first device of CHOIR_DEVICES or
// on cpu:0. It is made at the first call. Its scope cannot be inside another strategy's.
choir_strategy *choir_default_strategy(void);

// The calling thread's strategy and context

// The strategy of the innermost scope, replica, merge call or update of this thread. Outside of
// all these, the strategy of choir_strategy_set_current, or else the default one. NULL: the
// default one cannot be made.
choir_strategy *choir_strategy_current(void);

// Whether the current strategy is not the default one.
bool choir_has_strategy(void);

// Whether this thread is in a scope, a merge call or an update, or is outside of all contexts and
// has set a strategy. It is false in a replica, the default one included.
bool choir_in_cross_replica_context(void);

// Makes s current for this thread outside of scopes and runs, until another strategy is set. s
// must live until then. NULL: the thread is in the default replica again. CHOIR_STATE: the thread
// is inside a scope, replica, merge call or update.
CHOIR_MUST_CHECK choir_status choir_strategy_set_current(choir_strategy *s);

// Getters of strategies

// In all headers a replica has two numbers, both counted from 0. replica_id is its number among
// all replicas of the job, on all workers. local_replica is its number among those of this
// process: replica_id minus choir_strategy_first_replica_id.

// The number of replicas of the job.
int choir_strategy_replicas(const choir_strategy *s);

// The number of replicas in this process. Sets (value.h) hold values of these only.
int choir_strategy_local_replicas(const choir_strategy *s);

// The replica_id of the first replica in this process.
int choir_strategy_first_replica_id(const choir_strategy *s);

// The number of devices that carry replicas, and the index-th of them, in the order of .devices.
int choir_strategy_worker_devices(const choir_strategy *s);
choir_device *choir_strategy_worker_device(const choir_strategy *s, int index);

// The index of d among the devices that carry replicas, or CHOIR_NONE.
int choir_strategy_worker_device_index(const choir_strategy *s, const choir_device *d);

// The kind of s, as choir_strategy_new names it, for example "mirrored".
const char *choir_strategy_name(const choir_strategy *s);

// The algorithm that sums between s's devices if a call names none, for example "direct". With a
// .cluster it is "workers".
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

// The .cluster of s. NULL: s has none.
choir_cluster *choir_strategy_cluster(const choir_strategy *s);

// Median wake-up latency, in seconds, of the thread of .overlap, measured when s was made. 0:
// there is no such thread.
double choir_strategy_overlap_latency(const choir_strategy *s);

bool choir_strategy_variable_created_in_scope(const choir_strategy *s, const choir_variable *v);

// Runs

// Calls fn once for each local replica. Devices run at the same time, the first on the calling
// thread. So fn may only read what user points to, or write parts of it that belong to its
// replica. Returns when all replicas have returned and the updates that they asked for are done.
// It may also be called in a merge function (see choir_cross_run).
//
// args: a set of s in which choir_replica_arg finds leaves, or NULL. results: NULL drops what
// replicas return. If *results is NULL, it becomes a new set (free it with choir_values_free).
// Otherwise it is a set other than args, which is cleared and filled again. Results of one name
// become one leaf (docs/rules.md, section 6). After a failure the set is empty.
//
// Fails with the failure of the lowest replica_id that failed by itself. A failure in a replica's
// frame counts even if fn ignored it. After a failure variables that an update was changing are
// undefined (variable.h); s can run again. The run's own failures:
// - CHOIR_INVALID: a set belongs to another strategy; a leaf has no value for some replica.
// - CHOIR_STATE: the thread is in a replica, in an update, or in another strategy's context;
//   another run of s is under way; replicas made different calls, or returned different names; a
//   function was left by an exception or longjmp (status.h).
// - CHOIR_TIMEOUT: a replica waited too long for another (.timeout). A function that never
//   returns cannot be stopped.
CHOIR_MUST_CHECK choir_status choir_strategy_run(choir_strategy *s, choir_replica_fn *fn,
		void *user, choir_values *args, choir_values **results);

// The function of one worker: a loop that runs group, the strategy of the worker's own replicas.
// group is the thread's current strategy and must not be freed. Variables made in it belong to the
// parameter server strategy.
typedef choir_status choir_worker_fn(choir_strategy *group, int worker, void *user);

// Calls fn for all workers at the same time: the first on the calling thread, each other on its
// own thread. Returns when all have returned. If s is no parameter server, there is one worker,
// and group is s.
//
// If fn returns a failure in one worker, the next run of every other worker is CHOIR_CANCELLED.
// Fails with the failure of the lowest worker that failed by itself. A worker that never returns
// cannot be stopped. CHOIR_STATE: in a replica, or in another strategy's context; workers of s are
// running already.
CHOIR_MUST_CHECK choir_status choir_strategy_run_workers(
		choir_strategy *s, choir_worker_fn *fn, void *user);

// Reduces v over replicas to one tensor for the program. The result is in v's frame, or, if v is
// a variable's own value (choir_variable_as_value), in the frame of choir_strategy_cross. Sums
// are made in the canonical tree (docs/rules.md, section 8).
//
// With CHOIR_NO_AXIS the tensors of v (components, if v is an ON_READ variable) must have the same
// shape. MEAN divides by the number of replicas, or by the sum of the counts if all tensors have
// one (choir_with_count). A value that is the same for all replicas (plain, mirrored, a mirrored
// variable) is its own mean; its SUM is CHOIR_INVALID, unless it is the number 0 or there is one
// replica.
//
// With axes each replica first sums along them, which removes them. MEAN then divides by the
// number of elements that all replicas summed, so parts may be unequal or empty. A value that is
// the same for all replicas counts once for each.
//
// SUM keeps the dtype: f32, f64, i32, i64 or u8. Integers wrap; in a debug build of Choir a sum
// of u8 above 255 is CHOIR_INVALID. MEAN keeps f32 and f64, gives f64 for i32 and i64, and f32
// for u8 and bool. Other dtypes: CHOIR_UNSUPPORTED.
//
// v's frame keeps a failure. CHOIR_INVALID also: op is unknown; v is a destination or has another
// number of replicas; shapes or dtypes differ; only some tensors have a count. CHOIR_STATE: in a
// replica, or in another strategy's context.
choir_tensor *choir_strategy_reduce(
		choir_strategy *s, choir_reduce_op op, choir_value *v, choir_axes axes);

// The program's own cross-replica context, for the calls of cross.h. It is the same object each
// time. In a merge function it is the merge call's context. The program empties the frame
// (choir_frame_clear), but not between setting arguments and the run or update that uses them.
// CHOIR_STATE: in a replica, or in another strategy's context.
choir_cross *choir_strategy_cross(choir_strategy *s);

CHOIR_C_END
