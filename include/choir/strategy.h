// Strategies: the rule that puts replicas on devices and keeps them in step, and what a program
// does with one outside of replicas. Replicas are logical (docs/decisions/0007): how many there
// are belongs to the training, as the batch size does, and on how many devices they run to the
// machine. With R replicas on P devices the first R mod P devices carry one more, in contiguous
// blocks; the replicas of a device run one after another, in the order of their ids. What a run
// computes depends on the program, the seed, R and the global batch, not on P.
//
// Ownership: variables, layers, optimizers, metrics and distributed datasets belong to the
// strategy that is current where they are made, and are freed with it. Devices are nobody's.
// Errors: constructors return NULL, and choir_error says why; getters cannot fail. In a child
// after a fork a strategy made before it, the default one too, can be freed; to run it, enter
// its scope or make a variable in it is CHOIR_STATE (docs/decisions/0011).
// Threads: constructors and getters, any; a scope, the thread that entered it; the rest, one at
// a time for a strategy. Two strategies may run at the same time on two threads.
#pragma once

#include "cluster.h"
#include "replica.h"

CHOIR_C_BEGIN

// Strategies

// What slices (tensor.h) become when they are reduced: the replicas' rows one behind another, in
// the order of replicas, as they are; or each row once, in ascending order, with the sum that the
// larger tensors would have; or that, or the larger tensor itself where it takes fewer bytes.
typedef enum {
	CHOIR_SLICES_CONCATENATED = 0,
	CHOIR_SLICES_MERGED,
	CHOIR_SLICES_SMALLEST
} choir_slices_result;

// How values travel between devices: hints, which change no result but the form of slices. Fields
// that are 0 say nothing: then what the strategy was made with holds, or else Choir's own choice.
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	// The values of a batch (choir_cross_batch_reduce_to) are laid one behind another, those of a
	// dtype, divisor and destination together, and travel in packs. bytes_per_pack: whole values,
	// until a pack is larger than that; num_packs: so many packs of equal length, the last with
	// the rest (one pack if elements are fewer). Both 0: each value by itself. Not both at once.
	int64_t bytes_per_pack, num_packs;
	double timeout; // seconds that a collective may take: CHOIR_TIMEOUT then; CHOIR_NONE: any
	const char *implementation; // as .cross_device_ops below, or "auto": the strategy's
	choir_slices_result slices;
} choir_communication_options;

// How many shards a variable is cut into, along axis 0 (variable.h). There are never more than it
// has rows; one is none, the variable is whole then.
typedef enum {
	CHOIR_PARTITION_NONE = 0,
	CHOIR_PARTITION_FIXED, // .max_shards, which is needed
	// As many as there can be of at least .partition_size bytes each (0: 256 KiB), and no more
	// than .max_shards (0: 1).
	CHOIR_PARTITION_MIN_SIZE,
	// As many as are needed for each to have at most .partition_size bytes, which are needed, or
	// one row, where that is larger; but no more than .max_shards (0: any number).
	CHOIR_PARTITION_MAX_SIZE
} choir_partition;

