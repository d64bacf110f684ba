// Variables: named memory that outlives a step and that Choir keeps consistent between replicas. A
// mirrored (ON_WRITE) variable has one value for all replicas. It has one copy for each separate
// memory of its strategy's devices, so a single copy on CPUs. An ON_READ variable has a component
// for each replica. Each replica writes its own component without a sync point. A read outside of
// replicas combines the components by the variable's aggregation. The meaning of a read depends on
// the context of the frame that is passed to the call. The meaning of a write depends on the
// context of the written tensor's frame. So the same code is right in every context
// (docs/rules.md, sections 3 to 5, has the tables).
//
// After a failed update or write, a variable may be undefined: a read fails with CHOIR_STATE until
// the variable is assigned or restored.
// Threads: any thread may call a getter. The thread of a context makes the context's other calls.
#pragma once

#include "value.h"

CHOIR_C_BEGIN

// When the copies of a variable are made equal.
typedef enum {
	CHOIR_SYNCHRONIZATION_AUTO = 0, // ON_WRITE
	CHOIR_SYNCHRONIZATION_ON_WRITE, // mirrored
	CHOIR_SYNCHRONIZATION_ON_READ, // a component for each replica
	CHOIR_SYNCHRONIZATION_NONE // not accepted (CHOIR_INVALID)
} choir_synchronization;

// How the values that replicas write (ON_WRITE) or hold (ON_READ) are combined to one value.
typedef enum {
	// Replicas cannot write an ON_WRITE variable. An ON_READ variable can be read only in replicas
	// and updates.
	CHOIR_AGGREGATION_NONE = 0,
	CHOIR_AGGREGATION_SUM,
	CHOIR_AGGREGATION_MEAN, // over replicas; floating-point dtypes only
	CHOIR_AGGREGATION_ONLY_FIRST_REPLICA // replica 0's value
} choir_aggregation;

// Random initializers are for f32 and f64 only. Their numbers depend on the strategy's seed and
// the variable's name (Philox), not on the order in which variables are made.
typedef enum {
	CHOIR_INITIALIZER_ZEROS = 0,
	CHOIR_INITIALIZER_ONES,
	// Uniform in +-sqrt(6 / (in + out)): Glorot and Bengio 2010. in and out are the last two
	// dimensions, each multiplied by the product of all dimensions before them. As in Keras, for a
	// vector in and out are its length, and for a scalar they are 1.
	CHOIR_INITIALIZER_GLOROT_UNIFORM,
	// Normal, mean 0, deviation sqrt(2 / in), not truncated: He et al. 2015.
	CHOIR_INITIALIZER_HE_NORMAL,
	CHOIR_INITIALIZER_NORMAL, // normal, mean 0, deviation scale
	CHOIR_INITIALIZER_UNIFORM, // uniform in +-scale
	CHOIR_INITIALIZER_TRUNCATED_NORMAL, // NORMAL, but numbers beyond 2 deviations are drawn again
	CHOIR_INITIALIZER_GLOROT_NORMAL, // normal, deviation sqrt(2 / (in + out)), not truncated
	CHOIR_INITIALIZER_HE_UNIFORM, // uniform in +-sqrt(6 / in)
	CHOIR_INITIALIZER_LECUN_NORMAL, // normal, deviation sqrt(1 / in), not truncated
	CHOIR_INITIALIZER_LECUN_UNIFORM, // uniform in +-sqrt(3 / in): LeCun et al. 1998
	// Orthonormal rows or columns, whichever are fewer, of the matrix [all other dimensions, last
	// dimension], times scale (0: 1): Saxe, McClelland, Ganguli 2014, arXiv:1312.6120.
	CHOIR_INITIALIZER_ORTHOGONAL,
	CHOIR_INITIALIZER_CONSTANT // scale
} choir_initializer;

// Writes the initial elements of a variable to out: packed, in the variable's dtype. The memory at
// out is uninitialized. Choir calls the function once, on the thread that makes the variable. If
// the function fails, choir_variable_new fails.
typedef choir_status choir_initializer_fn(void *out, const choir_shape *shape, void *user);

// How a variable is made.
typedef struct {
	size_t size;
	choir_dtype dtype; // 0: CHOIR_F32
	choir_synchronization synchronization;
	choir_aggregation aggregation;
	choir_toggle trainable; // whether optimizers update it; default: on, or off for ON_READ
	choir_initializer initializer;
	// NORMAL, UNIFORM and TRUNCATED_NORMAL: 0 means 0.05. ORTHOGONAL: 0 means 1. Also CONSTANT.
	double scale;
	const void *initial_value; // replaces initializer: packed elements; Choir copies them
	choir_initializer_fn *initializer_fn; // replaces initializer if there is no initial_value
	void *user; // for initializer_fn
} choir_variable_options;

