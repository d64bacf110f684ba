// What the processor says of itself, and the one name by which workers compare it.
#include "base/cpu.h"

#include "choir/library.h"

bool chi_cpu_has_avx2(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
	return false;
#endif
}

bool chi_cpu_has_avx512(void)
{
#if defined(__x86_64__)
	return chi_cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
			__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
			__builtin_cpu_supports("avx512vl");
#else
	return false;
#endif
}

const char *choir_instruction_set(void)
{
#if defined(__x86_64__)
	return chi_cpu_has_avx512() ? "x86-64 avx512" : chi_cpu_has_avx2() ? "x86-64 avx2" : "x86-64";
#elif defined(__aarch64__)
	return "aarch64";
#else
	return "other";
#endif
}
