// Looking at a step from outside: the gradients that replicas give to optimizers as they come, and
// one replica of a step by itself, to step through it in a debugger. What a replica computes
// depends on the program, the seed, the number of the step, its id, the weights and its part of
// the batch, and not on the other replicas, as long as it asks them for nothing. So a step of a
// job of any size can be looked at on one machine, with the bits that the job had: restore a
// checkpoint (choir_strategy_restore_step) into a strategy of as many replicas, take the same
// batch, and run the replica. The command does it for its own trainings (choir replay).
// Threads: the program's, while no run is under way.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// Calls fn for one replica of s alone, on the calling thread, as choir_strategy_run would call it
// in its next run: with its part of args (NULL: none), its device and its random numbers. What it
// gives to optimizers is looked at (choir_strategy_watch_gradients) and dropped, also where it is
// not finite; no variable is updated and the step is not counted, so the next run or the next
// replica begins from the same. What it writes to its own parts of ON_READ variables, a metric
// say, stays written, and what it returns by name is dropped.
//
// replica: one of this worker's, from 0 (choir_strategy_local_replicas); other workers know
// nothing of the call, also when it fails.
//
// Fails as a run does; CHOIR_UNSUPPORTED, naming the call, where the replica needs the others: a
// merge call, an all_reduce, an assignment to a mirrored variable, a variable to be made.
// CHOIR_INVALID: there is no such replica, fn is NULL, args is another strategy's. CHOIR_STATE:
// not in the program's own cross-replica context; a run is under way.
CHOIR_MUST_CHECK choir_status choir_strategy_run_replica(
		choir_strategy *s, int replica, choir_replica_fn *fn, void *user, choir_values *args);

// What is called with a gradient: of the replica's own part of the batch, of the scaled loss where
// an optimizer has a scale, in the replica's frame, perhaps slices (choir_to_dense); of a variable
// in shards it may come shard by shard. It must not be changed.
typedef void choir_gradient_fn(
		choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user);
// From now on fn is called with every gradient that a replica gives to an optimizer of s, before
// the optimizer looks at it, on the replica's thread: several at the same time. NULL: nobody is
// called any more. CHOIR_INVALID: s is NULL.
CHOIR_MUST_CHECK choir_status choir_strategy_watch_gradients(
		choir_strategy *s, choir_gradient_fn *fn, void *user);

CHOIR_C_END
