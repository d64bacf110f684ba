// The loops of vector.h: those of the plain kernels.
#include "op/vector.h"

#include "op/plain/loops.h"

void chi_vector_add(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n)
{
	const chi_loops *loops = chi_loops_best();
	if (dtype == CHOIR_F16)
		loops->add_f16(out, a, b, n);
	else if (dtype == CHOIR_BF16)
		loops->add_bf16(out, a, b, n);
	else if (dtype <= CHOIR_U8)
		loops->number[dtype]->binary(CHI_ADD, out, a, b, n, false, false);
}

double chi_vector_sum(choir_dtype dtype, const void *x, int64_t n)
{
	chi_total total = { 0 };
	chi_loops_best()->number[dtype]->sum(&total, x, n);
	return total.real;
}
