// Variables: named memory that outlives a step and is kept in step between replicas. A mirrored
// (ON_WRITE) variable has one value for all replicas, and one copy for each separate memory of
// its strategy's devices, so one on CPUs (docs/decisions/0016). An ON_READ variable has a part
// for each replica, which that replica writes freely; the parts are brought together, by the
// variable's aggregation, when somebody reads outside replicas. What reading and writing mean
// follows from the context of the frame, or of the tensor that is written, so the same code is
// right in a replica, a merge call, an update function and outside of all (docs/rules.md,
// sections 3 to 5, has the tables).
//
// Ownership: a variable belongs to the strategy that is current where it was made, and is freed
// with it. A variable that an update or a write left half written is undefined: to read it is
// CHOIR_STATE, until it is assigned or restored.
// Threads: those of the context; the getters: any.
#pragma once

#include "value.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_SYNCHRONIZATION_AUTO = 0, // ON_WRITE
	CHOIR_SYNCHRONIZATION_ON_WRITE, // mirrored: one value
	CHOIR_SYNCHRONIZATION_ON_READ, // a part for each replica
	CHOIR_SYNCHRONIZATION_NONE // refused when the variable is made
} choir_synchronization;

// How what replicas write (ON_WRITE) or have (ON_READ) becomes one value.
typedef enum {
	CHOIR_AGGREGATION_NONE = 0, // not at all: it cannot be written in replicas, or read outside
	CHOIR_AGGREGATION_SUM,
	CHOIR_AGGREGATION_MEAN, // over replicas; floating dtypes only
	CHOIR_AGGREGATION_ONLY_FIRST_REPLICA // replica 0's
} choir_aggregation;

// Random ones are of f32 or f64 alone, and are drawn from the strategy's seed and the
// variable's name by Philox (docs/decisions/0013), so they do not depend on the order of
// making.
typedef enum {
	CHOIR_ZEROS = 0,
	CHOIR_ONES,
	// Uniform within sqrt(6 / (in + out)) of 0: Glorot and Bengio 2010. in and out are the last
	// two dimensions, times the product of those before them; as in Keras both are the length
	// of a vector, and 1 for a scalar.
	CHOIR_GLOROT_UNIFORM,
	CHOIR_HE_NORMAL, // normal, mean 0, deviation sqrt(2 / in), not truncated: He et al. 2015
	CHOIR_NORMAL // normal, mean 0, deviation scale
} choir_initializer;

// Fills out, which is not initialised, with the packed elements of a variable of that shape, in
// its dtype. Called once for a variable, on the thread that makes it. What it returns other
// than CHOIR_OK fails the making.
typedef choir_status choir_initializer_fn(void *out, const choir_shape *shape, void *user);

typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	choir_dtype dtype; // 0: CHOIR_F32
	choir_synchronization synchronization;
	choir_aggregation aggregation;
	choir_toggle trainable; // whether optimizers see it; on, for ON_READ: off
	choir_initializer initializer;
	double scale; // of CHOIR_NORMAL; 0: 0.05
	const void *initial_value; // packed, in dtype; copied; instead of initializer
	choir_initializer_fn *initialize; // instead of initializer, if there is no initial_value
	void *user; // for initialize
} choir_variable_options;

// A variable of the current strategy, with its initial value, which is made once, on the host,
// and copied; name, shape and *o are copied, too, and o may be NULL. What scopes say
// (colocated, replica-local) replaces what o says.
//
// In scopes, in merge calls and outside of all it is a new variable; a name that the strategy has
// is CHOIR_INVALID. In a replica it is a meeting of all replicas (docs/rules.md, sections 1 and
// 3): replica 0 makes it, the others wait for that and get the same one; all must ask for the same
// names, dtypes and shapes in the same order, else CHOIR_STATE. Numbers that make names unique do
// not matter for that, "_12" at the end or before a "/": the name is replica 0's. If the strategy
// has one of that name already, they get that one, whatever else the options say (CHOIR_INVALID if
// its dtype or shape differs), so a step may ask for its variables each time. Workers of a
// parameter server make variables one at a time (CHOIR_TIMEOUT, if that takes too long): of those
// that want one name in their replicas the first makes it.
//
// NULL after a failure, which in a replica its frame keeps. CHOIR_INVALID: no name, an unknown
// dtype, an impossible shape, synchronization NONE, MEAN of a dtype that is not floating, a
// random initializer for a dtype other than f32 and f64, a size of *o that cannot be, other rows
// than the variable in shards has with which it is colocated.
// CHOIR_STATE: in an update function; the strategy was made before a fork. CHOIR_NO_MEMORY. Or
// what initialize returned.
choir_variable *choir_variable_new(
		const char *name, choir_shape shape, const choir_variable_options *o);

