// Sums by plain recursion.
#include "collective/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t oracle_size(choir_dtype dtype)
{
	static const size_t sizes[] = { 4, 8, 4, 8, 1, 1, 2, 2 };
	return sizes[dtype];
}

// The value of 16 bits, by the definitions of binary16 and bfloat16.
static float widened(choir_dtype dtype, uint16_t bits)
{
	const int fraction = dtype == CHOIR_F16 ? 10 : 7, bias = dtype == CHOIR_F16 ? 15 : 127;
	const int exponent = (bits & 0x7fff) >> fraction, last = 2 * bias + 1;
	const int significand = bits & ((1 << fraction) - 1);
	float value = (float) ldexp(significand, 1 - bias - fraction);
	if (exponent == last)
		value = significand == 0 ? INFINITY : NAN;
	else if (exponent > 0)
		value = (float) ldexp(significand + (1 << fraction), exponent - bias - fraction);
	return bits & 0x8000 ? -value : value;
}

// The nearest value of 16 bits, the even one of two.
static uint16_t narrowed(choir_dtype dtype, float value)
{
	const int fraction = dtype == CHOIR_F16 ? 10 : 7, bias = dtype == CHOIR_F16 ? 15 : 127;
	const int infinity = (2 * bias + 1) << fraction, sign = signbit(value) ? 0x8000 : 0;
	if (isnan(value) || isinf(value))
		return (uint16_t) (sign | infinity | (isnan(value) ? 1 << (fraction - 1) : 0));
	int exponent = -bias;
	if (value != 0)
		frexp(value, &exponent); // the value is below 2^exponent
	const int above = exponent > 2 - bias ? exponent - (2 - bias) : 0; // the smallest normal one
	const double units = nearbyint(ldexp(fabs((double) value), bias - 1 + fraction - above));
	const int bits = (above << fraction) + (int) units;
	return (uint16_t) (sign | (bits < infinity ? bits : infinity));
}

void oracle_add(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		switch (dtype) {
		case CHOIR_F32:
			((float *) out)[i] = ((const float *) a)[i] + ((const float *) b)[i];
			break;
		case CHOIR_F64:
			((double *) out)[i] = ((const double *) a)[i] + ((const double *) b)[i];
			break;
		case CHOIR_I32:
			((int32_t *) out)[i] = ((const int32_t *) a)[i] + ((const int32_t *) b)[i];
			break;
		case CHOIR_I64:
			((int64_t *) out)[i] = ((const int64_t *) a)[i] + ((const int64_t *) b)[i];
			break;
		case CHOIR_F16:
		case CHOIR_BF16:
			((uint16_t *) out)[i] = narrowed(dtype,
					widened(dtype, ((const uint16_t *) a)[i]) +
							widened(dtype, ((const uint16_t *) b)[i]));
			break;
		default:
			((uint8_t *) out)[i] = (uint8_t) (((const uint8_t *) a)[i] + ((const uint8_t *) b)[i]);
		}
}

void oracle_divide(choir_dtype dtype, void *x, double by, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (dtype == CHOIR_F32)
			((float *) x)[i] /= (float) by;
		else
			((double *) x)[i] /= by;
}

static int split(int lo, int hi)
{
	int half = 1;
	while (2 * half < hi - lo)
		half *= 2;
	return lo + half;
}

void oracle_sum(choir_dtype dtype, const void *all, int lo, int hi, int64_t n, void *out)
{
	const size_t bytes = (size_t) n * oracle_size(dtype);
	if (hi - lo == 1) {
		memcpy(out, (const char *) all + (size_t) lo * bytes, bytes);
		return;
	}
	void *right = malloc(bytes + 1);
	oracle_sum(dtype, all, lo, split(lo, hi), n, out);
	oracle_sum(dtype, all, split(lo, hi), hi, n, right);
	oracle_add(dtype, out, out, right, n);
	free(right);
}

void oracle_sum_rounded(choir_dtype rounded, const float *all, int replicas, int64_t n, float *out)
{
	uint16_t *narrow = malloc((size_t) (replicas + 1) * (size_t) n * sizeof *narrow + 1);
	uint16_t *sum = narrow + replicas * n;
	for (int64_t i = 0; i < replicas * n; i++)
		narrow[i] = narrowed(rounded, all[i]);
	oracle_sum(rounded, narrow, 0, replicas, n, sum);
	for (int64_t i = 0; i < n; i++)
		out[i] = widened(rounded, sum[i]);
	free(narrow);
}

// Vigna's splitmix64.
static uint64_t next_word(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

void oracle_fill(choir_dtype dtype, void *all, int replicas, int64_t n, uint64_t seed)
{
	for (int64_t i = 0; i < replicas * n; i++) {
		const uint64_t word = next_word(&seed);
		const double uniform = (double) (next_word(&seed) >> 11) * 0x1p-53;
		const double x = ldexp(uniform - 0.5, (int) (word >> 32) % 24);
		switch (dtype) {
		case CHOIR_F32:
			((float *) all)[i] = (float) x;
			break;
		case CHOIR_F64:
			((double *) all)[i] = x;
			break;
		case CHOIR_I32:
			((int32_t *) all)[i] = (int32_t) (word % 100000) - 50000;
			break;
		case CHOIR_I64:
			((int64_t *) all)[i] = (int64_t) (word >> 32) * 1000;
			break;
		default:
			((uint8_t *) all)[i] = (uint8_t) word;
		}
	}
}

static int nodes_of(int a, int b, int lo, int hi, int nodes[][2], int n)
{
	if (a >= hi || b <= lo)
		return n;
	if (a >= lo && b <= hi) {
		nodes[n][0] = a;
		nodes[n][1] = b;
		return n + 1;
	}
	n = nodes_of(a, split(a, b), lo, hi, nodes, n);
	return nodes_of(split(a, b), b, lo, hi, nodes, n);
}

int oracle_nodes(int replicas, int lo, int hi, int nodes[][2])
{
	return lo == hi ? 0 : nodes_of(0, replicas, lo, hi, nodes, 0);
}
