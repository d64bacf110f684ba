// Random programs of replicas, whose results must be the same under any schedule.
#pragma once

#include <stdint.h>

// Makes a strategy and runs several programs on it, each under its own schedule, all from the
// seed. On an error it prints a text to standard error and ends the process.
enum { PROGRAMS_A_BATCH = 50 };
void programs_batch(uint64_t seed);
