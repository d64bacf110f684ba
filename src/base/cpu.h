// The instruction sets of this processor, as far as kernels are made for them. The processor is
// asked, not the build.
#pragma once

#include <stdbool.h>

// AVX2 with FMA; and AVX-512 F, BW, DQ and VL besides that. False on other processors than x86-64.
bool chi_cpu_has_avx2(void);
bool chi_cpu_has_avx512(void);
