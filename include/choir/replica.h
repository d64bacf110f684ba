// Replica context: what a replica can do inside a run. It sees its own part of everything: its
// arguments, its frame, its id. In a merge call one function runs for all replicas in
// cross-replica context, and then each continues with its share of the result. Outside of all
// strategies a program is itself a replica, the default one (0 of 1). There a sync point returns
// at once.
//
// "In all replicas" marks a call that is a sync point (docs/rules.md, section 1). Every replica of
// the run must make these calls in the same order, with the same function, names, dtypes, shapes
// and options. In each it waits for the others. CHOIR_STATE: a replica makes a different call or
// has returned. CHOIR_CANCELLED: another replica failed. CHOIR_TIMEOUT: no other replica arrives
// or returns within the strategy's .timeout. If r's frame has failed before, the call returns that
// failure without waiting.
//
// The status of choir_replica_return and choir_replica_set_arg may be ignored: the frame keeps the
// first failure, and the run reports it. Errors of all calls: CHOIR_STATE if the thread is not in
// the context of r; CHOIR_INVALID if r is NULL. tensor.h has the rule for a NULL tensor.
// Threads: while a replica's function runs, its thread may make all calls, and any thread may call
// getters. One thread at a time may use the default replica.
#pragma once

#include "variable.h"

CHOIR_C_BEGIN

typedef struct choir_cross choir_cross;
typedef struct choir_update choir_update;

// One replica in one call of a run's function. It is valid until the function returns.
typedef struct {
	// Owns the tensors that the replica makes, on its device. It is emptied when the function
	// returns. The program empties the default replica's frame (choir_frame_clear).
	choir_frame *frame;
} choir_replica;

// The function of a run (choir_strategy_run). A result other than CHOIR_OK is the replica's
// failure. Its text is that of choir_fail, if fn called that.
typedef choir_status choir_replica_fn(choir_replica *r, void *user);

// The function of a merge call, called once for all replicas.
typedef choir_status choir_merge_fn(choir_cross *x, void *user);

// The function of an update, called once for each copy of a variable (update.h).
typedef choir_status choir_update_fn(choir_update *u, void *user);

// How the values of replicas become one (choir_strategy_reduce; docs/rules.md, section 8).
typedef enum { CHOIR_SUM = 1, CHOIR_MEAN } choir_reduce_op;

// Getters. The id or index of NULL is CHOIR_NONE.

// The replica that this thread is in; outside of all contexts the default one. NULL: the thread is
// in a scope, merge call or update, or has called choir_strategy_set_current; or there is no
// memory for the default replica.
choir_replica *choir_replica_current(void);

// The replica whose frame f is, or NULL.
choir_replica *choir_frame_replica(const choir_frame *f);

// The replica_id of r (strategy.h), and the number of replicas of the job.
int choir_replica_id(const choir_replica *r);
int choir_replica_count(const choir_replica *r);

choir_strategy *choir_replica_strategy(const choir_replica *r);

choir_device *choir_replica_device(const choir_replica *r);

// The index of r's device among the strategy's devices that carry replicas.
int choir_replica_device_index(const choir_replica *r);

// Arguments and results

// Gives the run's argument of a name, for this replica, in r's frame. A per-replica leaf gives the
// replica's own tensor, a plain or mirrored leaf the common one. A variable gives its component,
// which stands for the variable when it is passed on. The result is a view, or a copy if the
// argument lies on another device. CHOIR_NOT_FOUND: no such name. CHOIR_INVALID: a destination.
choir_tensor *choir_replica_arg(choir_replica *r, const char *name);

// Sets this replica's result of a name to value, a tensor of r's frame, and replaces an earlier
// one. The result stays when the frame is emptied; only borrowed memory and reads of variables are
// copied. All replicas must return the same names, else the run is CHOIR_STATE. CHOIR_INVALID: no
// name, a tensor of another frame.
choir_status choir_replica_return(choir_replica *r, const char *name, choir_tensor *value);

// Merge calls

// Sets the argument of a name to value, a tensor of r's frame, for r's next merge call or update,
// and replaces an earlier one. Borrowed memory is copied. Only that call gets the arguments. Fails
// as choir_replica_return.
choir_status choir_replica_set_arg(choir_replica *r, const char *name, choir_tensor *value);

