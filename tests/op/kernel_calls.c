// Buffers and calls for the tests of kernels.
#include "op/kernel_calls.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "op/plain/cast_kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

choir_buffer kernels_buffer(choir_dtype dtype, choir_shape shape)
{
	const size_t bytes = (size_t) choir_shape_elements(&shape) * chi_dtype_size(dtype);
	choir_buffer b = { .data = calloc(1, bytes), .dtype = dtype, .shape = shape };
	if (bytes > 0)
		assert_non_null(b.data);
	return b;
}

void kernels_free(size_t n, choir_buffer buffers[])
{
	for (size_t i = 0; i < n; i++)
		free(buffers[i].data);
}

double kernels_get(const choir_buffer *b, int64_t i)
{
	double value;
	chi_widen(b->dtype, &value, chi_element(b, i), 1);
	return value;
}

void kernels_set(choir_buffer *b, int64_t i, double value)
{
	chi_narrow(b->dtype, chi_element(b, i), &value, 1);
}

double kernels_number(uint64_t *seed, double low, double high)
{
	*seed += 0x9e3779b97f4a7c15u;
	return low + (high - low) * ((double) (chi_hash_mix(*seed) >> 11) * 0x1p-53);
}

int64_t kernels_integer(uint64_t *seed, int64_t low, int64_t high)
{
	return low + (int64_t) kernels_number(seed, 0, (double) (high - low + 1));
}

void kernels_fill(choir_buffer *b, uint64_t *seed, double low, double high)
{
	for (int64_t i = 0; i < choir_shape_elements(&b->shape); i++)
		kernels_set(b, i, kernels_number(seed, low, high));
}

// The kernel of a list for an operation and dtype; NULL: none.
static const chi_kernel_spec *find(
		chi_kernel_lists *lists, const char *operation, choir_dtype dtype)
{
	for (size_t index = 0; lists(index).count; index++) {
		const chi_kernel_list list = lists(index);
		for (size_t i = 0; i < list.count; i++) {
			const chi_kernel_spec *spec = &list.specs[i];
			if (spec->dtypes >> dtype & 1 && !strcmp(spec->operation, operation))
				return spec;
		}
	}
	return NULL;
}

choir_status kernels_run(chi_kernel_lists *lists, const char *operation, size_t n,
		choir_buffer in[], choir_buffer *out, const void *attributes)
{
	const chi_kernel_spec *spec = find(lists, operation, n > 0 ? in[0].dtype : out->dtype);
	if (!spec)
		return CHOIR_UNSUPPORTED;
	choir_kernel_call call = { .size = sizeof call,
		.n = n,
		.in = in,
		.out = out,
		.attributes = attributes,
		.user = spec->user };
	if (spec->score && spec->score(&call) == 0)
		return CHOIR_UNSUPPORTED;
	const size_t bytes = spec->scratch ? spec->scratch(&call) : 0;
	call.scratch = bytes > 0 ? chi_alloc_aligned(bytes) : NULL;
	if (bytes > 0)
		memset(call.scratch, 0xff, bytes); // NANs, for those who trust it to be 0
	const choir_status status = spec->run(&call);
	chi_free(call.scratch);
	return status;
}

void kernels_plain(const char *operation, size_t n, choir_buffer in[], choir_buffer *out,
		const void *attributes)
{
	if (kernels_run(chi_plain_list, operation, n, in, out, attributes) != CHOIR_OK)
		fail_msg("%s of %s: %s", operation, choir_dtype_name(out->dtype), choir_error());
}

void kernels_assert_near(
		const char *what, const choir_buffer *got, int64_t i, double expected, double tolerance)
{
	const double value = kernels_get(got, i);
	const bool same = value == expected || (isnan(value) && isnan(expected));
	if (!same && !(fabs(value - expected) <= tolerance))
		fail_msg("%s, element %lld: %.17g, expected %.17g (off by %.3g, allowed %.3g)", what,
				(long long) i, value, expected, fabs(value - expected), tolerance);
}
