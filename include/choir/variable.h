// Variables: named memory that outlives a step and that Choir keeps consistent between replicas.
// A mirrored (ON_WRITE) variable has one value for all replicas. It has one copy for each
// separate memory of its strategy's devices, so a single copy on CPUs. An ON_READ variable has a
// component for each replica, which that replica writes freely. A read outside of replicas
// combines the components by the variable's aggregation. What a read means depends on the context
// of the frame that the call is given; what a write means, on the context of the written tensor's
// frame. So the same code is right in every context (docs/rules.md, sections 3 to 5, has the
// tables).
//
// A failed update or write leaves a variable undefined: reading it fails with CHOIR_STATE until
// it is assigned or restored.
// Threads: a call is made on the thread that runs its context, a getter on any thread.
#pragma once

#include "value.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_SYNCHRONIZATION_AUTO = 0, // ON_WRITE
	CHOIR_SYNCHRONIZATION_ON_WRITE, // mirrored
	CHOIR_SYNCHRONIZATION_ON_READ, // a component for each replica
	CHOIR_SYNCHRONIZATION_NONE // not accepted (CHOIR_INVALID)
} choir_synchronization;

// How the values that replicas write (ON_WRITE) or hold (ON_READ) become one.
typedef enum {
	// Replicas cannot write an ON_WRITE variable. An ON_READ variable cannot be read outside of
	// replicas and updates.
	CHOIR_AGGREGATION_NONE = 0,
	CHOIR_AGGREGATION_SUM,
	CHOIR_AGGREGATION_MEAN, // over replicas; floating-point dtypes only
	CHOIR_AGGREGATION_ONLY_FIRST_REPLICA // replica 0's value
} choir_aggregation;

// Random initializers are for f32 and f64 only. They draw from the strategy's seed and the
// variable's name (Philox), so the order in which variables are made does not matter.
typedef enum {
	CHOIR_INITIALIZER_ZEROS = 0,
	CHOIR_INITIALIZER_ONES,
	// Uniform in +-sqrt(6 / (in + out)): Glorot and Bengio 2010. in and out are the last two
	// dimensions, each multiplied by the product of all dimensions before these two. As in Keras,
	// for a vector both are its length, and for a scalar both are 1.
	CHOIR_INITIALIZER_GLOROT_UNIFORM,
	// Normal, mean 0, deviation sqrt(2 / in), not truncated: He et al. 2015.
	CHOIR_INITIALIZER_HE_NORMAL,
	CHOIR_INITIALIZER_NORMAL // normal, mean 0, deviation scale
} choir_initializer;

// Writes the packed elements of a variable, in its dtype, to the uninitialized memory at out.
// Called once, on the thread that makes the variable. If it fails, so does choir_variable_new.
typedef choir_status choir_initializer_fn(void *out, const choir_shape *shape, void *user);

typedef struct {
	size_t size;
	choir_dtype dtype; // 0: CHOIR_F32
	choir_synchronization synchronization;
	choir_aggregation aggregation;
	choir_toggle trainable; // whether optimizers update it; default on, for ON_READ off
	choir_initializer initializer;
	double scale; // deviation of CHOIR_INITIALIZER_NORMAL; 0 means 0.05
	const void *initial_value; // used instead of initializer: packed elements, which are copied
	choir_initializer_fn *initializer_fn; // instead of initializer, if there is no initial_value
	void *user; // for initializer_fn
} choir_variable_options;

// Makes a variable of the current strategy. The initial value is made once, on the host, and
// copied. Scopes that the thread has entered (scope.h) override o.
//
// In scopes, in merge calls and outside of all contexts the variable is new. A name that the
// strategy already has is CHOIR_INVALID.
//
// In a replica this is a sync point of all replicas: replica 0 makes the variable, and the others
// get the same one (docs/rules.md, section 3). CHOIR_STATE: the name, dtype or shape differs
// between replicas. Only numbers that make a name unique may differ: _12 at its end or before a
// "/". If the strategy already has a variable of that name, all get it, whatever the other options
// say (CHOIR_INVALID if its dtype or shape differs). So a step may ask for its variables each
// time. Workers of a parameter server make variables one at a time; a worker that waits too long
// for its turn fails with CHOIR_TIMEOUT. If replicas of several workers ask for the same name, the
// first makes the variable.
//
// In a replica, the replica's frame keeps a failure of this call. CHOIR_INVALID also: there is no
// name; the dtype is unknown; the shape is invalid; MEAN or the random initializer does not take
// the dtype; the variable is colocated with a sharded one and has another number of rows.
// CHOIR_STATE: in an update function; the strategy was made before a fork. Or the failure of
// initializer_fn.
choir_variable *choir_variable_new(
		const char *name, choir_shape shape, const choir_variable_options *o);

