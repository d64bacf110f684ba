// Variables: named memory that outlives a step, consistent between replicas. A mirrored (ON_WRITE)
// variable has one value for all replicas, and a copy in each separate memory of its strategy's
// devices. An ON_READ variable has a component for each replica, which writes it without a sync
// point. A read outside of replicas combines the components by the aggregation. docs/rules.md,
// sections 3 to 5, has the rules of reads and writes.
//
// A failed update or write may leave a variable undefined. Reads fail with CHOIR_STATE until it is
// assigned or restored.
// Threads: any for getters; the context's thread for other calls.
#pragma once

#include "value.h"

CHOIR_C_BEGIN

// When copies are made equal.
typedef enum {
	CHOIR_SYNCHRONIZATION_AUTO = 0, // ON_WRITE
	CHOIR_SYNCHRONIZATION_ON_WRITE, // mirrored
	CHOIR_SYNCHRONIZATION_ON_READ, // a component for each replica
	CHOIR_SYNCHRONIZATION_NONE // not accepted (CHOIR_INVALID)
} choir_synchronization;

// How values that replicas write (ON_WRITE) or have (ON_READ) are combined.
typedef enum {
	// ON_WRITE: replicas cannot write. ON_READ: only replicas and updates can read.
	CHOIR_AGGREGATION_NONE = 0,
	CHOIR_AGGREGATION_SUM,
	CHOIR_AGGREGATION_MEAN, // over replicas; floating-point dtypes only
	CHOIR_AGGREGATION_ONLY_FIRST_REPLICA // replica 0's value
} choir_aggregation;

// Random initializers are for f32 and f64. The numbers depend only on the strategy's seed and the
// variable's name (Philox).
typedef enum {
	CHOIR_INITIALIZER_ZEROS = 0,
	CHOIR_INITIALIZER_ONES,
	// Uniform in +-sqrt(6 / (in + out)): Glorot, Bengio 2010. in and out are the last two
	// dimensions, each times the product of those before. For a vector, both are its length; for a
	// scalar, 1.
	CHOIR_INITIALIZER_GLOROT_UNIFORM,
	// Normal, mean 0, deviation sqrt(2 / in), not truncated: He et al. 2015.
	CHOIR_INITIALIZER_HE_NORMAL,
	CHOIR_INITIALIZER_NORMAL, // normal, mean 0, deviation scale
	CHOIR_INITIALIZER_UNIFORM, // uniform in +-scale
	CHOIR_INITIALIZER_TRUNCATED_NORMAL, // NORMAL, within 2 deviations
	CHOIR_INITIALIZER_GLOROT_NORMAL, // normal, deviation sqrt(2 / (in + out)), not truncated
	CHOIR_INITIALIZER_HE_UNIFORM, // uniform in +-sqrt(6 / in)
	CHOIR_INITIALIZER_LECUN_NORMAL, // normal, deviation sqrt(1 / in), not truncated
	CHOIR_INITIALIZER_LECUN_UNIFORM, // uniform in +-sqrt(3 / in): LeCun et al. 1998
	// scale times a matrix [product of the other dimensions, last dimension] whose rows or
	// columns, whichever are fewer, are orthonormal: arXiv:1312.6120.
	CHOIR_INITIALIZER_ORTHOGONAL,
	CHOIR_INITIALIZER_CONSTANT // scale
} choir_initializer;

// Writes a variable's initial elements to out, packed, in its dtype. choir_variable_new calls it
// once, and fails if it fails.
typedef choir_status choir_initializer_fn(void *out, const choir_shape *shape, void *user);

// How a variable is made.
typedef struct {
	size_t size;
	choir_dtype dtype; // 0: CHOIR_F32
	choir_synchronization synchronization;
	choir_aggregation aggregation;
	choir_toggle trainable; // default: on, but off for ON_READ
	choir_initializer initializer;
	// For CONSTANT, for ORTHOGONAL (0: 1), and for NORMAL, UNIFORM and TRUNCATED_NORMAL (0: 0.05).
	double scale;
	const void *initial_value; // packed elements, copied; replaces initializer
	choir_initializer_fn *initializer_fn; // replaces initializer if initial_value is NULL
	void *user; // for initializer_fn
} choir_variable_options;