// One struct for all kinds; what a kind cannot do is CHOIR_INVALID there.
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	// "cpu:0,cpu:1": at most 1024, none twice. NULL or "": those of the environment variable
	// CHOIR_DEVICES, else as many of cpu:0, cpu:1, ... as there are replicas, but no more than
	// this process may use processors. Devices for which there is no replica stay idle.
	const char *devices;
	// Of the job, at most 2^20. 0: one for each device named; 1 if none is named.
	int replicas;
	// How many threads share the work of a device: products, attention and norms by rows or
	// examples, elementwise operations of large tensors (docs/decisions/0063). 0: one; where
	// threads are pinned, each device's then to an equal share of all processors, at least 1.
	// The bits do not depend on it.
	int cores_per_device;
	// Whether the strategy's threads are pinned; the caller's never is (docs/decisions/0010).
	// By default only where the process was started with a narrowed affinity mask, and there
	// are no more devices than processors.
	choir_toggle pin;
	uint64_t seed; // of random numbers and random initial values (docs/decisions/0013)
	// Seconds that a replica waits while no other comes or returns: CHOIR_TIMEOUT then. 0: 60;
	// CHOIR_NONE: for ever.
	double timeout;
	// How sums travel: "direct" (devices of host memory only), "ring", "hierarchical_copy",
	// "reduce_to_one_device", or what was registered (extend/cross.h). All give the same bits.
	// NULL: those of the best score for these devices. Among several workers (.cluster) there is
	// one way, and only the name is checked.
	const char *cross_device_ops;
	// Central storage, parameter server: the devices that hold variables, as .devices. NULL: the
	// device that carries the replicas if there is one, else cpu:0.
	const char *parameter_devices;
	// Copied; NULL: all defaults. Its implementation is another word for cross_device_ops.
	const choir_communication_options *communication;
	// Parameter server: workers, at most 1024, among which the replicas are dealt in contiguous
	// blocks, the first larger by one; there is at least one for each. 0: 1.
	int workers;
	// Parameter server with several workers, on: each reads, writes and updates a variable under a
	// lock of that variable. Off: without, by relaxed atomics: each element is whole, but a value
	// may be made of several updates, and what two workers do to an element at the same time may
	// lose one of the two. Off needs parameter devices of host memory; on-read variables and the
	// functions of updates have their locks all the same.
	choir_toggle locked_updates;
	// Parameter server: whether mirrored variables are cut into shards, which lie on parameter
	// devices in turn. Scalars, what is colocated with a whole variable or lies with the non-slot
	// ones, and memory that was wrapped stay whole. A variable that would have more than 4096
	// shards cannot be made.
	choir_partition partition;
	int64_t partition_size; // bytes
	int max_shards;
	// Multi-worker mirrored: the workers, which outlive the strategy. .replicas is then the number
	// of replicas of all of them, .devices are this worker's. NULL: this process alone.
	choir_cluster *cluster;
	// Multi-worker mirrored: on, large gradients are exchanged with the other workers while the
	// backward pass goes on, by a thread of its own. The bits do not depend on it. By default
	// where the environment variable CHOIR_OVERLAP says on, and not where it says off; else where
	// all workers have a processor that would be idle. No effect where devices have memory of
	// their own. The same on all workers.
	choir_toggle overlap;
	// Multi-worker mirrored: after so many updates the workers compare what each keeps a copy of,
	// the values of mirrored variables and the learning rates of optimizers, and before each save,
	// too; a run or save in which some differ is CHOIR_STATE, which names the first variable or
	// optimizer and two workers. They compare the options of new layers, too: of each that has
	// variables of its own, and before the first update of sequential and residual layers with
	// variables inside. It takes a checksum of the variables and a message. 0: after the 1st,
	// 10th, 100th and every 1000th update; N: after the first three and every N-th; CHOIR_NONE:
	// never.
	// The same on all workers.
	int64_t compare_steps;
} choir_strategy_options;

// What makes a strategy from options, for tables of kinds. *o is copied, with its texts; NULL:
// all defaults. To be freed by choir_strategy_free. NULL after a failure: CHOIR_INVALID, for an
// option that cannot be, with its value; CHOIR_NOT_FOUND for a device or cross-device
// operations of which there are none of that name, with a list; CHOIR_UNSUPPORTED for
// cross-device operations that cannot serve these devices; CHOIR_NO_MEMORY; or why a device
// cannot be opened.
typedef choir_strategy *choir_strategy_constructor(const choir_strategy_options *o);

// Any number of replicas on any number of devices; a mirrored variable has the same value on
// all of them.
choir_strategy *choir_mirrored_strategy_new(const choir_strategy_options *o);

// One replica on one device. CHOIR_INVALID: .replicas above 1, or several .devices; of several
// in CHOIR_DEVICES it takes the first.
choir_strategy *choir_one_device_strategy_new(const choir_strategy_options *o);

// Central storage: variables lie once, on one parameter device (.parameter_devices), which need
// not carry replicas; devices that do not share its memory read copies, and what replicas write is
// aggregated and written there. It computes what mirrored computes, to the bit, with one copy in
// place of one on each device, and sends values out for each read. CHOIR_INVALID: several
// parameter devices.
choir_strategy *choir_central_storage_strategy_new(const choir_strategy_options *o);

// Parameter server on one machine: workers, each with its own replicas and its own loop, that do
// not wait for each other (choir_strategy_run_workers). Variables, or their shards (.partition),
// lie once, each on the next of the parameter devices; reads are copies, which other workers'
// updates leave as they are (choir_variable_gather copies its rows alone), and sums over a
// worker's replicas are applied where the variable lies, when they come. The strategy's own calls
// are for its first worker: choir_strategy_replicas counts that worker's replicas, and
// choir_strategy_run runs them. With one worker the result is mirrored's, bit for bit. An on-read
// variable has a part for each replica of every worker.
choir_strategy *choir_parameter_server_strategy_new(const choir_strategy_options *o);

