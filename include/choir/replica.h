// Replica context: the calls of a replica inside a run. A replica sees its own arguments, frame
// and id. In a merge call, one function runs for all replicas in cross-replica context. Then each
// replica continues with its part of the results. Outside of all strategies, the program itself is
// a replica: the default replica (0 of 1). There a sync point returns at once.
//
// "In all replicas" marks a call that is a sync point (docs/rules.md, section 1). Every replica of
// the run must make these calls in the same order, with the same function, names, dtypes, shapes
// and options. The call waits for the other replicas. CHOIR_STATE: a replica makes a different
// call or has returned. CHOIR_CANCELLED: another replica failed. CHOIR_TIMEOUT: no replica arrives
// or returns within the strategy's .timeout. If r's frame has failed before, the call returns that
// failure without waiting.
//
// A program may ignore the status of choir_replica_return and choir_replica_set_arg: the frame
// keeps the first failure, and the run returns it. Errors of all calls: CHOIR_STATE if the thread
// is not in the context of r; CHOIR_INVALID if r is NULL. tensor.h has the rule for a NULL tensor.
// Threads: while a replica's function runs, its thread may make all calls, and any thread may call
// getters. One thread at a time may use the default replica.
#pragma once

#include "variable.h"

CHOIR_C_BEGIN

typedef struct choir_cross choir_cross;
typedef struct choir_update choir_update;

// One replica in one call of a run's function. It is valid until the function returns.
typedef struct {
	// The frame on the replica's device, which owns the tensors that the replica makes. The frame
	// is cleared when the function returns. The program must clear the default replica's frame
	// (choir_frame_clear).
	choir_frame *frame;
} choir_replica;

// The function of a run (choir_strategy_run). A result other than CHOIR_OK is the replica's
// failure. fn can set the failure's text by choir_fail.
typedef choir_status choir_replica_fn(choir_replica *r, void *user);

// The function of a merge call, called once for all replicas.
typedef choir_status choir_merge_fn(choir_cross *x, void *user);

// The function of an update, called once for each copy of a variable (update.h).
typedef choir_status choir_update_fn(choir_update *u, void *user);

// How the values of replicas become one (choir_strategy_reduce; docs/rules.md, section 8).
typedef enum { CHOIR_SUM = 1, CHOIR_MEAN } choir_reduce_op;

// Getters. For a NULL replica, an id or index is CHOIR_NONE.

// The replica in which this thread is. Outside of all contexts it is the default replica. NULL:
// the thread is in a scope, merge call or update, or has called choir_strategy_set_current; or no
// memory is left for the default replica.
choir_replica *choir_replica_current(void);

// The replica whose frame f is, or NULL.
choir_replica *choir_frame_replica(const choir_frame *f);

// The replica_id of r (strategy.h), and the number of replicas of the job.
int choir_replica_id(const choir_replica *r);
int choir_replica_count(const choir_replica *r);

// The strategy that runs r.
choir_strategy *choir_replica_strategy(const choir_replica *r);

// The device on which r runs.
choir_device *choir_replica_device(const choir_replica *r);

// The index of r's device among the strategy's devices that run replicas.
int choir_replica_device_index(const choir_replica *r);

// Arguments and results

// Gets the run's argument of this name for this replica, in r's frame. A per-replica leaf gives
// the replica's own tensor. A plain or mirrored leaf gives all replicas equal tensors. A variable
// gives a tensor that stands for the variable (choir_variable_component). The result is a view, or
// a copy if the argument is on another device. CHOIR_NOT_FOUND: no such name. CHOIR_INVALID: the
// argument is a destination.
choir_tensor *choir_replica_arg(choir_replica *r, const char *name);

// Sets this replica's result of this name to value, a tensor of r's frame, and replaces an earlier
// result. The result outlives the frame's contents. Only borrowed memory and reads of variables
// are copied. All replicas must return the same names, else the run fails with CHOIR_STATE.
// CHOIR_INVALID: no name, a tensor of another frame.
choir_status choir_replica_return(choir_replica *r, const char *name, choir_tensor *value);

// Merge calls

// Sets an argument of r's next merge call or update to value, a tensor of r's frame, and replaces
// an earlier argument of this name. Borrowed memory is copied. Fails as choir_replica_return.
choir_status choir_replica_set_arg(choir_replica *r, const char *name, choir_tensor *value);

