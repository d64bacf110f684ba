// The exchange between workers while the backward pass goes on. A thread of the strategy's own
// makes the sums of overlap.h with the other workers, as soon as all replicas here have given a
// gradient, on a second chi_process_group beside that of everything else. It takes them in the
// order of the update before, which is the same on all workers, so nobody has to ask what comes
// next; the fingerprint of each tells whether that was true. The bits are those of any other time.
//
// It serves the update that a run gives to first: which of two comes next would depend on which
// replica was faster. Before an update is done, workers compare how many of its sums are under
// way, so a worker that has fewer is found there. What is small waits for the update, where
// small sums travel together; so do rows.
//
// Threads: functions are called by those of runs; the thread itself looks only at an update that
// it was handed, from chi_overlap_workers_begin until chi_overlap_workers_rest returns.
#pragma once

#include "strategy/strategy.h"

struct chi_pending_update;
typedef struct chi_overlap_workers chi_overlap_workers;

// What .overlap and CHOIR_OVERLAP ask for becomes s->options.overlap. CHOIR_INVALID: neither on
// nor off.
choir_status chi_overlap_workers_choose(choir_strategy *s);
// Makes s->overlap_workers, on all workers or on none: where memory is the host's, and it is asked
// for, or by default where every worker has a core for it. All workers come here.
choir_status chi_overlap_workers_open(choir_strategy *s);
void chi_overlap_workers_close(choir_strategy *s);

// With the run's lock held: the first update of a run is given something for the first time. Hands
// it to the thread, if its order is known.
void chi_overlap_workers_begin(struct chi_pending_update *u);
// The thread should look again: all replicas have given some gradient, or asked for the update.
void chi_overlap_workers_wake(const choir_strategy *s);
// By one that does the update, when all replicas have asked for it: until all sums under way are
// there, or the first failure of the thread. It has the deadline of the exchanges.
choir_status chi_overlap_workers_finish(struct chi_pending_update *u);
// At the end of a run, failed or not: until the thread looks at nothing of it any more. After a
// failure the workers' exchanges end by themselves. If the thread has failed, so has the run.
void chi_overlap_workers_rest(const choir_strategy *s);
