// The limits of one core, measured by loops that do nothing else.
#pragma once

#include <stddef.h>

// f32 operations per second of fused multiply-adds (two each) in the widest registers. 0: unknown.
double machine_flops(void);
// The same of products of bf16 with sums in f32. 0: the processor has no instructions for them.
double machine_flops_bf16(void);
// Seconds of the fastest of some copies, which read and write bytes / 2. within: seconds for all.
// 0: no memory.
double machine_copy(size_t bytes, double within);
