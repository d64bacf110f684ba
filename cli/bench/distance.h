// Compares a training step with its limit.
#pragma once

#include "breakdown.h"
#include "bench/limit.h"

// Prints time and limit of each kind of work, per step and device: a table, or one JSON object
// with "event": "distance". The trace must be stopped. devices: of the strategy.
void distance_print(const breakdown *b, const limit *l, int devices, bool json);
