// Debugging a step. A hook sees the gradients that replicas add to optimizers. One replica can run
// alone. The replica's result depends on the program, the seed, the step, the weights, the
// replica's id and its part of the batch. So one machine with a checkpoint and the batch can
// replay a step of a job of any size, with the same bits.
// Threads: one at a time, outside of runs.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// Calls fn for one replica of s, on the calling thread, as the next choir_strategy_run would. The
// replica has its part of args (NULL: none), its device and its random numbers. Gradients go to
// the hook of choir_strategy_set_gradient_hook. Then gradients and results are dropped. No
// variable is updated and no step is counted, so the next run or replica starts from the same
// state. But writes to the replica's ON_READ components, for example of a metric, remain.
//
// Fails as a run does. CHOIR_UNSUPPORTED: the replica made a call that needs other replicas (a
// sync point: docs/rules.md, section 1). CHOIR_STATE: the thread is not in the program's own
// cross-replica context; a run is under way.
CHOIR_MUST_CHECK choir_status choir_strategy_run_replica(choir_strategy *s, int local_replica,
		choir_replica_fn *fn, void *user, choir_values *args);

// gradient is v's gradient for the replica's own part of the batch, in the replica's frame. With a
// loss scale, it is that of the scaled loss. It may be indexed slices (choir_to_dense). For a
// sharded variable, the hook may get the gradient of each shard.
typedef void choir_gradient_fn(
		choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user);

// Calls fn with every gradient that a replica adds to an optimizer, before its use, on the
// replicas' threads at the same time. NULL removes the hook.
CHOIR_MUST_CHECK choir_status choir_strategy_set_gradient_hook(
		choir_strategy *s, choir_gradient_fn *fn, void *user);

CHOIR_C_END
