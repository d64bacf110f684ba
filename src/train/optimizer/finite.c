// Looking for NaN and infinity. Gradients are looked at when they are given, before anything is
// summed or written, so this must cost little: what is not finite never leaves a sum again, so a
// finite sum (in any order, with as many partial sums as a processor has lanes) says that all is
// well. Only where the sum is not finite, which finite numbers can bring about as well, is each
// one looked at.
#include "op/vector.h"
#include "train/optimizer/optimizer.h"

#include <math.h>

enum { BLOCK = 4096 }; // elements

int64_t chi_first_nonfinite(choir_dtype dtype, const void *data, int64_t n)
{
	const size_t size = chi_dtype_size(dtype);
	for (int64_t first = 0; first < n; first += BLOCK) {
		const int64_t count = n - first < BLOCK ? n - first : BLOCK;
		const char *block = (const char *) data + (size_t) first * size;
		const bool fine = isfinite(chi_vector_sum(dtype, block, count));
		for (int64_t i = first; !fine && i < first + count; i++)
			if (!isfinite(chi_dtype_load(dtype, data, i)))
				return i;
	}
	return CHOIR_NONE;
}