// Mirrored over several workers, one program each (cluster.h): a variable has the same value on
// all devices of all workers, and all replicas are in step. They are dealt to the workers in
// contiguous blocks, the first larger by one, and there to devices as everywhere; where none are
// asked for there are as many as all workers have devices. What a program computes is what
// mirrored computes with as many replicas, to the bit, however many workers there are. All workers
// make the same calls in the same order: those of replicas, those that make variables, and those
// outside of replicas that need all of them (reductions, metrics' results). One that differs is
// CHOIR_STATE, and names both workers; a failure of one is CHOIR_CANCELLED with its reason for the
// others, and after it there is nothing more that they can do together. Without .cluster it is
// mirrored. CHOIR_INVALID: fewer replicas than workers; CHOIR_STATE: options that differ.
choir_strategy *choir_multi_worker_mirrored_strategy_new(const choir_strategy_options *o);

// A strategy of the kind called name: "default" (a new one, which behaves as one_device),
// "one_device", "mirrored", "central_storage", "parameter_server", "multi_worker_mirrored", or
// what was registered (extend/strategy.h). Fails as a constructor, and with CHOIR_NOT_FOUND for
// an unknown name, with a list.
choir_strategy *choir_strategy_new(const char *name, const choir_strategy_options *o);

// A new strategy of s's kind and options, without its variables and the like; where s's options
// name no devices, CHOIR_DEVICES is asked again. Fails as a constructor, and with CHOIR_STATE
// for the default strategy.
choir_strategy *choir_strategy_copy_new(const choir_strategy *s);

// Frees s, its threads, and what belongs to it. No run of it may be under way, other than one
// that was left (status.h) and is ended first, and none of its scopes entered;
// where it is the calling thread's choir_strategy_set_current, that is undone.
// NULL is fine; the default strategy stays.
void choir_strategy_free(choir_strategy *s);

// The strategy in which a program is that knows of none: one replica, on the first device of
// CHOIR_DEVICES or on cpu:0. Made when it is first asked for; not to be freed. Its scope cannot
// be inside another strategy's. NULL after a failure, as a constructor's.
choir_strategy *choir_default_strategy(void);

// Where this thread is

// The strategy of the innermost scope, replica, merge call or update that this thread is in,
// else that of choir_strategy_set_current, else the default one. NULL only where that cannot be
// made.
choir_strategy *choir_strategy_current(void);

// Whether the current strategy is another than the default one.
bool choir_has_strategy(void);

// Whether this thread is in a scope, a merge call or an update, or, outside of all, has set a
// strategy; false in a replica, also in the default one.
bool choir_in_cross_replica_context(void);

// Makes s the strategy of what this thread does outside of scopes and runs, as in a scope that
// is not left; NULL: the default replica again. s must stay until another is set. CHOIR_STATE:
// inside a scope, replica, merge call or update.
CHOIR_MUST_CHECK choir_status choir_strategy_set_current(choir_strategy *s);

// Looking at strategies

// Replicas of the job, of all its workers; ids are 0 to this - 1. 0 for NULL.
int choir_strategy_replicas(const choir_strategy *s);

// Those of them that are in this process: sets of values (value.h) have these, in the order of
// their ids. 0 for NULL.
int choir_strategy_local_replicas(const choir_strategy *s);

// The id of the first of those. 0 for NULL.
int choir_strategy_first_replica(const choir_strategy *s);

// Devices that carry at least one replica. 0 for NULL.
int choir_strategy_worker_devices(const choir_strategy *s);

// The index-th device that carries replicas, in the order in which they were named. NULL: there
// is none of that index, or s is NULL.
choir_device *choir_strategy_worker_device(const choir_strategy *s, int index);

// Which of the worker devices d is. CHOIR_NONE: none of them, or s is NULL.
int choir_strategy_worker_device_index(const choir_strategy *s, const choir_device *d);

// What kind s is: "mirrored". "" for NULL.
const char *choir_strategy_name(const choir_strategy *s);

// The algorithm by which sums travel between s's devices where a call names none, as
// .cross_device_ops: "direct". Over several workers (.cluster) it is "workers", Choir's own for
// these. The text lives as long as s. "" for NULL.
const char *choir_strategy_cross_device_ops(const choir_strategy *s);

// Workers that choir_strategy_run_workers calls. 0 for NULL.
int choir_strategy_workers(const choir_strategy *s);