// A mirrored, trainable variable without aggregation whose value is what is in memory, packed.
// For devices of host memory that is the copy itself: reads and updates are in place, and what
// the program writes there between runs is seen. For others it is copied, and memory is brought
// up to date at the end of every run (not of one in a merge call) that ends well. memory is the
// program's and must outlive the strategy. Not in a replica: CHOIR_STATE; a NULL memory:
// CHOIR_INVALID; else as choir_variable_new.
choir_variable *choir_variable_wrap(
		const char *name, choir_dtype dtype, choir_shape shape, void *memory);

// Belongs to v. "" for NULL.
const char *choir_variable_name(const choir_variable *v);

// Belongs to v. NULL for NULL.
const choir_shape *choir_variable_shape(const choir_variable *v);

// Fills in dtype, synchronization (which is never AUTO), aggregation and trainable (on or off),
// and sets the other fields to zero. options->size is set by the caller. CHOIR_INVALID: v or
// options is NULL, or the size has no room for those four.
CHOIR_MUST_CHECK choir_status choir_variable_describe(
		const choir_variable *v, choir_variable_options *options);

// A variable that a strategy with a .partition (strategy.h) has cut into shards is the whole of
// these: it has their rows along axis 0, in order, of which the first rows mod shards shards have
// one more. The shards are variables of their own, called "v/part_0", "v/part_1" and so on, which
// have its dtype, options and rows of its initial value, and can be read and written like any
// other; they cannot be made one by one, so none can be of another dtype or shape. Reads, writes
// and rows written of the whole go to the shards. The whole is saved, and restored, as if it were
// not cut; it has no copies of its own, its reads are copies, though out of date when any other's
// would be, and for tapes made from reads of the shards, which are what optimizers update; like
// all that operations make, they die on a tape's way back if they are no source. What is colocated
// with it must have as many rows, and is cut alike. An update of it is one of each shard after
// another, in which it, and what is colocated with it, is the shard, and of arguments as large as
// it is the function has the shard's rows; what it returns has these rows, too, and becomes one
// tensor.

// Shards of v. 0: v is not cut, or NULL.
int choir_variable_shards(const choir_variable *v);

// Shard index of v, 0 to shards - 1. NULL: there is no such one, or v is NULL.
choir_variable *choir_variable_shard(choir_variable *v, int index);

// The variable that v is a shard of. NULL: none, or v is NULL.
choir_variable *choir_variable_whole(choir_variable *v);

// Copies of v in this process: one for each separate memory of the strategy's devices, or, if v
// is ON_READ, a part for each replica. 0 for NULL, and for what is cut into shards.
int choir_variable_copies(const choir_variable *v);

// The name of a copy: v's own for the first, "v/replica_1" and so on for the others. Belongs to v.
// NULL: there is no such copy, or v is NULL.
const char *choir_variable_copy_name(const choir_variable *v, int copy);

// The device on which a copy lies, 0 to copies - 1. NULL: there is no such copy, or v is NULL.
choir_device *choir_variable_device(const choir_variable *v, int copy);

// The value now, in f. In a replica's frame: the copy, or part, of this replica; in an
// update's: the copy that lies with the one being updated; in others the value, which for an
// ON_READ variable is made of all parts. If this replica has asked an optimizer to update v,
// the read waits for that update, and so for all replicas. While a tape records in f, reads of
// v are one tensor, until v changes; that is the source for gradients by v.
//
// Where memory is shared a read is no copy: it is v's memory, and after v has changed, using
// the read is CHOIR_STATE with v's name (docs/decisions/0016). To keep a value, choir_move or
// return it before.
//
// NULL: f has failed before; or CHOIR_STATE: v is undefined; f is the frame of another
// strategy's replica or update; f is no replica's, and the thread is in a replica or under
// another strategy. CHOIR_INVALID: an ON_READ variable without aggregation, outside replicas
// and updates. For a NULL v or f: NULL, and no failure.
choir_tensor *choir_variable_read(choir_variable *v, choir_frame *f);

// Rows of v, as choir_gather takes them from a read of it in the frame of indices: of a variable
// in shards each row is taken from the shard that has it, and indices are waited for. In a replica
// of one of several workers (choir_parameter_server_strategy_new) only these rows are copied, if
// all memory is the host's: each call reads for itself, and rows of two calls may have an update
// of another worker between them. After choir_variable_read of v on the same tape, and within
// choir_recompute, rows are those of the one copy. NULL: as choir_variable_read and choir_gather.
choir_tensor *choir_variable_gather(choir_variable *v, choir_tensor *indices);

