// For every processor, and the choice of a variant.
#include "base/instruction_set.h"

#define VARIANT baseline
#define VECTOR_BYTES 16
#define TILE_ROWS 6
#include "op/plain/loops.inc"

const chi_loops *chi_loops_variant(size_t index)
{
#ifdef CHI_HAS_X86_KERNELS
	const chi_instruction_set set = chi_instruction_set_use();
	if (set >= CHI_INSTRUCTION_SET_AVX512 && index-- == 0)
		return &chi_loops_avx512;
	if (set >= CHI_INSTRUCTION_SET_AVX2 && index-- == 0)
		return &chi_loops_avx2;
#endif
	return index == 0 ? &chi_loops_baseline : NULL;
}

const chi_loops *chi_loops_best(void)
{
	return chi_loops_variant(0);
}