// Makes a variable of the current strategy. The initial value is made once, on the host, and
// copied to the devices. The scopes that the thread has entered (scope.h) override o.
//
// In scopes, in merge calls and outside of all contexts, the variable is new. CHOIR_INVALID: the
// strategy already has a variable of that name.
//
// In a replica this call is a sync point of all replicas. Replica 0 makes the variable, and the
// others get the same variable. CHOIR_STATE: the name, dtype or shape differs between replicas.
// But numbers that make a name unique may differ: _12 at the end of the name or before a "/". If
// the strategy already has a variable of that name, all replicas get this variable. Then Choir
// ignores the options other than dtype (CHOIR_INVALID: the dtype or shape differs). So a step may
// make its variables in every run. Workers of a parameter server make variables one at a time. A
// worker that waits too long for its turn fails with CHOIR_TIMEOUT. If several workers make a
// variable of the same name, they all get the first one.
//
// If this call fails in a replica, the replica's frame records the failure. CHOIR_INVALID also:
// there is no name; the dtype is unknown; the shape is invalid; MEAN or the random initializer
// does not support the dtype; the variable is colocated with a sharded variable that has another
// number of rows. CHOIR_STATE also: in an update function; the strategy was made before a fork.
choir_variable *choir_variable_new(
		const char *name, choir_shape shape, const choir_variable_options *o);

// Makes a mirrored, trainable variable without aggregation. Its value is the packed elements at
// memory, which belongs to the program and must outlive the strategy. A device that uses host
// memory reads and updates the elements in place, so the program may write them between runs. For
// other devices Choir copies the elements. After every successful run that is not inside a merge
// call, Choir copies new values back to memory. CHOIR_STATE: in a replica. Other failures are
// those of choir_variable_new.
choir_variable *choir_variable_wrap(
		const char *name, choir_dtype dtype, choir_shape shape, void *memory);

// Getters

// The name and the shape of v. They are valid as long as v.
const char *choir_variable_name(const choir_variable *v);
const choir_shape *choir_variable_shape(const choir_variable *v);

// Fills in dtype, synchronization (never AUTO), aggregation and trainable (on or off), and zeroes
// the other fields. The caller sets options->size. CHOIR_INVALID: options->size is too small for
// these four fields.
CHOIR_MUST_CHECK choir_status choir_variable_describe(
		const choir_variable *v, choir_variable_options *options);

// Shards. A strategy with a .partition (strategy.h) cuts a variable v by rows into shards. The
// shards are variables with the names "v/part_0", "v/part_1" and so on. They are read and written
// like any other variable. v is their parent:
// - Reads and writes of v go to the shards. A read concatenates the shards into a copy.
// - On a tape, gradients flow to the shards, and optimizers update the shards. The backward pass
//   frees the concatenated copy, unless the copy is a source (tape.h).
// - v itself has no copies. It is saved and restored like an uncut variable.
// - An update of v updates one shard after another. In the update function v means the current
//   shard, and a variable colocated with v means its shard of the same index. If an argument has
//   v's shape, the function gets only the rows of the current shard. A result must have as many
//   rows as the shard. The results of all shards are joined to one tensor.

// The number of v's shards. 0: v is not cut.
int choir_variable_shards(const choir_variable *v);

// The index-th shard of v, from 0. NULL: index is out of range.
choir_variable *choir_variable_shard(choir_variable *v, int index);

// The variable that v is a shard of. NULL: v is no shard.
choir_variable *choir_variable_shard_parent(choir_variable *v);

// The number of copies of v in this process. An ON_READ variable has a component for each
// local_replica. A variable in shards has 0 copies.
int choir_variable_copies(const choir_variable *v);

// The name of a copy: "v" for the first copy of v, "v/replica_1" and so on for the others.
const char *choir_variable_copy_name(const choir_variable *v, int copy);

// The device of a copy of v.
choir_device *choir_variable_device(const choir_variable *v, int copy);

// Reads v's present value into f. In a replica's frame, the result is this replica's copy or
// component. In an update's frame, it is v's copy in the same memory as the updated copy. In other
// frames it is the value. The value of an ON_READ variable is aggregated from all components. If
// f's replica has requested an update of v from an optimizer, the read waits for the update, and
// so for all replicas. While a tape records in f, all reads of v give the same tensor until v
// changes. This tensor is the source (tape.h) for gradients with respect to v.
//
// If f's device shares the memory of v's copy, the tensor is this memory. After v has changed, the
// tensor is stale: using it is CHOIR_STATE. To keep the value, copy the tensor (choir_copy) or
// return it as a result before v changes.
//
// CHOIR_STATE: v is undefined; f is the frame of another strategy's replica or update; f is the
// frame of neither a replica nor an update, and the thread is in a replica or in another
// strategy's context. CHOIR_INVALID: v is ON_READ without aggregation, and f belongs to neither a
// replica nor an update. NULL without a new failure: v or f is NULL, or f has failed before.
choir_tensor *choir_variable_read(choir_variable *v, choir_frame *f);

