// The floating-point environment. A host linked with -ffast-math sets flush-to-zero, and new
// threads inherit it: so every replica call sets the environment on entering and restores it on
// leaving.
#pragma once

#include <fenv.h>

// On x86-64 all arithmetic is done by SSE and its successors, so only their control word is kept:
// the old coprocessor's takes a hundred cycles to save and is not used.
typedef struct {
#ifdef __SSE2__
	unsigned control;
#else
	fenv_t host;
#endif
} chi_fpenv;

void chi_fpenv_enter(chi_fpenv *saved); // round to nearest, no flush to zero, no traps
void chi_fpenv_leave(const chi_fpenv *saved);
