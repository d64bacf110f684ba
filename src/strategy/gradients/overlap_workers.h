// After all replicas of this worker have added a gradient, a thread sums it with the other
// workers during the backward pass, in a second process group. It expects the previous update's
// order, which fingerprints verify.
//
// It serves only a run's first update, because the order of several depends on the replicas'
// speed. The update exchanges small and sparse gradients.
//
// A run's threads call these functions, if s->overlap_workers is not NULL. The exchange thread
// uses an update only between _begin and the return of _rest.
#pragma once

#include "strategy/strategy.h"

struct chi_pending_update;
typedef struct chi_overlap_workers chi_overlap_workers;

// Sets s->options.overlap. CHOIR_INVALID: CHOIR_OVERLAP is neither on nor off.
choir_status chi_overlap_workers_choose(choir_strategy *s);
// Opens it on all workers or on none; all must call it. It needs host memory and, unless the
// option is on, a free core on every worker.
choir_status chi_overlap_workers_open(choir_strategy *s);
void chi_overlap_workers_close(choir_strategy *s);

// Called at the run's first gradient, if the order is known. The run's lock is held.
void chi_overlap_workers_begin(struct chi_pending_update *u);
// Called after all replicas have added a gradient or applied the update.
void chi_overlap_workers_wake(const choir_strategy *s);
// Called after all replicas have applied. Fails with the thread's first failure. The deadline is
// the exchanges'.
choir_status chi_overlap_workers_finish(struct chi_pending_update *u);
// Waits at the end of a run until the thread uses nothing of it. If the run has failed, exchanges
// are aborted; if the thread has failed, the run fails.
void chi_overlap_workers_rest(const choir_strategy *s);