// Makes a variable of the current strategy, whose initial value is made once, on the host. Scopes
// (scope.h) override o.
//
// In scopes, in merge calls and outside of all contexts, the name must be new.
//
// In a replica this is a sync point: replica 0 makes the variable, and the others get it.
// CHOIR_STATE: name, dtype, shape, synchronization or aggregation differ between replicas. Names
// may differ in numbers that make them unique, such as _12 at the end or before a "/". An existing
// variable of this name is returned, so a step may make its variables in every run. CHOIR_INVALID:
// its other four differ. Parameter server workers make variables in turn, and share those of one
// name. CHOIR_TIMEOUT: a worker's turn came too late.
//
// The replica's frame keeps a failure. A variable colocated with a sharded one has as many rows.
// CHOIR_STATE also: the thread is in an update; the strategy is from before a fork.
choir_variable *choir_variable_new(
		const char *name, choir_shape shape, const choir_variable_options *o);

// Makes a mirrored, trainable variable without aggregation on the program's memory, which has
// packed elements and must outlive the strategy. Devices with host memory use it, so the program
// may write to it between runs. Others have copies, which each successful run outside of merge
// calls writes back. Fails as choir_variable_new. CHOIR_STATE also: in a replica.
choir_variable *choir_variable_wrap(
		const char *name, choir_dtype dtype, choir_shape shape, void *memory);

// Getters
const char *choir_variable_name(const choir_variable *v);
const choir_shape *choir_variable_shape(const choir_variable *v);

// Sets dtype, synchronization (never AUTO), aggregation and trainable (on or off), other fields to
// 0.
CHOIR_MUST_CHECK choir_status choir_variable_describe(
		const choir_variable *v, choir_variable_options *options);

// A strategy with a .partition (strategy.h) cuts a variable v by rows into shards: the variables
// "v/part_0", "v/part_1" and so on, which are used like other variables. v is their parent:
// - Reads and writes of v go to the shards. A read concatenates them.
// - Gradients flow to the shards, which optimizers update. The backward pass frees the
//   concatenation, unless it is a source (tape.h).
// - v has no copies. It is saved and restored uncut.
// - An update of v updates one shard after another. In the update function, v means the current
//   shard, a variable colocated with v its shard of the same index, and an argument of v's shape
//   has only the shard's rows. Results with as many rows are joined.

// The number of shards; 0: v is not cut.
int choir_variable_shards(const choir_variable *v);
choir_variable *choir_variable_shard(choir_variable *v, int index);

// The parent of a shard v, or NULL.
choir_variable *choir_variable_shard_parent(choir_variable *v);

// The number of copies in this process, or of components if ON_READ; 0 if cut.
int choir_variable_copies(const choir_variable *v);

// "v" for the first copy of v, "v/replica_1" and so on for the others.
const char *choir_variable_copy_name(const choir_variable *v, int copy);

// The device of a copy.
choir_device *choir_variable_device(const choir_variable *v, int copy);

// Reads v's present value into f: in a replica's frame, its copy or component; in an update's, the
// copy in the updated copy's memory; in another, the value, aggregated if v is ON_READ. If f's
// replica has requested an optimizer's update of v, the read waits for it, and so for all
// replicas. While a tape records in f, all reads give the same tensor until v changes: the source
// (tape.h) for gradients of v.
//
// If f's device shares the copy's memory, the tensor is a view of it, whose use after v has
// changed fails with CHOIR_STATE. choir_copy keeps the value.
//
// CHOIR_STATE: v is undefined; f belongs to a replica or update of another strategy; f belongs to
// no replica or update, and the thread is in a replica or another strategy's context.
// CHOIR_INVALID: v is ON_READ without aggregation, and f belongs to no replica or update. NULL
// without a new failure: v or f is NULL, or f has failed before.
choir_tensor *choir_variable_read(choir_variable *v, choir_frame *f);

