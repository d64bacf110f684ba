// Which variant of the loops this machine runs. The processor is asked, not the build.
#include "base/cpu.h"
#include "op/plain/loops.h"

const chi_loops *chi_loops_variant(size_t index)
{
#ifdef CHI_HAS_X86_KERNELS
	if (chi_cpu_has_avx512() && index-- == 0)
		return &chi_loops_avx512;
	if (chi_cpu_has_avx2() && index-- == 0)
		return &chi_loops_avx2;
#endif
	return index == 0 ? &chi_loops_baseline : NULL;
}

const chi_loops *chi_loops_best(void)
{
	return chi_loops_variant(0);
}
