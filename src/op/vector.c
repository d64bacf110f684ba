// Plain kernels' loops on vectors.
#include "op/vector.h"

#include "op/plain/loops.h"
#include "tensor/tensor.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

void chi_vector_add(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n)
{
	const chi_loops *loops = chi_loops_best();
	if (dtype == CHOIR_F16)
		loops->f16->add(out, a, b, n);
	else if (dtype == CHOIR_BF16)
		loops->bf16->add(out, a, b, n);
	else if (dtype <= CHOIR_U8)
		loops->number[dtype]->binary(CHI_ADD, out, a, b, n, false, false);
}

#if defined(__x86_64__)
// 16 bytes at a time: memory is slower.
static void add_past_f32(float *out, const float *a, const float *b, int64_t n)
{
	for (int64_t i = 0; i < n; i += 4)
		_mm_stream_ps(out + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
}

static void add_past_f64(double *out, const double *a, const double *b, int64_t n)
{
	for (int64_t i = 0; i < n; i += 2)
		_mm_stream_pd(out + i, _mm_add_pd(_mm_loadu_pd(a + i), _mm_loadu_pd(b + i)));
}

static int64_t add_past(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n)
{
	if ((uintptr_t) out % 16 != 0 || (dtype != CHOIR_F32 && dtype != CHOIR_F64))
		return 0;
	const int64_t whole = n / 4 * 4;
	if (dtype == CHOIR_F32)
		add_past_f32(out, a, b, whole);
	else
		add_past_f64(out, a, b, whole);
	_mm_sfence();
	return whole;
}
#else
static int64_t add_past(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n)
{
	(void) dtype, (void) out, (void) a, (void) b, (void) n;
	return 0;
}
#endif

void chi_vector_add_past(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n)
{
	const int64_t done = add_past(dtype, out, a, b, n);
	const size_t at = (size_t) done * chi_dtype_size(dtype);
	if (done < n)
		chi_vector_add(
				dtype, (char *) out + at, (const char *) a + at, (const char *) b + at, n - done);
}

void chi_vector_round(choir_dtype dtype, float *out, const float *x, int64_t n)
{
	const chi_half_loops *loops = chi_half_loops_best(dtype);
	uint16_t block[512];
	for (int64_t i = 0; i < n; i += 512) {
		const int64_t count = n - i < 512 ? n - i : 512;
		loops->narrow(block, x + i, count);
		loops->widen(out + i, block, count);
	}
}

double chi_vector_sum(choir_dtype dtype, const void *x, int64_t n)
{
	chi_total total = { 0 };
	chi_loops_best()->number[dtype]->sum(&total, x, n);
	return total.real;
}