// Reads rows of v into the frame of indices, as choir_gather of a read does, and fails like both.
// If v has shards, the call waits for indices. With several parameter server workers and only host
// memory, a call in a replica copies only these rows. Two such calls may see different values, but
// not inside choir_recompute, nor after choir_variable_read of v on the same tape.
choir_tensor *choir_variable_gather(choir_variable *v, choir_tensor *indices);

// Reads rows as Python's v[start:stop:step], also with negative numbers. An omitted low end is
// INT64_MIN, a high one INT64_MAX. Gradients flow to v. CHOIR_INVALID: step is 0; v is a scalar.
// Otherwise fails as choir_variable_read.
choir_tensor *choir_variable_slice(
		choir_variable *v, choir_frame *f, int64_t start, int64_t stop, int64_t step);

// Makes a tensor in f that stands for v as an argument, a result and in choir_tensor_as_value.
// Operations use v's copy or component for f's replica or update, else copy 0. Tapes and
// optimizers ignore it. Fails as choir_variable_read.
choir_tensor *choir_variable_component(choir_variable *v, choir_frame *f);

// Writing. value has v's dtype and shape, or is a plain number. If it is a read or component of v,
// the write uses its earlier elements. The context of value's frame decides what is written:
//
// - In a replica in a run, a mirrored v is written in a merge call (replica.h) with its
//   aggregation (CHOIR_INVALID: v has none). If v is ON_READ, the replica's component is written
//   at once.
// - In an update, the copy of v that the update reads is written. CHOIR_INVALID: v is neither the
//   updated variable nor colocated with it.
// - In other contexts, and in the default replica outside of runs, the call writes all copies or
//   components before it returns. If v is ON_READ with SUM, each component gets an equal share.
//   CHOIR_INVALID: v is ON_READ, and has no aggregation or the call adds or subtracts. But the
//   default replica writes the only component of a variable of the default strategy.
//
// CHOIR_INVALID also: the aggregation is SUM, and several replicas pass the same plain number
// other than 0. CHOIR_STATE: v belongs to another strategy; the thread is not in the context of
// value's frame.

// v = value. Defines an undefined variable.
CHOIR_MUST_CHECK choir_status choir_variable_assign(choir_variable *v, choir_tensor *value);

// v = v + value. Integers wrap around. CHOIR_UNSUPPORTED: not f32, f64, i32, i64 or u8.
CHOIR_MUST_CHECK choir_status choir_variable_assign_add(choir_variable *v, choir_tensor *value);

// v = v - value, with the rules of choir_variable_assign_add.
CHOIR_MUST_CHECK choir_status choir_variable_assign_sub(choir_variable *v, choir_tensor *value);

// What happens to a row of v.
typedef enum {
	CHOIR_SCATTER_ADD,
	CHOIR_SCATTER_SUB,
	CHOIR_SCATTER_MUL,
	CHOIR_SCATTER_DIV, // integers as choir_divide
	CHOIR_SCATTER_MIN, // NAN if either element is NAN
	CHOIR_SCATTER_MAX, // NAN if either element is NAN
	CHOIR_SCATTER_UPDATE // the row of values
} choir_scatter;

// Changes rows (axis 0) of a mirrored v: applies row i of values to row indices[i], in the order
// of i. indices is a vector of i32 or i64, perhaps with repetitions. values has v's dtype and a
// row for each index, or is a plain number. The context of their frame decides what is written, as
// for choir_variable_assign. A merge call writes the rows of replica 0, then 1, and so on; their
// numbers may differ.
//
// Waits for indices, and finds all errors before it writes. Fails as choir_variable_assign.
// CHOIR_UNSUPPORTED also: v is ON_READ; several workers share v and .locked_updates is off; MIN,
// MAX or UPDATE outside of an update, if v's aggregation is SUM or MEAN; a dtype that
// choir_variable_assign_add does not support, except with UPDATE.
CHOIR_MUST_CHECK choir_status choir_variable_scatter(
		choir_variable *v, choir_scatter how, choir_tensor *indices, choir_tensor *values);

CHOIR_C_END
