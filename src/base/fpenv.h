// The floating-point environment. A host linked with -ffast-math sets flush-to-zero, and new
// threads inherit it: so every replica call sets the environment on entering and restores it on
// leaving.
#pragma once

#include <fenv.h>

typedef struct {
	fenv_t host;
} chi_fpenv;

void chi_fpenv_enter(chi_fpenv *saved); // round to nearest, no flush to zero, no traps
void chi_fpenv_leave(const chi_fpenv *saved);
