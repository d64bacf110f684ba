// Adding packed memory: all dtypes, in place, any alignment, and rounding of halves.
#include "op/vector.h"

#include "op/kernel_calls.h"
#include "op/plain/half.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <string.h>

static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8,
	CHOIR_F16, CHOIR_BF16 };

// The sum as the dtype rounds it.
static double rounded(choir_dtype dtype, double value)
{
	choir_buffer b = kernels_buffer(dtype, CHOIR_SCALAR);
	kernels_set(&b, 0, value);
	const double result = kernels_get(&b, 0);
	kernels_free(1, &b);
	return result;
}

typedef void add_fn(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);

static void try_add(
		add_fn *add, choir_dtype dtype, int64_t n, int64_t offset, int into, uint64_t *seed)
{
	const size_t size = chi_dtype_size(dtype), skip = (size_t) offset * size;
	choir_buffer a = kernels_buffer(dtype, CHOIR_SHAPE(n + offset));
	choir_buffer b = kernels_buffer(dtype, a.shape), out = kernels_buffer(dtype, a.shape);
	kernels_fill(&a, seed, 0, 100);
	kernels_fill(&b, seed, 0, 100);
	choir_buffer before = kernels_buffer(dtype, a.shape);
	memcpy(before.data, into == 2 ? b.data : a.data, (size_t) (n + offset) * size);
	char *to = into == 0 ? out.data : into == 1 ? a.data : b.data;
	add(dtype, to + skip, (char *) a.data + skip, (char *) b.data + skip, n);
	const choir_buffer result = { to, dtype, a.shape };
	const choir_buffer *other = into == 2 ? &a : &b;
	for (int64_t i = 0; i < n; i++) {
		const double sum = kernels_get(&before, offset + i) + kernels_get(other, offset + i);
		kernels_assert_near("sum", &result, offset + i, rounded(dtype, sum), 0);
	}
	kernels_free(1, &a);
	kernels_free(1, &b);
	kernels_free(1, &out);
	kernels_free(1, &before);
}

TEST(adds_every_dtype_in_place_or_not)
{
	static const int64_t lengths[] = { 0, 1, 15, 16, 17, 100, 1000 };
	uint64_t seed = 41;
	for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
		for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++)
			for (int into = 0; into < 3; into++)
				for (int past = 0; past < 2; past++)
					try_add(past == 1 ? chi_vector_add_past : chi_vector_add, dtypes[d],
							lengths[n], into, into, &seed);
}

// Ties go to the even neighbour; what is too large becomes infinite.
TEST(halves_round_to_even)
{
	uint16_t a[3] = { chi_f16_of_f32(2048), chi_f16_of_f32(2050), chi_f16_of_f32(65504) };
	const uint16_t b[3] = { chi_f16_of_f32(1), chi_f16_of_f32(1), chi_f16_of_f32(16) };
	chi_vector_add(CHOIR_F16, a, a, b, 3);
	assert_true(chi_f32_of_f16(a[0]) == 2048 && chi_f32_of_f16(a[1]) == 2052);
	assert_true(chi_f32_of_f16(a[2]) == INFINITY);
}
