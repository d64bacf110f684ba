// What one core of this machine can do at most, measured by loops that do nothing else.
#pragma once

#include <stddef.h>

// Floating-point operations a second, f32: fused multiply-adds, two each, on registers alone, of
// the widest kind that the processor has. 0: nothing is known of this kind of processor.
double machine_flops(void);
// The fastest copy of so many bytes, half of them read and half of them written, again and again
// for about so many seconds, at most 50 times: seconds. 0: no memory.
double machine_copy(size_t bytes, double within);
