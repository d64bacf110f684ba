// Random programs of replicas, and what must come of them whatever the schedule.
#pragma once

#include <stdint.h>

// Makes a strategy and runs several programs on it, each under a schedule of its own. Everything
// follows from the seed. Ends the process with a text on the standard error if something is wrong.
enum { PROGRAMS_A_BATCH = 50 };
void programs_batch(uint64_t seed);