// Devices that hold variables: for mirrored and one-device the worker devices. 0 for NULL.
int choir_strategy_parameter_devices(const choir_strategy *s);

// The index-th device that holds variables. NULL: there is none, or s is NULL.
choir_device *choir_strategy_parameter_device(const choir_strategy *s, int index);

// Whether all steps must have the same shapes: false. Shapes may differ from step to step, and
// between replicas where a call does not say otherwise.
bool choir_strategy_require_static_shapes(const choir_strategy *s);

// Whether this process is the one that writes checkpoints and summaries: the first worker of its
// cluster, or alone. False for NULL.
bool choir_strategy_is_chief(const choir_strategy *s);

// The workers that s is in step with. NULL: none, s is of this process alone, or s is NULL.
choir_cluster *choir_strategy_cluster(const choir_strategy *s);

// Seconds in which the thread that exchanges gradients beside the backward pass (.overlap) woke up
// and answered when s was made, the median of several times: what handing it one costs at most.
// 0: there is no such thread, or s is NULL.
double choir_strategy_overlap(const choir_strategy *s);

// Whether v was made in s. False for NULL.
bool choir_strategy_variable_created_in_scope(const choir_strategy *s, const choir_variable *v);

// Scopes

// A scope says in which strategy, and how, this thread makes variables and what is made of
// them, from enter to exit; scopes nest. This is the program's memory: it needs no initial
// value for the calls that enter, and stays where it is until the exit.
typedef struct {
	void *hidden[4];
} choir_scope;

// Enters s's scope. CHOIR_STATE: the thread is in a replica or an update, or in a scope or
// merge call of another strategy, or has set another one. CHOIR_INVALID: s is NULL. Where
// entering fails there is nothing to leave.
CHOIR_MUST_CHECK choir_status choir_scope_enter(choir_scope *scope, choir_strategy *s);

// From here on variables are made beside a variable of the current strategy, of which
// choir_variable_value is with: its update function may write them, too (docs/decisions/0018). Or
// with is the place of non-slot variables (choir_cross_non_slot_devices), for those. CHOIR_STATE:
// this thread is in no scope and no replica; CHOIR_INVALID: with is neither, or of another
// strategy.
CHOIR_MUST_CHECK choir_status choir_scope_colocate(choir_scope *scope, choir_value *with);

// From here on variables are ON_READ, with this aggregation, and not trainable, whatever their
// options say. CHOIR_STATE: this thread is in no scope and no replica.
CHOIR_MUST_CHECK choir_status choir_scope_replica_local(
		choir_scope *scope, choir_aggregation aggregation);

// From here on to read an ON_READ variable in a replica gives what reading it outside replicas
// gives, the sum, mean or replica 0's part: each such read is a meeting of all replicas
// (docs/rules.md, section 1), in a parameter server of all of their worker, which so get what
// their own parts give. Of components and writes nothing changes. Outside replicas, where reads
// are of the whole, there is no difference. CHOIR_NO_MEMORY.
CHOIR_MUST_CHECK choir_status choir_scope_sync_on_read(choir_scope *scope);

// Leaves scope. CHOIR_STATE: entering it failed, or it has been left; or one that was entered
// later is still open: then scope stays, and can be left after that one. A replica, merge or
// update function that returns with scopes open fails with CHOIR_STATE, and they are closed.
choir_status choir_scope_exit(choir_scope *scope);

