// Random programs over several workers, one of which does one step differently: another kind,
// order, operation, dtype or shape, or it leaves the step out.
#pragma once

#include <choir/choir.h>

// Runs the program of a seed as one worker of at least 2. s is NULL if it could not be made;
// choir_error says why. Returns NULL if this worker was told what both workers did; else a text
// with what they did and what it was told.
const char *mismatch_run(choir_strategy *s, int worker, int workers, uint64_t seed);
