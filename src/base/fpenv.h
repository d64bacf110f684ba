// A host linked with -ffast-math sets flush-to-zero, which new threads inherit. So each replica
// call sets and restores the environment.
#pragma once

#include <fenv.h>

// SSE's environment, in which Choir computes, and x87's for long doubles. Reading their control
// words takes a few cycles; fegetenv takes hundreds.
typedef struct {
#if defined(__x86_64__)
	unsigned control; // with the flags
	unsigned short old_control, old_status;
#else
	fenv_t host;
#endif
} chi_fpenv;

void chi_fpenv_enter(chi_fpenv *saved); // round to nearest, denormals kept, no traps
void chi_fpenv_leave(const chi_fpenv *saved);
