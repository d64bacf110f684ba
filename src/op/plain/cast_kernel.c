// Through f64 in blocks: sixteen loops instead of sixty-four. f64 holds all dtypes but i64
// exactly.
#include "op/plain/half.h"
#include "op/plain/cast_kernel.h"

#include <string.h>

#define SUFFIX f32
#define T float
#define VALUE(x) ((double) (x))
#define OF_VALUE(v) ((float) (v))
#include "op/plain/cast_loops.inc"

#define SUFFIX f64
#define T double
#define VALUE(x) (x)
#define OF_VALUE(v) (v)
#include "op/plain/cast_loops.inc"

// Bounds are powers of two, so exact. A NAN becomes 0.
#define SATURATED(T, lowest, highest, below, above, v) \
	((v) >= (above) ? (highest) : (v) > (below) ? (T) (v) : (v) <= (below) ? (lowest) : 0)

#define SUFFIX i32
#define T int32_t
#define VALUE(x) ((double) (x))
#define OF_VALUE(v) SATURATED(int32_t, INT32_MIN, INT32_MAX, -0x1p31 - 1, 0x1p31, v)
#include "op/plain/cast_loops.inc"

#define SUFFIX i64
#define T int64_t
#define VALUE(x) ((double) (x))
#define OF_VALUE(v) SATURATED(int64_t, INT64_MIN, INT64_MAX, -0x1p63, 0x1p63, v)
#include "op/plain/cast_loops.inc"

#define SUFFIX u8
#define T uint8_t
#define VALUE(x) ((double) (x))
#define OF_VALUE(v) SATURATED(uint8_t, 0, 255, -1.0, 256.0, v)
#include "op/plain/cast_loops.inc"

#define SUFFIX truth
#define T uint8_t
#define VALUE(x) ((double) ((x) != 0))
#define OF_VALUE(v) ((v) != 0)
#include "op/plain/cast_loops.inc"

#define SUFFIX f16
#define T uint16_t
#define VALUE(x) ((double) chi_f32_of_f16(x))
#define OF_VALUE(v) chi_f16_of_f32(chi_f32_odd_of_f64(v))
#include "op/plain/cast_loops.inc"

#define SUFFIX bf16
#define T uint16_t
#define VALUE(x) ((double) chi_f32_of_bf16(x))
#define OF_VALUE(v) chi_bf16_of_f32(chi_f32_odd_of_f64(v))
#include "op/plain/cast_loops.inc"

void chi_widen(choir_dtype dtype, double *out, const void *x, int64_t n)
{
	static void (*const loops[])(double *, const void *, int64_t) = { widen_f32, widen_f64,
		widen_i32, widen_i64, widen_u8, widen_truth, widen_f16, widen_bf16 };
	loops[dtype](out, x, n);
}

void chi_narrow(choir_dtype dtype, void *out, const double *x, int64_t n)
{
	static void (*const loops[])(void *, const double *, int64_t) = { narrow_f32, narrow_f64,
		narrow_i32, narrow_i64, narrow_u8, narrow_truth, narrow_f16, narrow_bf16 };
	loops[dtype](out, x, n);
}

// With the bits of the way through f64.
static bool cast_half(const choir_buffer *x, const choir_buffer *out, int64_t n)
{
	if (x->dtype == CHOIR_F32 && chi_dtype_is_half(out->dtype))
		chi_half_loops_best(out->dtype)->narrow(out->data, x->data, n);
	else if (chi_dtype_is_half(x->dtype) && out->dtype == CHOIR_F32)
		chi_half_loops_best(x->dtype)->widen(out->data, x->data, n);
	else
		return false;
	return true;
}

static choir_status run_cast(const choir_kernel_call *call)
{
	enum { BLOCK = 512 };
	const choir_buffer *x = &call->in[0];
	const int64_t n = chi_elements(x);
	if (x->dtype == call->out->dtype) {
		if (n > 0)
			memcpy(call->out->data, x->data, (size_t) n * chi_dtype_size(x->dtype));
		return CHOIR_OK;
	}
	if (cast_half(x, call->out, n))
		return CHOIR_OK;
	double block[BLOCK];
	for (int64_t i = 0; i < n; i += BLOCK) {
		const int64_t count = n - i < BLOCK ? n - i : BLOCK;
		chi_widen(x->dtype, block, chi_element(x, i), count);
		chi_narrow(call->out->dtype, chi_element(call->out, i), block, count);
	}
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "cast", CHI_ALL, 0, run_cast, NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_cast = { specs, sizeof specs / sizeof specs[0] };
