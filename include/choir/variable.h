// Variables: named memory that outlives a step and that Choir keeps consistent between replicas.
// A mirrored (ON_WRITE) variable has one value for all replicas. It has one copy for each separate
// memory of its strategy's devices, so a single copy on CPUs. An ON_READ variable has a component
// for each replica, and each replica writes its own component freely. A read outside of replicas
// combines the components by the variable's aggregation. The meaning of a read depends on the
// context of the frame that is passed to the call. The meaning of a write depends on the context
// of the written tensor's frame. So the same code is right in every context (docs/rules.md,
// sections 3 to 5, has the tables).
//
// After a failed update or write a variable is undefined: a read fails with CHOIR_STATE until the
// variable is assigned or restored.
// Threads: a getter may be called on any thread, other calls on the thread that runs their
// context.
#pragma once

#include "value.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_SYNCHRONIZATION_AUTO = 0, // ON_WRITE
	CHOIR_SYNCHRONIZATION_ON_WRITE, // mirrored
	CHOIR_SYNCHRONIZATION_ON_READ, // a component for each replica
	CHOIR_SYNCHRONIZATION_NONE // not accepted (CHOIR_INVALID)
} choir_synchronization;

// An aggregation makes one value of the values that replicas write (ON_WRITE) or hold (ON_READ).
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

// Writes the packed elements of a variable, in the variable's dtype, to the uninitialized memory
// at out. It is called once, on the thread that makes the variable. If it fails, so does
// choir_variable_new.
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
// copied. Scopes that the thread has entered (scope.h) override the options o.
//
// In scopes, in merge calls and outside of all contexts the variable is new. CHOIR_INVALID: the
// strategy already has a variable of that name.
//
// In a replica this call is a sync point of all replicas: replica 0 makes the variable, and the
// others get the same one. CHOIR_STATE: the name, dtype or shape differs between replicas. But
// names may differ in numbers that make them unique, such as _12 at the end or before a "/". If
// the strategy already has a variable of that name, all replicas get this variable, whatever the
// other options say (CHOIR_INVALID if its dtype or shape differs). So a step may ask for its
// variables each time. Workers of a parameter server make variables one at a time; a worker that
// waits too long for its turn fails with CHOIR_TIMEOUT. If replicas of several workers ask for the
// same name, the first makes the variable.
//
// If this call fails in a replica, the replica's frame records the failure. CHOIR_INVALID also:
// there is no name; the dtype is unknown; the shape is invalid; MEAN or the random initializer
// does not take the dtype; the variable is colocated with a sharded variable that has another
// number of rows. CHOIR_STATE also: in an update function; the strategy was made before a fork.
choir_variable *choir_variable_new(
		const char *name, choir_shape shape, const choir_variable_options *o);

// Makes a mirrored, trainable variable without aggregation. Its value is the packed elements at
// the address memory. This memory belongs to the program and must outlive the strategy. A device
// that uses host memory reads and updates the elements in place, and Choir sees what the program
// writes to them between runs. For other devices Choir copies the elements. It writes new values
// back to the program's memory at the end of every successful run (except a run in a merge call).
// CHOIR_STATE: in a replica. Other failures are those of choir_variable_new.
choir_variable *choir_variable_wrap(
		const char *name, choir_dtype dtype, choir_shape shape, void *memory);

// Getters

const char *choir_variable_name(const choir_variable *v);
const choir_shape *choir_variable_shape(const choir_variable *v);

// Fills in dtype, synchronization (never AUTO), aggregation and trainable (on or off), and zeroes
// the other fields. CHOIR_INVALID: options->size, which the caller sets, is too small for these
// four.
CHOIR_MUST_CHECK choir_status choir_variable_describe(
		const choir_variable *v, choir_variable_options *options);

// Shards. A strategy with a .partition (strategy.h) cuts a variable v by rows into shards. These
// are variables named "v/part_0", "v/part_1" and so on. They can be read and written like any
// other variable. v is their parent:
// - Reads and writes of v go to the shards. A read concatenates the shards into a copy.
// - On a tape, gradients flow to the shards, and optimizers update the shards. The backward pass
//   frees the concatenated copy, unless this copy is a source (tape.h).
// - v has no copies of its own, and is saved and restored as if it were not cut.
// - An update of v updates one shard after another. In the update function v means the current
//   shard, and a variable colocated with v means its own shard of the same index. If an argument
//   has v's shape, the function gets only the argument's rows that belong to the shard. A result
//   must have as many rows as the shard; the results of all shards are joined to one tensor.

// The number of v's shards. 0: v is not cut.
int choir_variable_shards(const choir_variable *v);

choir_variable *choir_variable_shard(choir_variable *v, int index);

// The variable that v is a shard of. NULL: v is no shard.
choir_variable *choir_variable_shard_parent(choir_variable *v);

// The number of copies of v in this process. For an ON_READ variable this is the number of its
// components, one for each local_replica. For a variable in shards it is 0.
int choir_variable_copies(const choir_variable *v);

// The name of a copy: v's own for the first, "v/replica_1" and so on for the others.
const char *choir_variable_copy_name(const choir_variable *v, int copy);

choir_device *choir_variable_device(const choir_variable *v, int copy);