// In all replicas. After the last replica has arrived and all requested updates of optimizers are
// done, fn runs once, in cross-replica context. It runs on the last replica's thread, with this
// replica's user. Arguments are merged by name (choir_cross_arg). If fn fails, the run fails. The
// call then returns fn's failure in the last replica and CHOIR_CANCELLED in the others.
CHOIR_MUST_CHECK choir_status choir_replica_merge_call(
		choir_replica *r, choir_merge_fn *fn, void *user);

// Gets the merge function's result of this name, as choir_replica_arg gets an argument. The tensor
// is valid until r's next merge call, update, gather, broadcast or write of a mirrored variable.
// CHOIR_STATE also: there was no merge call before; the frame has failed.
choir_tensor *choir_replica_result(choir_replica *r, const char *name);

// Collectives: sync points that take tensors of r's frame and give results in r's frame. A
// collective combines the tensors at the same position in the replicas' frames. CHOIR_STATE:
// replicas make or pass these tensors in different orders.

// In all replicas, with equal op, shape and dtype. Gives the sum or mean of all replicas' t. The
// dtypes are those of choir_strategy_reduce. A plain number is an f64 scalar that counts once for
// each replica. The gradient is the all-reduce of the results' gradients, so all replicas must
// also run the backward pass. If t is indexed slices (tensor.h), the result is indexed slices,
// without a gradient. CHOIR_INVALID: an unknown op, a tensor of another frame. CHOIR_STATE also:
// only some tensors have a count.
choir_tensor *choir_replica_all_reduce(choir_replica *r, choir_reduce_op op, choir_tensor *t);

// In all replicas. Gives the same bits as n calls of choir_replica_all_reduce, for any mixture of
// dtypes and shapes. out may be the array in. Tensors of at most 64 KiB are packed: one pack for
// each dtype. Their gradients are packed, too. After a failure out[] is unchanged.
CHOIR_MUST_CHECK choir_status choir_replica_batch_all_reduce(choir_replica *r, choir_reduce_op op,
		size_t n, choir_tensor *const in[], choir_tensor *out[]);

// In all replicas, with the same axis (negative: from the back). Concatenates all replicas' t
// along axis, in the order of their ids. Sizes along axis may differ or be 0. Ranks, dtypes and
// the other dimensions must be equal. The backward pass sums the results' gradients over all
// replicas; the part of the sum for this replica's t is the gradient of t. CHOIR_INVALID: no such
// axis; different dtypes, ranks or other dimensions. CHOIR_UNSUPPORTED: indexed slices.
choir_tensor *choir_replica_all_gather(choir_replica *r, choir_tensor *t, int axis);

// In all replicas, with the same replica_id. Gives all replicas the t of the replica replica_id.
// The other replicas may pass any tensor. There is no gradient. CHOIR_INVALID: there is no such
// replica.
choir_tensor *choir_replica_broadcast(choir_replica *r, choir_tensor *t, int replica_id);

// Means over the global batch, which may be divided unequally among replicas

// The number of this replica's examples: the rows that it got from choir_values_split or a
// distributed dataset. Otherwise, the rows of the first choir_values_set_local leaf that has rows.
// 0 also if the number is unknown.
int64_t choir_replica_examples(const choir_replica *r);

// The number of examples of all replicas together. 0 if any replica's number is unknown.
int64_t choir_replica_global_examples(const choir_replica *r);

// Averages losses over the global batch: divides the sum of this replica's losses by the number of
// examples of the global batch. The result is a scalar. losses is [n, ...], f32 or f64. The SUM of
// the results over replicas is the mean over the batch, also if replicas have different numbers of
// examples. The sum of their gradients is the gradient of this mean (TensorFlow's
// compute_average_loss).
//
// If the number of examples is unknown, every replica counts as having n examples. If the global
// batch is empty, the result is 0. CHOIR_INVALID: losses is a scalar.
choir_tensor *choir_replica_average_loss(choir_replica *r, choir_tensor *losses);

// Gives the sum of losses divided by global_batch, or 0 if global_batch is 0. Use it if replicas
// make their own data, with different numbers of examples. CHOIR_INVALID: losses is a scalar,
// global_batch is negative.
choir_tensor *choir_replica_average_loss_over(
		choir_replica *r, choir_tensor *losses, int64_t global_batch);

// Gives a scalar: the sum of loss divided by the number of replicas. Use it for a term that is
// equal in all replicas and must count once (TensorFlow's scale_regularization_loss). loss is f32
// or f64.
choir_tensor *choir_replica_scale_regularization(choir_replica *r, choir_tensor *loss);

CHOIR_C_END