// CHOIR_SCOPE (s) { ... } runs the block in s's scope. Any way out leaves the scope: its end,
// return, goto, and break and continue, which leave the block, not a loop around it. If s's
// scope cannot be entered the block is skipped, and choir_error says why.
#define CHOIR_SCOPE(strategy) CHOIR_SCOPE_(strategy, __LINE__)
#define CHOIR_SCOPE_(strategy, line) CHOIR_SCOPE_AT_(strategy, line)
#define CHOIR_SCOPE_AT_(strategy, line) \
	for (choir_scope scope_##line##_ __attribute__((cleanup(choir_scope_leave))) = { { NULL } }; \
			choir_scope_once(&scope_##line##_, strategy);)

// For CHOIR_SCOPE: enters, the first time it is called with a scope that began as zeros.
// Whether it has.
bool choir_scope_once(choir_scope *scope, choir_strategy *s);

// For CHOIR_SCOPE: leaves scope, if it was entered.
void choir_scope_leave(choir_scope *scope);

// Running

// Calls fn once for each local replica, each with user, on its device: at the same time on
// several devices, one after another on one, the first device's on the calling thread. So what
// user points to is only read, or each replica's own. Returns when all have returned and the
// updates that they asked for are done. Also possible in a merge function, whose replicas wait
// meanwhile (choir_cross_run is the same with the merge call's sets).
//
// args is the set in which choir_replica_arg finds leaves, a set of s; it may be NULL, and is
// not changed. results may be NULL: then what replicas return is dropped. *results is NULL, and
// becomes a new set (choir_values_free), or an earlier one, not args, which is cleared and
// refilled: what replicas returned under one name is one leaf, merged by docs/rules.md, section
// 6. After a failure it is empty.
//
// Fails with the failure of the lowest replica that failed by itself, not because another did;
// the text names it: "replica 1: ...". A failure that fn did not look at counts as well, if its
// frame has it. Variables that an update was changing are undefined then (variable.h); s can
// run again. Its own: CHOIR_INVALID: fn is NULL, a set of another strategy, a leaf that lacks a
// replica's. CHOIR_STATE: not in cross-replica context, or in another strategy's, or in an
// update; another run of s is under way; replicas diverged, or returned different names; a
// function ended otherwise than by returning (status.h).
// CHOIR_TIMEOUT: a replica waited too long for another, which it names (.timeout). User code
// that never returns cannot be stopped: run returns when it does.
CHOIR_MUST_CHECK choir_status choir_strategy_run(choir_strategy *s, choir_replica_fn *fn,
		void *user, choir_values *args, choir_values **results);

// What a worker does: runs of group, which are its own replicas, in a loop of its own, and what
// else is done with a strategy; group is current. It must not be freed. Variables made in it
// belong to the strategy, as elsewhere.
typedef choir_status choir_worker_fn(choir_strategy *group, int worker, void *user);

// Calls fn once for each worker, at the same time, the first's on the calling thread and the
// others' on threads of their own, and returns when all have returned. A strategy other than a
// parameter server is its own only worker, so that a program may be written once for all.
//
// When a worker fails, by what fn returns, the others' next run is CHOIR_CANCELLED. Fails with
// the failure of the lowest worker that failed by itself, which the text names: "worker 2:
// ...". Its own: CHOIR_INVALID: fn is NULL; CHOIR_STATE: not in cross-replica context, in
// another strategy's, or workers of s are at work already. A worker that never returns cannot
// be stopped.
CHOIR_MUST_CHECK choir_status choir_strategy_run_workers(
		choir_strategy *s, choir_worker_fn *fn, void *user);

// The sum or mean of v over replicas, for the program: a tensor in v's frame, or, if v is a
// variable's own value, in that of choir_strategy_cross. Sums are made in the canonical tree
// (docs/decisions/0012).
//
// With CHOIR_NO_AXIS v's tensors, of one shape and dtype (of an ON_READ variable its parts),
// are added element by element. MEAN divides by the number of replicas, or by the sum of counts
// if all have one (choir_counted; some with and some without are CHOIR_INVALID). What is the
// same for all, plain, mirrored or a mirrored variable, is its own mean; its SUM is
// CHOIR_INVALID unless it is the number 0 or there is one replica. With axes each replica first
// sums along them, which removes them; MEAN then divides by the number of elements that were
// summed, in all replicas, so parts may be unequal or empty; what is the same for all counts
// once for each replica.
//
// SUM keeps the dtype: f32, f64, i32, i64 or u8 (integers wrap; in a debug build of Choir a sum
// of u8 above 255 is CHOIR_INVALID). The mean of f32 and f64 keeps it, that of i32 and i64 is
// f64, of u8 and bool f32. Others: CHOIR_UNSUPPORTED. NULL after a failure, which v's
// frame keeps: CHOIR_INVALID also for an unknown op, a place, a value of another number of
// replicas, shapes or dtypes that differ. CHOIR_STATE in a replica, in another strategy's context,
// or for a variable of another strategy. NULL for NULL.
choir_tensor *choir_strategy_reduce(
		choir_strategy *s, choir_reduce_op op, choir_value *v, choir_axes axes);

// A cross-replica context of the program's own, for what cross.h offers; in a merge function
// that of the merge call. It belongs to s and is the same each time. What is made in its frame
// stays until the program empties that (choir_frame_empty), which it must not do between giving
// and running or updating. NULL in a replica and in another strategy's context (CHOIR_STATE).
choir_cross *choir_strategy_cross(choir_strategy *s);

CHOIR_C_END
