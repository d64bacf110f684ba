// Replica context: a replica's calls inside a run. In a merge call, one function runs for all
// replicas in cross-replica context. Outside of all strategies, the program is the default replica
// (0 of 1), whose sync points return at once.
//
// "In all replicas" marks a sync point (docs/rules.md, section 1): all replicas of the run make
// these calls in the same order, with the same function, names, dtypes, shapes and options. They
// wait for each other. CHOIR_STATE: a replica makes another call or has returned. CHOIR_CANCELLED:
// another replica failed. CHOIR_TIMEOUT: no replica arrives or returns within the strategy's
// .timeout. If r's frame has failed before, the call returns that failure without waiting.
//
// CHOIR_STATE in all calls: the thread is not in r's context. If the program ignores a failure of
// choir_replica_return or choir_replica_set_arg, the run returns it.
// Threads: any for getters while the replica's function runs; the replica's for other calls; one
// at a time for the default replica.
#pragma once

#include "variable.h"

CHOIR_C_BEGIN

typedef struct choir_cross choir_cross;
typedef struct choir_update choir_update;

// One replica in one call of a run's function. Valid until the function returns.
struct choir_replica {
	// On the replica's device. Choir clears it when the function returns, but the program must
	// clear the default replica's (choir_frame_clear).
	choir_frame *frame;
};

// The function of a run. If it fails, the replica fails.
typedef choir_status choir_replica_fn(choir_replica *r, void *user);

// The function of a merge call, called once for all replicas.
typedef choir_status choir_merge_fn(choir_cross *x, void *user);

// The function of an update, called once for each copy of a variable (update.h).
typedef choir_status choir_update_fn(choir_update *u, void *user);

// How replicas' values become one (docs/rules.md, section 8).
typedef enum { CHOIR_SUM = 1, CHOIR_MEAN } choir_reduce_op;

// Getters. For a NULL replica, an id or index is CHOIR_NONE.

// The replica that this thread runs; outside of all contexts, the default replica. NULL: the
// thread is in a scope, merge call or update, or has set a strategy.
choir_replica *choir_replica_current(void);

// The replica_id of r (strategy.h), and the number of replicas of the job.
int choir_replica_id(const choir_replica *r);
int choir_replica_count(const choir_replica *r);
choir_strategy *choir_replica_strategy(const choir_replica *r);
choir_device *choir_replica_device(const choir_replica *r);
// The index of r's device among those that run replicas.
int choir_replica_device_index(const choir_replica *r);

// Arguments and results

// Gets the run's argument of this name in r's frame (docs/rules.md, section 6): a view, a copy
// from another device, or a variable's choir_variable_component.
choir_tensor *choir_replica_arg(choir_replica *r, const char *name);

// Sets or replaces this replica's result of this name. value is a tensor of r's frame. The result
// outlives the frame's contents; borrowed memory and reads of variables are copied. All replicas
// return the same names.
choir_status choir_replica_return(choir_replica *r, const char *name, choir_tensor *value);

// Merge calls

// Sets or replaces an argument of r's next merge call or update. Borrowed memory is copied. Fails
// as choir_replica_return.
choir_status choir_replica_set_arg(choir_replica *r, const char *name, choir_tensor *value);

// In all replicas. After the last replica's arrival and all requested updates, fn runs once, on
// the last replica's thread, with its user and all arguments (choir_cross_arg). The last replica
// gets fn's failure, the others CHOIR_CANCELLED.
CHOIR_MUST_CHECK choir_status choir_replica_merge_call(
		choir_replica *r, choir_merge_fn *fn, void *user);

// Gets the merge function's result of this name, as choir_replica_arg gets an argument. Valid
// until r's next merge call, update, gather, broadcast or write of a mirrored variable.
// CHOIR_STATE also: no merge call before.
choir_tensor *choir_replica_result(choir_replica *r, const char *name);

// Collectives combine one tensor of each replica, with results in r's frame. CHOIR_STATE: replicas
// make these tensors in different orders.

// In all replicas, with equal op, shape and dtype. Gives the sum or mean of all replicas' t, with
// the dtypes of choir_strategy_reduce. A plain number is an f64 scalar that counts once for each
// replica. The gradient is the all-reduce of the results' gradients, so all replicas run the
// backward pass. Indexed slices (tensor.h) give indexed slices without a gradient. CHOIR_STATE
// also: only some tensors have a count.
choir_tensor *choir_replica_all_reduce(choir_replica *r, choir_reduce_op op, choir_tensor *t);

// In all replicas. Makes n all-reduces, of any dtypes and shapes, with the bits of
// choir_replica_all_reduce. in and out may be the same array. Tensors of at most 64 KiB, and their
// gradients, travel in one pack for each dtype. After a failure out[] is unchanged.
CHOIR_MUST_CHECK choir_status choir_replica_batch_all_reduce(choir_replica *r, choir_reduce_op op,
		size_t n, choir_tensor *const in[], choir_tensor *out[]);

// In all replicas, with the same axis. Concatenates all replicas' t in the order of ids. Sizes
// along axis may differ or be 0 (CHOIR_INVALID: another difference). t's gradient is its part of
// the sum of the results' gradients over replicas. CHOIR_UNSUPPORTED: indexed slices.
choir_tensor *choir_replica_all_gather(choir_replica *r, choir_tensor *t, int axis);

// In all replicas, with the same replica_id. Gives each replica the t of this one; the others may
// pass any tensor. No gradient.
choir_tensor *choir_replica_broadcast(choir_replica *r, choir_tensor *t, int replica_id);

// Means over the global batch

// The number of this replica's examples: the rows of its arguments from choir_values_split or a
// distributed dataset, else of the first leaf with rows from choir_values_set_local. 0 also if
// unknown.
int64_t choir_replica_examples(const choir_replica *r);

// The number of examples of all replicas; 0 if any replica's is unknown.
int64_t choir_replica_global_examples(const choir_replica *r);

// Averages losses, [n, ...] of f32 or f64, over the global batch (TensorFlow's
// compute_average_loss). Gives a scalar: the sum of this replica's losses, divided by the examples
// in the global batch. The SUM of these over replicas is the mean over the global batch, that of
// gradients its gradient.
//
// If the number of examples is unknown, each replica is assumed to have n. An empty global batch
// gives 0.
choir_tensor *choir_replica_average_loss(choir_replica *r, choir_tensor *losses);

// For replicas that make their own data: gives the sum of losses / global_batch (0 if that is 0).
choir_tensor *choir_replica_average_loss_over(
		choir_replica *r, choir_tensor *losses, int64_t global_batch);

// For a term that is equal in all replicas: the sum of loss, f32 or f64, divided by the number of
// replicas (TensorFlow's scale_regularization_loss).
choir_tensor *choir_replica_scale_regularization(choir_replica *r, choir_tensor *loss);

CHOIR_C_END
