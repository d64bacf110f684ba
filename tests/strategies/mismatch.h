// Random programs over several workers, of which one does one step otherwise than the others:
// another kind, another order, another operation, dtype or shape, or it leaves one out.
#pragma once

#include <choir/choir.h>

// Runs the program of a seed as one worker of a strategy over so many (at least 2); s is NULL if
// it could not be made, and choir_error says why. NULL if this worker was told that workers
// differ, and both which; else a text of the thread's: what they did, and what it was told.
const char *mismatch_run(choir_strategy *s, int worker, int workers, uint64_t seed);
