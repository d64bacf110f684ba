// Checks that values are still equal on all workers.
#pragma once

#include "strategy/strategy.h"

bool chi_compare_is_due(const choir_strategy *s);
// Outside of runs or at their end. CHOIR_STATE names a differing value and two workers.
choir_status chi_compare_workers(choir_strategy *s);