// Reads v's present value into f. In a replica's frame this is the copy, or component, of this
// replica. In an update's frame it is v's copy in the same memory as the updated copy of the
// update's variable. In other frames it is the value, which for an ON_READ variable is aggregated
// from all components. If f's replica has asked an optimizer to update v, the read waits for that
// update, which needs all replicas. While a tape records in f, all reads of v give the same tensor
// until v changes. This tensor is the source (tape.h) for gradients with respect to v.
//
// If f's device shares the memory of v's copy, the tensor is this memory, not a copy. After v has
// changed the tensor is stale: using it is CHOIR_STATE. To keep a value, copy it (choir_copy) or
// return it as a result before v changes.
//
// CHOIR_STATE: v is undefined; f is the frame of another strategy's replica or update; f is the
// frame of neither a replica nor an update, and the thread is in a replica or under another
// strategy. CHOIR_INVALID: v is ON_READ without aggregation, and is read outside of replicas and
// updates. NULL without a new failure: v or f is NULL, or f has failed before.
choir_tensor *choir_variable_read(choir_variable *v, choir_frame *f);

// Reads rows of v into the frame of the argument indices, as choir_gather of a read of v does. If
// v is cut into shards, each row is read from its shard, and the call waits until the elements of
// indices are computed. If the strategy has several workers (choir_parameter_server_strategy_new)
// and all memory is the host's, a call in a replica copies only these rows. Each call then reads
// anew, and another worker's update may come between two calls. But inside choir_recompute, or if
// choir_variable_read has already read v on the same tape, all calls take their rows from one copy
// of the whole v. Fails as choir_variable_read and choir_gather.
choir_tensor *choir_variable_gather(choir_variable *v, choir_tensor *indices);

// Reads the rows start, start + step and so on before stop, as Python's v[start:stop:step] does.
// Negative row numbers count from the end. A number beyond an end means that end, so INT64_MIN and
// INT64_MAX stand for arguments that Python leaves out. Gradients flow to v. CHOIR_INVALID: step
// is 0, or v is a scalar. Other failures are those of choir_variable_read.
choir_tensor *choir_variable_slice(
		choir_variable *v, choir_frame *f, int64_t start, int64_t stop, int64_t step);

// Makes a tensor in f that stands for v. The tensor means the variable v itself if it is passed as
// an argument, returned as a result, or converted by choir_tensor_as_value. An operation sees the
// elements of v's copy or component in f: those of copy 0 if f is neither a replica's nor an
// update's frame. To get a copy or component by its number, pass the tensor to
// choir_tensor_as_value, and the resulting value to choir_value_local. Tapes and optimizers do not
// see the tensor, so a model's formulas use choir_variable_read. Fails as choir_variable_read.
choir_tensor *choir_variable_component(choir_variable *v, choir_frame *f);

// The variable of which t is a component, a read or a view. NULL: there is none.
choir_variable *choir_tensor_variable(const choir_tensor *t);

// Writing. The argument value has v's dtype and shape, or is a plain number for all elements. It
// may be a read or a component of v itself (choir_replica_arg of a variable gives a component).
// Then the elements from before the call are used. The context of value's frame decides what is
// written (docs/rules.md, section 5):
//
// - In a replica in a run, a mirrored v is written in a merge call of all replicas (replica.h), by
//   its aggregation (CHOIR_INVALID: there is none). Of an ON_READ v, this replica's component is
//   written immediately.
// - An update writes the copy of v that it would read. CHOIR_INVALID: v is neither the updated
//   variable nor colocated with it.
// - In other contexts, including the default replica outside of runs, all copies of a mirrored v
//   are written, or all components of an ON_READ v: with SUM each gets an equal share of value,
//   else each gets value. The call returns after the write. CHOIR_INVALID: v is ON_READ, and it
//   has no aggregation or the call adds or subtracts.
//
// Other errors: CHOIR_INVALID if value has another dtype or shape, or if v's aggregation is SUM
// and several replicas pass the same plain number other than 0. CHOIR_STATE if v belongs to
// another strategy, or if the thread is not in the context of value's frame. If value is NULL, the
// status is that of the thread's last failure, or CHOIR_INVALID if there was none.

// v = value. An undefined variable is defined again.
CHOIR_MUST_CHECK choir_status choir_variable_assign(choir_variable *v, choir_tensor *value);

// v = v + value. Integers wrap. The dtype must be f32, f64, i32, i64 or u8 (else
// CHOIR_UNSUPPORTED).
CHOIR_MUST_CHECK choir_status choir_variable_assign_add(choir_variable *v, choir_tensor *value);

// v = v - value, by the same rules.
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

// Changes rows, along axis 0, of a mirrored variable of rank 1 or more. For each i in order, row i
// of values is applied to row indices[i] of v. So an index that occurs twice changes its row
// twice. The argument indices is a vector of i32 or i64. The argument values has v's dtype and a
// row of v's shape for each index, or is a plain number for all elements. Both are of one frame,
// and its context decides what is written, as for choir_variable_assign. In a merge call v is
// written with replica 0's rows, then with replica 1's and so on; each replica may give any number
// of rows.
//
// All errors are found before anything is written. The call waits for the argument indices.
// CHOIR_INVALID: an index is not the number of a row of v. CHOIR_UNSUPPORTED: v is ON_READ; v's
// aggregation is SUM or MEAN and the argument how is MIN, MAX or UPDATE (except in an update); v
// belongs to several workers and the strategy has no .locked_updates; v has a dtype that
// choir_variable_assign_add does not take, and how is not UPDATE. Other failures are those of
// choir_variable_assign.
CHOIR_MUST_CHECK choir_status choir_variable_scatter(
		choir_variable *v, choir_scatter how, choir_tensor *indices, choir_tensor *values);

CHOIR_C_END
