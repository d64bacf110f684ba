// During the backward pass a thread sums gradients with the other workers, in a second process
// group. It expects the previous update's order, verified by fingerprints, and serves a run's
// first update: the order of several depends on replicas' speed.
//
// For a run's threads, if s->overlap_workers is not NULL. The exchange thread uses an update only
// between _begin and the return of _rest.
#pragma once

#include "strategy/strategy.h"

struct chi_pending_update;
typedef struct chi_overlap_workers chi_overlap_workers;

choir_status chi_overlap_workers_choose(choir_strategy *s);
// On all workers, with one result. Needs host memory and, unless the option is on, a free core on
// each.
choir_status chi_overlap_workers_open(choir_strategy *s);
void chi_overlap_workers_close(choir_strategy *s);

// At the run's first gradient, if the order is known. With the run's lock.
void chi_overlap_workers_begin(struct chi_pending_update *u);
// After all replicas have added a gradient or applied the update.
void chi_overlap_workers_wake(const choir_strategy *s);
// After all have applied. Returns the thread's first failure.
choir_status chi_overlap_workers_finish(struct chi_pending_update *u);
// Waits until the thread uses nothing of the run. A failed run aborts exchanges; a failed exchange
// fails it.
void chi_overlap_workers_rest(const choir_strategy *s);
