// Which variant of the loops this machine runs. The processor is asked, not the build.
#include "op/plain/loops.h"

const chi_loops *chi_loops_variant(size_t index)
{
#ifdef CHI_HAS_X86_KERNELS
	const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	const bool avx512 = avx2 && __builtin_cpu_supports("avx512f")
			&& __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
			&& __builtin_cpu_supports("avx512vl");
	if (avx512 && index-- == 0)
		return &chi_loops_avx512;
	if (avx2 && index-- == 0)
		return &chi_loops_avx2;
#endif
	return index == 0 ? &chi_loops_baseline : NULL;
}

const chi_loops *chi_loops_best(void)
{
	return chi_loops_variant(0);
}