// Rows start, start + step, .. of v, before stop, along axis 0, as Python's v[start:stop:step]:
// negative ones count from the back, and what is beyond an end is that end, so INT64_MIN and
// INT64_MAX stand for what Python lets one leave out. Gradients flow to v. NULL: as
// choir_variable_read; CHOIR_INVALID: step is 0, v a scalar.
choir_tensor *choir_variable_slice(
		choir_variable *v, choir_frame *f, int64_t start, int64_t stop, int64_t step);

// The component of v in f: as an argument, a result or a value it stands for v itself; in an
// operation it is v's copy, as a read is. But it is no read for tapes: optimizers do not see
// it, so formulas of a model read. In a frame that is neither a replica's nor an update's it is
// copy 0. Fails as choir_variable_read. One copy, or part, by its number: choir_tensor_value makes
// the component a value, of which choir_value_local gives each (value.h).
choir_tensor *choir_variable_component(choir_variable *v, choir_frame *f);

// The variable that t is the component of, or whose memory t is, as a read or a view of one.
// NULL: none, or t is NULL.
choir_variable *choir_tensor_variable(const choir_tensor *t);

// Writing. value has v's dtype and shape, or is a plain number, which all elements get. A read of
// v is taken as it was before the call, a component (choir_replica_arg of a variable) as a read.
// value's frame says what happens (docs/rules.md, section 5):
//
// - A replica's in a run, v mirrored: a merge call of all replicas (replica.h), in which v is
//   written with the sum, the mean or replica 0's of what they brought. CHOIR_INVALID: v has no
//   aggregation; with SUM and several replicas, the same number from all, unless it is 0.
// - A replica's in a run, v ON_READ: this replica's part, at once.
// - An update's: the copy that is being updated, if v is its target or colocated with it, else
//   CHOIR_INVALID.
// - Others', the default replica's outside of runs among them: all copies of a mirrored
//   variable. To an ON_READ one nothing can be added (CHOIR_INVALID); assigned, every part gets
//   the value, or its share if the aggregation is SUM, so that a read gives it back (of integers
//   the first parts get one more); without aggregation CHOIR_INVALID. Waits until it is done.
//
// Errors also: CHOIR_INVALID for another dtype or shape and v NULL; CHOIR_STATE for a variable
// of another strategy, and where the thread is not in the context of value's frame; for a NULL
// value the thread's last failure, or CHOIR_INVALID. Reads made before are out of date.

// v = value. An undefined variable is defined again.
CHOIR_MUST_CHECK choir_status choir_variable_assign(choir_variable *v, choir_tensor *value);

// v = v + value. Integers wrap; f32, f64, i32, i64 and u8 (else CHOIR_UNSUPPORTED).
CHOIR_MUST_CHECK choir_status choir_variable_assign_add(choir_variable *v, choir_tensor *value);

// v = v - value, as choir_variable_assign_add.
CHOIR_MUST_CHECK choir_status choir_variable_assign_sub(choir_variable *v, choir_tensor *value);

// What a row becomes.
typedef enum {
	CHOIR_SCATTER_ADD, // itself and the value
	CHOIR_SCATTER_SUB,
	CHOIR_SCATTER_MUL,
	CHOIR_SCATTER_DIV, // integers as choir_divide
	CHOIR_SCATTER_MIN, // the lesser one; NAN if one is
	CHOIR_SCATTER_MAX,
	CHOIR_SCATTER_UPDATE // the value
} choir_scatter;

// Writes rows, along axis 0, of a mirrored variable of rank 1 or more: row indices[i] with row i
// of values, for i from 0 on, one after another, so that an index that stands twice counts twice.
// indices is a vector of i32 or i64, of which each must be a row of v; values is of v's dtype, and
// has as many rows as there are indices, of the shape of v's, or is a plain number for all of
// them. Both are of one frame, which says what happens (docs/rules.md, section 5):
//
// - A replica's in a run: a merge call of all replicas, in which v is written with what replica 0
//   brought, then replica 1 and so on, each with as many rows as it likes; with MEAN all values
//   are divided by the number of replicas, with ONLY_FIRST_REPLICA only replica 0's count.
//   CHOIR_INVALID as for choir_variable_assign.
// - An update's: the copy that is being updated.
// - Others': all copies, with the values as they are. Waits until it is done.
//
// MIN, MAX and UPDATE have no SUM and no MEAN: but in an update, they are CHOIR_UNSUPPORTED for a
// variable with such an aggregation, and everything is for an ON_READ one. UPDATE is for all
// dtypes, the others for those of choir_variable_assign_add. All that is wrong is found before
// anything is written. Waits for indices. Errors else as choir_variable_assign's.
CHOIR_MUST_CHECK choir_status choir_variable_scatter(
		choir_variable *v, choir_scatter how, choir_tensor *indices, choir_tensor *values);

CHOIR_C_END