// Makes a mirrored, trainable variable without aggregation. Its value is the packed elements in
// memory, which belongs to the program and must outlive the strategy. On devices of host memory
// reads and updates are in place, and Choir sees what the program writes there between runs. For
// other devices it is copied, and memory is brought up to date at the end of every successful run
// (except one in a merge call). CHOIR_STATE: in a replica. All other failures are those of
// choir_variable_new.
choir_variable *choir_variable_wrap(
		const char *name, choir_dtype dtype, choir_shape shape, void *memory);

// Getters

const char *choir_variable_name(const choir_variable *v);
const choir_shape *choir_variable_shape(const choir_variable *v);

// Fills in dtype, synchronization (never AUTO), aggregation and trainable (on or off), and
// zeroes the other fields. CHOIR_INVALID: options->size, which the caller sets, is too small for
// those four.
CHOIR_MUST_CHECK choir_status choir_variable_describe(
		const choir_variable *v, choir_variable_options *options);

// Shards. A strategy with a .partition (strategy.h) cuts a variable v by rows into shards,
// variables "v/part_0", "v/part_1" and so on (docs/rules.md, section 3). They can be read and
// written like any other. v is their parent:
// - Reads and writes of v go to the shards. Reading it concatenates them into a copy, which
//   becomes stale like any read.
// - On a tape the shards are the sources: gradients flow to them, and optimizers update them.
//   The backward pass frees the concatenation unless it is a source.
// - v has no copies of its own, and is saved and restored as if it were not cut.
// - An update of v updates one shard after another. In the update function v means the shard, and
//   a variable colocated with v means its own shard of the same index. Of an argument of v's
//   shape, the function gets the shard's rows. A result must have as many rows as the shard; the
//   results of all shards are joined to one tensor.

// The number of v's shards. 0: v is not cut.
int choir_variable_shards(const choir_variable *v);

choir_variable *choir_variable_shard(choir_variable *v, int index);

// The variable that v is a shard of. NULL: v is no shard.
choir_variable *choir_variable_shard_parent(choir_variable *v);

// The number of copies of v in this process. For an ON_READ variable this is the number of its
// components, one for each local_replica. 0 for a variable in shards.
int choir_variable_copies(const choir_variable *v);

// The name of a copy: v's own for the first, "v/replica_1" and so on for the others.
const char *choir_variable_copy_name(const choir_variable *v, int copy);

choir_device *choir_variable_device(const choir_variable *v, int copy);

// Reads v's present value into f. In a replica's frame: the copy, or component, of this replica.
// In an update's frame: the copy in the same memory as the copy that is updated. In other frames:
// the value, which for an ON_READ variable is aggregated from all components. If this replica has
// asked an optimizer to update v, the read waits for that update, which needs all replicas. While
// a tape records in f, all reads of v give the same tensor until v changes. This tensor is the
// source (tape.h) for gradients with respect to v.
//
// Where memory is shared a read is v's memory, not a copy. Using it after v has changed is
// CHOIR_STATE. To keep a value, copy it (choir_copy) or return it as a result before v changes.
//
// CHOIR_STATE: v is undefined; f is the frame of another strategy's replica or update; f is the
// frame of neither a replica nor an update, and the thread is in a replica or under another
// strategy. CHOIR_INVALID: an ON_READ variable without aggregation, outside of replicas and
// updates. NULL without a new failure: v or f is NULL, or f has failed before.
choir_tensor *choir_variable_read(choir_variable *v, choir_frame *f);

// Reads rows of v: choir_gather of a read of v, in the frame of indices. For a variable in shards
// each row is read from its shard, and the call waits for indices. If the strategy has several
// workers (choir_parameter_server_strategy_new) and all memory is the host's, a call in a replica
// copies only these rows. Each call then reads anew, and another worker's update may come between
// two calls. But in choir_recompute, and if choir_variable_read has already read v on the same
// tape, all calls take their rows from one copy of the whole v. Fails as choir_variable_read and
// choir_gather.
choir_tensor *choir_variable_gather(choir_variable *v, choir_tensor *indices);

