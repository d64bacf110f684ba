// A host linked with -ffast-math sets flush-to-zero, which new threads inherit, so each replica
// call sets and restores the environment.
#pragma once

#include <fenv.h>

// SSE's environment, and x87's for long doubles. fegetenv takes hundreds of cycles.
typedef struct {
#if defined(__x86_64__)
	unsigned control;
	unsigned short old_control, old_status;
#else
	fenv_t host;
#endif
} chi_fpenv;

void chi_fpenv_enter(chi_fpenv *saved); // round to nearest, denormals kept, no traps
void chi_fpenv_leave(const chi_fpenv *saved);
