// Peak rates of one core: sums in registers, and memcpy. The fastest round counts: a disturbance
// only makes it slower.
#include "bench/peak_rates.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MIN_ROUNDS = 5, ROUNDS = 50, SUMS = 16 };

// Keeps loops from being removed. Replicas measure at the same time.
static _Thread_local volatile float sink;

#if defined(__x86_64__)
enum { TURNS = 20000 };

// 16 sums hide the latency of two units of four or five cycles.
__attribute__((target("avx512f"))) static double turn_512(void)
{
	__m512 sum[SUMS], a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(1.0f);
	for (int k = 0; k < SUMS; k++)
		sum[k] = _mm512_set1_ps((float) k);
	const double start = now();
	for (int i = 0; i < TURNS; i++)
#pragma GCC unroll 16
		for (int k = 0; k < SUMS; k++)
			sum[k] = _mm512_fmadd_ps(sum[k], a, b);
	const double seconds = now() - start;
	for (int k = 1; k < SUMS; k++)
		sum[0] = _mm512_add_ps(sum[0], sum[k]);
	sink = _mm512_cvtss_f32(sum[0]);
	return 2.0 * 16 * SUMS * TURNS / seconds;
}

// Twelve sums, since there are 16 registers.
__attribute__((target("avx2,fma"))) static double turn_256(void)
{
	enum { SUMS_256 = 12 };
	__m256 sum[SUMS_256], a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(1.0f);
	for (int k = 0; k < SUMS_256; k++)
		sum[k] = _mm256_set1_ps((float) k);
	const double start = now();
	for (int i = 0; i < TURNS; i++)
#pragma GCC unroll 12
		for (int k = 0; k < SUMS_256; k++)
			sum[k] = _mm256_fmadd_ps(sum[k], a, b);
	const double seconds = now() - start;
	for (int k = 1; k < SUMS_256; k++)
		sum[0] = _mm256_add_ps(sum[0], sum[k]);
	sink = _mm256_cvtss_f32(sum[0]);
	return 2.0 * 8 * SUMS_256 * TURNS / seconds;
}

// Each instruction adds 32 products of bf16 to sums in f32.
__attribute__((target("avx512f,avx512bf16"))) static double turn_bf16(void)
{
	__m512 sum[SUMS], ones = _mm512_set1_ps(1.0f);
	const __m512bh a = _mm512_cvtne2ps_pbh(ones, ones);
	for (int k = 0; k < SUMS; k++)
		sum[k] = _mm512_set1_ps((float) k);
	const double start = now();
	for (int i = 0; i < TURNS; i++)
#pragma GCC unroll 16
		for (int k = 0; k < SUMS; k++)
			sum[k] = _mm512_dpbf16_ps(sum[k], a, a);
	const double seconds = now() - start;
	for (int k = 1; k < SUMS; k++)
		sum[0] = _mm512_add_ps(sum[0], sum[k]);
	sink = _mm512_cvtss_f32(sum[0]);
	return 2.0 * 32 * SUMS * TURNS / seconds;
}

double machine_flops_bf16(void)
{
	double best = 0;
	for (int i = 0; i < ROUNDS && __builtin_cpu_supports("avx512bf16"); i++) {
		const double found = turn_bf16();
		best = found > best ? found : best;
	}
	return best;
}

double machine_flops(void)
{
	double best = 0;
	const bool wide = __builtin_cpu_supports("avx512f");
	if (!wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
		return 0;
	for (int i = 0; i < ROUNDS; i++) {
		const double found = wide ? turn_512() : turn_256();
		best = found > best ? found : best;
	}
	return best;
}
#else
double machine_flops(void)
{
	return 0;
}

double machine_flops_bf16(void)
{
	return 0;
}
#endif

double machine_copy(size_t bytes, double within)
{
	const size_t half = bytes / 2 + 1;
	char *from = malloc(half), *to = malloc(half);
	double best = 0;
	if (from != NULL && to != NULL) {
		memset(from, 1, half);
		memset(to, 2, half);
	}
	// Repeats small copies between readings of the clock.
	const size_t times = half < 1 << 20 ? ((size_t) 1 << 20) / half : 1;
	const double end = now() + within;
	for (int i = 0; from != NULL && to != NULL && i < ROUNDS; i++) {
		const double start = now();
		if (i >= MIN_ROUNDS && start >= end)
			break;
		for (size_t k = 0; k < times; k++) {
			memcpy(to, from, half);
			sink = to[k % half];
		}
		const double seconds = (now() - start) / (double) times;
		best = best == 0 || seconds < best ? seconds : best;
	}
	free(from);
	free(to);
	return best;
}