// Reads rows of v into the frame of indices, as choir_gather of a read of v does. If v is cut into
// shards, each row is read from its shard, and the call waits until indices is computed. With
// several parameter server workers and host memory only, a call in a replica copies only these
// rows. Another worker's update may then come between two calls. But all calls take their rows
// from one copy of the whole v inside choir_recompute, and after a choir_variable_read of v on the
// same tape. Fails as choir_variable_read and choir_gather.
choir_tensor *choir_variable_gather(choir_variable *v, choir_tensor *indices);

// Reads the rows start, start + step and so on before stop, as Python's v[start:stop:step] does.
// Negative row numbers count from the end. A number beyond an end means that end. So INT64_MIN and
// INT64_MAX replace the arguments that Python leaves out. Gradients flow to v. CHOIR_INVALID: step
// is 0, or v is a scalar. Other failures are those of choir_variable_read.
choir_tensor *choir_variable_slice(
		choir_variable *v, choir_frame *f, int64_t start, int64_t stop, int64_t step);

// Makes a tensor in f that stands for v. As an argument, as a result and in choir_tensor_as_value,
// the tensor means the variable v itself. In an operation it has the elements of v's copy or
// component in f, or of copy 0 if f belongs to neither a replica nor an update. To get a copy or
// component by its number, pass the tensor to choir_tensor_as_value, and the value to
// choir_value_local. Tapes and optimizers do not see the tensor, so the formulas of a model need
// choir_variable_read. Fails as choir_variable_read.
choir_tensor *choir_variable_component(choir_variable *v, choir_frame *f);

// The variable of which t is a component, a read or a view. NULL: t has no variable.
choir_variable *choir_tensor_variable(const choir_tensor *t);

// Writing. The argument value has v's dtype and shape, or is a plain number for all elements.
// value may be a read or a component of v itself (choir_replica_arg of a variable gives a
// component). Then the call uses the elements from before the write. The context of value's frame
// decides what is written (docs/rules.md, section 5):
//
// - In a replica in a run, a mirrored v is written in a merge call of all replicas (replica.h), by
//   its aggregation. CHOIR_INVALID: v has no aggregation. If v is ON_READ, this replica's
//   component is written immediately.
// - In an update, the copy of v that the update reads is written. CHOIR_INVALID: v is neither the
//   updated variable nor colocated with it.
// - In other contexts, also in the default replica outside of runs, all copies or components of v
//   are written before the call returns. If v is ON_READ with SUM, each component gets an equal
//   share of value; otherwise each copy or component gets value. CHOIR_INVALID: v is ON_READ, and
//   has no aggregation or the call adds or subtracts.
//
// Other errors. CHOIR_INVALID: value has another dtype or shape; v's aggregation is SUM, and
// several replicas pass the same plain number other than 0. CHOIR_STATE: v belongs to another
// strategy; the thread is not in the context of value's frame. If value is NULL, the call fails
// with the status of the thread's last failure, or else with CHOIR_INVALID.

// v = value. An undefined variable is defined again.
CHOIR_MUST_CHECK choir_status choir_variable_assign(choir_variable *v, choir_tensor *value);

// v = v + value. Integers wrap around. CHOIR_UNSUPPORTED: the dtype is not f32, f64, i32, i64 or
// u8.
CHOIR_MUST_CHECK choir_status choir_variable_assign_add(choir_variable *v, choir_tensor *value);

// v = v - value, with the rules of choir_variable_assign_add.
CHOIR_MUST_CHECK choir_status choir_variable_assign_sub(choir_variable *v, choir_tensor *value);

// How the new row is computed from the old row and the row of values.
typedef enum {
	CHOIR_SCATTER_ADD,
	CHOIR_SCATTER_SUB,
	CHOIR_SCATTER_MUL,
	CHOIR_SCATTER_DIV, // integers as choir_divide
	CHOIR_SCATTER_MIN, // NAN if either element is NAN
	CHOIR_SCATTER_MAX, // NAN if either element is NAN
	CHOIR_SCATTER_UPDATE // the new row is the row of values
} choir_scatter;

// Changes rows, along axis 0, of a mirrored variable of rank 1 or more. For each i in order, row i
// of values is applied to row indices[i] of v. So an index that occurs twice changes its row
// twice. indices is a vector of i32 or i64. values has v's dtype and a row of v's shape for each
// index, or is a plain number for all elements. indices and values are in the same frame. Its
// context decides what is written, as for choir_variable_assign. In a merge call, v is written
// with replica 0's rows, then with replica 1's and so on. Replicas may give different numbers of
// rows.
//
// The call waits for indices, and finds all errors before it writes. CHOIR_INVALID: an index is
// not the number of a row of v. CHOIR_UNSUPPORTED: v is ON_READ; v's aggregation is SUM or MEAN
// and how is MIN, MAX or UPDATE (except in an update); several workers share v and the strategy's
// .locked_updates is off; v's dtype is unsupported by choir_variable_assign_add and how is not
// UPDATE. Other failures are those of choir_variable_assign.
CHOIR_MUST_CHECK choir_status choir_variable_scatter(
		choir_variable *v, choir_scatter how, choir_tensor *indices, choir_tensor *values);

CHOIR_C_END