// In all replicas. fn runs once, in cross-replica context, after the last replica has arrived and
// the updates that optimizers were asked for are done. It runs on the last replica's thread with
// that replica's user. Arguments are merged by name (choir_cross_arg). A failure of fn is the
// run's failure. In the last replica the call returns it, in the others CHOIR_CANCELLED.
CHOIR_MUST_CHECK choir_status choir_replica_merge_call(
		choir_replica *r, choir_merge_fn *fn, void *user);

// Gets the merge function's result of a name, in the same way as choir_replica_arg. It is valid
// until r's next merge call, update, gather, broadcast or write of a mirrored variable.
// CHOIR_STATE also: there was no merge call before; the frame has failed.
choir_tensor *choir_replica_result(choir_replica *r, const char *name);

// Collectives: sync points that are expressions on tensors of r's frame, with results in r's
// frame. Tensors of different replicas belong together if they have the same position in their
// frames. CHOIR_STATE: replicas make or pass these tensors in different orders.

// In all replicas, with equal op, shape and dtype. Gives the sum or mean of all replicas' t.
// Dtypes are those of choir_strategy_reduce. A plain number is an f64 scalar that counts once for
// each replica. The gradient is the all-reduce of the results' gradients, so all replicas must
// also run the backward pass. For indexed slices (tensor.h) the result is indexed slices, and no
// gradient flows. CHOIR_INVALID: an unknown op, a tensor of another frame. CHOIR_STATE also: only
// some tensors have a count.
choir_tensor *choir_replica_all_reduce(choir_replica *r, choir_reduce_op op, choir_tensor *t);

// In all replicas. Does the same as n calls of choir_replica_all_reduce, with the same bits, for
// any mixture of dtypes and shapes. out may be the array in. Tensors of at most 64 KiB travel in
// one pack for each dtype, and so do their gradients. After a failure out[] is unchanged.
CHOIR_MUST_CHECK choir_status choir_replica_batch_all_reduce(choir_replica *r, choir_reduce_op op,
		size_t n, choir_tensor *const in[], choir_tensor *out[]);

// In all replicas, with the same axis (negative: from the back). Concatenates all replicas' t
// along axis, in the order of their ids. Sizes along axis may differ, and be 0; ranks, dtypes and
// the other dimensions must agree. The gradient is this replica's part of the sum of the results'
// gradients over all replicas. CHOIR_INVALID: no such axis; shapes or dtypes that do not fit.
// CHOIR_UNSUPPORTED: indexed slices.
choir_tensor *choir_replica_all_gather(choir_replica *r, choir_tensor *t, int axis);

// In all replicas, with the same replica_id. Gives all replicas the t of that replica; the other
// replicas may pass any tensor. There is no gradient. CHOIR_INVALID: there is no such replica.
choir_tensor *choir_replica_broadcast(choir_replica *r, choir_tensor *t, int replica_id);

// Means over the global batch, of which replicas may have unequal parts

// The number of examples of this replica: the rows that choir_values_split or a distributed
// dataset gave it. If neither did, it is the rows of the first leaf of choir_values_set_local that
// has rows. 0 also if the arguments do not say.
int64_t choir_replica_examples(const choir_replica *r);

// The number of examples of all replicas together. 0 if it is not known for all of them.
int64_t choir_replica_global_examples(const choir_replica *r);

// Averages losses over the global batch: the sum of this replica's losses divided by the number of
// examples of the global batch, a scalar. losses is [n, ...], f32 or f64. The SUM of the results
// over replicas is the mean over the batch, also with unequal parts, and the sum of their
// gradients is the gradient of that mean (TensorFlow's compute_average_loss).
//
// If the arguments do not say how many examples there are, every replica counts as having n. If no
// replica has examples the result is 0. CHOIR_INVALID: losses is a scalar.
choir_tensor *choir_replica_average_loss(choir_replica *r, choir_tensor *losses);

// Gives the sum of losses divided by global_batch, or 0 if global_batch is 0. It is for replicas
// that make their own data in unequal parts. CHOIR_INVALID: losses is a scalar, global_batch is
// negative.
choir_tensor *choir_replica_average_loss_over(
		choir_replica *r, choir_tensor *losses, int64_t global_batch);

// Gives the sum of loss divided by the number of replicas, a scalar. It is for a term that is
// equal in all replicas and counts once (TensorFlow's scale_regularization_loss). loss is f32 or
// f64.
choir_tensor *choir_replica_scale_regularization(choir_replica *r, choir_tensor *loss);

CHOIR_C_END
