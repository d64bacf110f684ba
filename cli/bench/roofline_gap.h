// Compares a training step with its limit.
#pragma once

#include "trace_breakdown.h"
#include "bench/roofline.h"

// Prints time and limit of each kind of work, per step and device. The trace must be stopped.
void distance_print(const breakdown *b, const limit *l, int devices, bool json);
