// What replicas return from a run, and how it becomes one set.
#pragma once

#include "strategy/run/run.h"

// Merges what all replicas returned into the run's results, if it has any: CHOIR_STATE naming a
// replica that returned other names than replica 0.
choir_status chi_results_merge(chi_run *run);
// What a replica or an update function may return from its frame f: a named tensor of f that can
// be used. Else the failure, which f keeps.
choir_status chi_results_check(choir_frame *f, const char *name, const choir_tensor *value);
