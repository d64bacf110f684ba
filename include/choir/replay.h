// Debugging a step. A hook sees the gradients that replicas add to optimizers. One replica can run
// alone: its result depends on the program, the seed, the step, the weights, its id and its part
// of the batch. So one machine with a checkpoint and the batch can replay a step of any job, with
// the same bits.
// Threads: one at a time, outside of runs.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// Calls fn for one replica of s, on the calling thread, as the next choir_strategy_run would: with
// its part of args (NULL: none), its device and its random numbers. Gradients go to the hook of
// choir_strategy_set_gradient_hook. Drops gradients and results, updates no variable and counts no
// step, so the next run starts from the same state. But fn's writes to ON_READ components, such as
// a metric's, remain.
//
// Fails as choir_strategy_run. CHOIR_UNSUPPORTED also: the replica came to a sync point
// (docs/rules.md, section 1). CHOIR_STATE also: in a replica, a merge call or an update.
CHOIR_MUST_CHECK choir_status choir_strategy_run_replica(choir_strategy *s, int local_replica,
		choir_replica_fn *fn, void *user, choir_values *args);

// gradient, in r's frame, is v's for the replica's part of the batch; with a loss scale, that of
// the scaled loss. It may be indexed slices (choir_to_dense). For a sharded variable, the hook may
// get each shard's.
typedef void choir_gradient_fn(
		choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user);

// Sets a hook: Choir calls fn with every gradient that a replica adds to an optimizer, before its
// use, on several threads at a time. NULL: no hook.
CHOIR_MUST_CHECK choir_status choir_strategy_set_gradient_hook(
		choir_strategy *s, choir_gradient_fn *fn, void *user);

CHOIR_C_END
