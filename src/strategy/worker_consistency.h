// Whether the workers of a strategy still have the same values.
#pragma once

#include "strategy/strategy.h"

// Whether all are to look, after an update.
bool chi_compare_is_due(const choir_strategy *s);
// All workers come here, outside of runs or at their end. CHOIR_STATE: something differs; the text
// names it, and two workers. Without peers, or where the program wants none of it, nothing.
choir_status chi_compare_workers(choir_strategy *s);
