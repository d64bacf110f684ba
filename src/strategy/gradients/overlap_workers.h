// Exchange between workers during the backward pass. A thread of the strategy sums gradients with
// the other workers as soon as all replicas here have added them. It uses a second process group,
// and the variable order of the update before. That order is the same on all workers, and each
// collective's fingerprint verifies it. The bits do not depend on the overlap.
//
// The thread serves only the first update of a run: with several, their order would depend on the
// replicas' speed. Before an update, workers compare how many of its sums are under way, so a
// worker with fewer is found. Small and sparse gradients wait for the update.
//
// Threads: a run's threads call these functions. The exchange thread uses an update only from
// chi_overlap_workers_begin until chi_overlap_workers_rest returns.
#pragma once

#include "strategy/strategy.h"

struct chi_pending_update;
typedef struct chi_overlap_workers chi_overlap_workers;

// Merges CHOIR_OVERLAP into s->options.overlap. CHOIR_INVALID: it is neither on nor off.
choir_status chi_overlap_workers_choose(choir_strategy *s);
// Makes s->overlap_workers on all workers or on none; all workers must call it. It needs host
// memory, and either the option or, by default, a free core on every worker.
choir_status chi_overlap_workers_open(choir_strategy *s);
void chi_overlap_workers_close(choir_strategy *s);

// With the run's lock held, at the first gradient of the run's first update: passes the update to
// the thread, if its order is known.
void chi_overlap_workers_begin(struct chi_pending_update *u);
// Wakes the thread after all replicas have added a gradient or applied the update.
void chi_overlap_workers_wake(const choir_strategy *s);
// Waits until all sums under way are done. All replicas must have applied. Fails with the
// thread's first failure. The deadline is that of the exchanges.
choir_status chi_overlap_workers_finish(struct chi_pending_update *u);
// Waits at the end of a run until the thread uses nothing of it. If the thread has failed, the
// run fails too. After a failure of the run, exchanges under way are aborted.
void chi_overlap_workers_rest(const choir_strategy *s);
