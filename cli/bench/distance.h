// What lies between a training step and its limit.
#pragma once

#include "bench/breakdown.h"
#include "bench/limit.h"

// Prints, for each kind of work, what a step takes for it on a device beside what it would take at
// the machine's peak: a table, or one JSON object with "event": "distance". The trace has been
// stopped; of steps on so many devices.
void distance_print(const breakdown *b, const limit *l, int devices, bool json);
