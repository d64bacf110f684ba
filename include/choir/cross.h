// Cross-replica context: inside a merge call, once for all replicas; or choir_strategy_cross.
// Threads: the one that runs the merge function.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

struct choir_cross {
	choir_frame *frame; // views of the replicas' tensors and all results live here
};
choir_strategy *choir_cross_strategy(const choir_cross *x);

choir_value *choir_cross_arg(choir_cross *x, const char *name); // what the replicas gave, merged (spec 2.6)
choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v);
// give, then run or update; then take what their functions returned, merged.
choir_status choir_cross_give(choir_cross *x, const char *name, choir_value *v);
choir_value *choir_cross_take(choir_cross *x, const char *name);
choir_status choir_cross_run(choir_cross *x, choir_replica_fn *fn, void *user);
// A destination is the devices of a value: of a variable (not written), of value itself (an all-reduce),
// or a place by name ("cpu:0,cpu:1").
choir_value *choir_cross_place(choir_cross *x, const char *devices);
// Mirrored at to, in the canonical tree (house 12); may be computed later, fused with the update that uses
// it (house 17). A plain non-zero value with SUM and several replicas: CHOIR_INVALID.
choir_value *choir_cross_reduce_to(choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to);
typedef struct {
	choir_value *v, *to;
	choir_value *result; // out
} choir_reduction;
// As n separate calls, packed: any mixture of dtypes, dense and sparse, destinations.
choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op, size_t n, choir_reduction items[]);
choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to); // plain or mirrored
choir_tensor *choir_cross_reduce(choir_cross *x, choir_reduce_op op, choir_value *v, choir_axes axes);
choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis); // dense only
// fn once for each local copy, on its device, with what was given: mirrored, plain, variables; a
// per-replica value is CHOIR_INVALID before anything changes.
typedef struct {
	size_t size;
	choir_toggle elementwise; // on: fn may be called on slices, by all threads; off
} choir_update_options;
choir_status choir_cross_update(choir_cross *x, choir_variable *v, const choir_update_options *o, choir_update_fn *fn, void *user);

CHOIR_C_END