// Reads rows start, start + step, ... before stop, along axis 0, as Python's v[start:stop:step].
// Negative rows count from the back. A row beyond an end means that end, so INT64_MIN and
// INT64_MAX stand for arguments that Python leaves out. Gradients flow to v. CHOIR_INVALID: step
// is 0, or v is a scalar. Else as choir_variable_read.
choir_tensor *choir_variable_slice(
		choir_variable *v, choir_frame *f, int64_t start, int64_t stop, int64_t step);

// A tensor in f that stands for v. Passed as an argument, returned as a result or made a value,
// it means the variable v itself. An operation sees the elements of v's copy or component in f.
// Tapes and optimizers do not see it, so a model's formulas use choir_variable_read. In a frame
// that is neither a replica's nor an update's it is copy 0. To get any copy or component by its
// number, make it a value (choir_tensor_as_value) and call choir_value_local. Fails as
// choir_variable_read.
choir_tensor *choir_variable_component(choir_variable *v, choir_frame *f);

// The variable that t is the component of, or of which t is a read or a view; or NULL.
choir_variable *choir_tensor_variable(const choir_tensor *t);

// Writing. value has v's dtype and shape, or is a plain number for all elements. value may be a
// read or a component of v itself (choir_replica_arg of a variable gives a component). Then the
// elements that it had before the call are used. The context of value's frame decides what is
// written (docs/rules.md, section 5, has the table):
//
// - A replica in a run: a mirrored v is written in a merge call of all replicas (replica.h), by
//   its aggregation (CHOIR_INVALID: it has none). An ON_READ v: this replica's component, at
//   once.
// - An update: the copy that is updated, if v is the target or colocated with it, else
//   CHOIR_INVALID.
// - Other contexts, including the default replica outside of runs: all copies of a mirrored v, or
//   the components of an ON_READ v as its aggregation says. The call returns after they
//   are written. CHOIR_INVALID: adding to an ON_READ variable, or assigning one without
//   aggregation.
//
// Earlier reads of v become stale. Errors also: CHOIR_INVALID for another dtype or shape, and for
// a SUM of the same plain number from several replicas, unless it is 0. CHOIR_STATE for a
// variable of another strategy, and if the thread is not in the context of value's frame. If
// value is NULL the status is that of the thread's last failure, or CHOIR_INVALID if there was
// none.

// v = value. An undefined variable is defined again.
CHOIR_MUST_CHECK choir_status choir_variable_assign(choir_variable *v, choir_tensor *value);

// v = v + value. Integers wrap. The dtype must be f32, f64, i32, i64 or u8 (else
// CHOIR_UNSUPPORTED).
CHOIR_MUST_CHECK choir_status choir_variable_assign_add(choir_variable *v, choir_tensor *value);

// v = v - value, in the same way.
CHOIR_MUST_CHECK choir_status choir_variable_assign_sub(choir_variable *v, choir_tensor *value);

// How the new row is made from the old row and the row of values.
typedef enum {
	CHOIR_SCATTER_ADD,
	CHOIR_SCATTER_SUB,
	CHOIR_SCATTER_MUL,
	CHOIR_SCATTER_DIV, // integers as choir_divide
	CHOIR_SCATTER_MIN, // NAN if either element is NAN
	CHOIR_SCATTER_MAX, // likewise
	CHOIR_SCATTER_UPDATE // the value
} choir_scatter;

// Writes rows, along axis 0, of a mirrored variable of rank 1 or more: row indices[i] with row i
// of values, in the order of i; an index that occurs twice counts twice. indices is a vector of
// i32 or i64. values has v's dtype and a row of v's shape for each index, or is a plain number
// for all. Both are of one frame, and its context decides what is written, as for
// choir_variable_assign. In a merge call v is written with replica 0's rows, then with replica
// 1's and so on; each replica may give any number of rows (docs/rules.md, section 5).
//
// All errors are found before anything is written. Waits for indices. CHOIR_INVALID: an index
// that is no row of v. CHOIR_UNSUPPORTED: v is ON_READ; v has SUM or MEAN and how is MIN, MAX or
// UPDATE, except in an update; v belongs to several workers without .locked_updates;
// choir_variable_assign_add does not take v's dtype, and how is not UPDATE. Else as
// choir_variable_assign.
CHOIR_MUST_CHECK choir_status choir_variable_scatter(
		choir_variable *v, choir_scatter how, choir_tensor *indices, choir_tensor *values);

CHOIR_C_END
