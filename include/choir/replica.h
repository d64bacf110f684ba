// Replica context: inside run, once for each replica; and the default replica, 0 of 1, outside any
// strategy. arg and return: the called function's side; give and take: the caller's. return and give may
// go unchecked: run reports them. (all): every replica must call, in one order, with equal functions,
// names, dtypes and options; one that differs, returns or fails is named and all are released.
// Threads: the one that runs this replica.
#pragma once

#include "variable.h"

CHOIR_C_BEGIN

typedef struct choir_cross choir_cross;
typedef struct choir_update choir_update;
typedef struct {
	choir_frame *frame; // emptied when the function returns
} choir_replica;
typedef choir_status choir_replica_fn(choir_replica *r, void *user);
typedef choir_status choir_merge_fn(choir_cross *x, void *user);
typedef choir_status choir_update_fn(choir_update *u, void *user);
typedef enum { CHOIR_SUM = 1, CHOIR_MEAN } choir_reduce_op;

choir_replica *choir_replica_current(void); // NULL in cross-replica and update context
choir_replica *choir_frame_replica(const choir_frame *f); // whose frame it is; NULL: no replica's

int choir_replica_id(const choir_replica *r); // in sync group, 0 .. count-1
int choir_replica_count(const choir_replica *r);
choir_strategy *choir_replica_strategy(const choir_replica *r);
choir_device *choir_replica_device(const choir_replica *r);
int choir_replica_device_index(const choir_replica *r); // among the worker devices; several replicas may share one

choir_tensor *choir_replica_arg(choir_replica *r, const char *name);
choir_status choir_replica_return(choir_replica *r, const char *name, choir_tensor *value);
// (all) fn runs once, on the thread that comes last; what it returned can be taken until the next call.
choir_status choir_replica_give(choir_replica *r, const char *name, choir_tensor *value);
choir_status choir_replica_merge_call(choir_replica *r, choir_merge_fn *fn, void *user);
choir_tensor *choir_replica_take(choir_replica *r, const char *name);
// (all) A merge call that updates variable with what was given (spec V6: mirrored or plain leaves).
choir_status choir_replica_update(choir_replica *r, choir_variable *v, choir_update_fn *fn, void *user);
// (all) Expressions with gradients; dense or sparse. gather: unequal sizes along axis are fine.
choir_tensor *choir_replica_all_reduce(choir_replica *r, choir_reduce_op op, choir_tensor *t);
choir_status choir_replica_batch_all_reduce(choir_replica *r, choir_reduce_op op, size_t n, choir_tensor *const in[], choir_tensor *out[]);
choir_tensor *choir_replica_all_gather(choir_replica *r, choir_tensor *t, int axis);
choir_tensor *choir_replica_broadcast(choir_replica *r, choir_tensor *t, int from); // no gradient

// Examples here (may be 0), and in the global batch.
int64_t choir_replica_examples(const choir_replica *r);
int64_t choir_replica_global_examples(const choir_replica *r);
// This replica's sum / all examples: SUM over replicas is the mean over the global batch (TensorFlow's
// compute_average_loss). Losses of rank 1 or more. Weights: multiply first.
choir_tensor *choir_replica_mean(choir_replica *r, choir_tensor *losses);
choir_tensor *choir_replica_scale_regularization(choir_replica *r, choir_tensor *loss); // sum / count

CHOIR_C_END
