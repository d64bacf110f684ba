// Looking for NaN and infinity. Gradients are looked at when they are given, before anything is
// summed or written, so this must cost little: what is not finite never leaves a sum again, so a
// finite sum (in any order, with as many partial sums as a processor has lanes) says that all is
// well. Only where the sum is not finite, which finite numbers can bring about as well, is each
// one looked at.
#include "train/optimizer.h"

#include <math.h>

enum { BLOCK = 4096, LANES = 64 }; // elements

static bool sum_is_finite_f32(const float *x, int64_t n)
{
	float lane[LANES] = { 0 }, sum = 0;
	int64_t i = 0;
	for (; i + LANES <= n; i += LANES)
		for (int k = 0; k < LANES; k++)
			lane[k] += x[i + k];
	for (int k = 0; k < LANES; k++)
		sum += lane[k];
	for (; i < n; i++)
		sum += x[i];
	return isfinite(sum);
}

static bool sum_is_finite_f64(const double *x, int64_t n)
{
	double lane[LANES] = { 0 }, sum = 0;
	int64_t i = 0;
	for (; i + LANES <= n; i += LANES)
		for (int k = 0; k < LANES; k++)
			lane[k] += x[i + k];
	for (int k = 0; k < LANES; k++)
		sum += lane[k];
	for (; i < n; i++)
		sum += x[i];
	return isfinite(sum);
}

int64_t chi_first_nonfinite(choir_dtype dtype, const void *data, int64_t n)
{
	for (int64_t first = 0; first < n; first += BLOCK) {
		const int64_t count = n - first < BLOCK ? n - first : BLOCK;
		const bool fine = dtype == CHOIR_F64
				? sum_is_finite_f64((const double *) data + first, count)
				: sum_is_finite_f32((const float *) data + first, count);
		for (int64_t i = first; !fine && i < first + count; i++)
			if (!isfinite(chi_dtype_load(dtype, data, i)))
				return i;
	}
	return CHOIR_NONE;
}
