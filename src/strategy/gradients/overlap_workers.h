// Exchange between workers during the backward pass. After all replicas of this worker have added
// a gradient, a thread sums it with the other workers, in a second process group. It expects the
// variables in the order of the previous update, which fingerprints verify.
//
// The thread serves only a run's first update, because the order of several updates depends on the
// replicas' speed. The update exchanges small and sparse gradients.
//
// A run's threads call these functions, if s->overlap_workers is not NULL. The exchange thread
// uses an update only between chi_overlap_workers_begin and the return of
// chi_overlap_workers_rest.
#pragma once

#include "strategy/strategy.h"

struct chi_pending_update;
typedef struct chi_overlap_workers chi_overlap_workers;

// Merges CHOIR_OVERLAP into s->options.overlap. CHOIR_INVALID: it is neither on nor off.
choir_status chi_overlap_workers_choose(choir_strategy *s);
// Opens the exchange thread on all workers or on none; all must call it. It needs host memory and,
// unless the option is on, a free core on every worker.
choir_status chi_overlap_workers_open(choir_strategy *s);
void chi_overlap_workers_close(choir_strategy *s);

// Passes the run's first update to the exchange thread at its first gradient, if its order is
// known. The run's lock is held.
void chi_overlap_workers_begin(struct chi_pending_update *u);
// Wakes the exchange thread, after all replicas have added a gradient or applied the update.
void chi_overlap_workers_wake(const choir_strategy *s);
// Waits for the exchange thread's sums, after all replicas have applied. Fails with the thread's
// first failure. The deadline is the exchanges'.
choir_status chi_overlap_workers_finish(struct chi_pending_update *u);
// Waits at the end of a run until the exchange thread uses nothing of it. If the run has failed,
// exchanges are aborted; if the thread has failed, the run fails.
void chi_overlap_workers_rest(const choir_strategy *s);
