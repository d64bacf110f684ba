// The floating-point environment. A host linked with -ffast-math sets flush-to-zero, and new
// threads inherit it: so every replica call sets the environment on entering and restores it on
// leaving.
#pragma once

#include <fenv.h>

// On x86-64 there are two environments: that of SSE and its successors, which does all arithmetic
// of Choir, and the old coprocessor's, which long doubles use. Saving both with fegetenv takes
// hundreds of cycles; reading their control words takes few, and there is mostly nothing to
// change.
typedef struct {
#if defined(__x86_64__)
	unsigned control; // of SSE, with its flags
	unsigned short old_control, old_status;
#else
	fenv_t host;
#endif
} chi_fpenv;

void chi_fpenv_enter(chi_fpenv *saved); // round to nearest, no flush to zero, no traps
void chi_fpenv_leave(const chi_fpenv *saved);
