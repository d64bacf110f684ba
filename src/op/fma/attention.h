// One head of one example of attention, on memory that attention.c points to: compiled once for
// each instruction set that has fused multiply-adds. Both give the same bits.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	int64_t queries, keys, width; // width: of a head
	int64_t q_row, kv_row, y_row; // from row to row, in elements
	bool causal;
	float scale;
	const float *q, *k, *v;
	float *y; // the way there
	const float *dy; // the way back
	float *dq, *dk, *dv;
	float *scratch; // chi_fma_attention_scratch elements
} chi_fma_head;

typedef struct {
	void (*forward)(const chi_fma_head *h);
	void (*backward)(const chi_fma_head *h);
} chi_fma_attention;

#ifdef CHI_HAS_X86_KERNELS
extern const chi_fma_attention chi_fma_attention_avx2, chi_fma_attention_avx512;
#endif

enum {
	CHI_FMA_GROUP = 32, // queries that are worked on together
	CHI_FMA_TALL = 8 // keys are rounded up to so many, and widths to a group
};

static inline int64_t chi_fma_round(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}
