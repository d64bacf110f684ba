// The limits of one core, measured by loops that do nothing else.
#pragma once

#include <stddef.h>

// f32 operations per second of fused multiply-adds (two operations each) in registers, with the
// widest vectors of the processor. 0: unknown processor.
double machine_flops(void);
// Seconds of the fastest copy that reads bytes/2 and writes bytes/2, of at most 50 copies in about
// within seconds. 0: no memory.
double machine_copy(size_t bytes, double within);
