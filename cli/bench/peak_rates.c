// Peak rates of one core: sums in registers, and memcpy. The fastest round counts: a disturbance
// only makes it slower.
#include "bench/peak_rates.h"

#include "output.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
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

// Linux saves tiles only for processes that ask (arch_prctl).
static bool may_use_tiles(void)
{
	enum { REQUEST = 0x1023, TILE_DATA = 18 };
	const unsigned bf16 = 1u << 22, tiles = 1u << 24;
	unsigned a, b, c, d;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bf16) != 0 && (d & tiles) != 0 &&
			syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

// AMX. Each instruction multiplies [16, 32] of bf16 by [32, 16], and adds to [16, 16] in f32.
__attribute__((target("amx-tile,amx-bf16"))) static double turn_tiles(void)
{
	struct {
		uint8_t palette, start, reserved[14];
		uint16_t bytes[16];
		uint8_t rows[16];
	} config = { .palette = 1 };
	for (int tile = 0; tile < 8; tile++) {
		config.bytes[tile] = 64;
		config.rows[tile] = 16;
	}
	__asm__ volatile("" ::"r"(&config) : "memory"); // the next line reads all of it
	_tile_loadconfig(&config);
	_tile_zero(6);
	_tile_zero(7);
	const double start = now();
	for (int i = 0; i < TURNS / 8; i++) {
		_tile_dpbf16ps(0, 6, 7);
		_tile_dpbf16ps(1, 6, 7);
		_tile_dpbf16ps(2, 6, 7);
		_tile_dpbf16ps(3, 6, 7);
		_tile_dpbf16ps(4, 6, 7);
		_tile_dpbf16ps(5, 6, 7);
	}
	const double seconds = now() - start;
	_tile_release();
	return 2.0 * 16 * 32 * 16 * 6 * (TURNS / 8) / seconds;
}

double machine_flops_bf16(void)
{
	double best = 0;
	const bool tiles = may_use_tiles();
	for (int i = 0; i < ROUNDS && __builtin_cpu_supports("avx512bf16"); i++) {
		const double found = tiles ? turn_tiles() : turn_bf16();
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
