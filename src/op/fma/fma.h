// Loops with fused multiply-adds, for each instruction set that has them; all give the same bits.
#pragma once

#include "op/kernel/kernel_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct chi_fma_head {
	int64_t queries, keys, width;
	int64_t q_row, kv_row, y_row; // elements from row to row
	bool causal;
	float scale;
	size_t size;
	const void *q, *k, *v;
	void *y;
	const void *dy;
	void *dq, *dk, *dv;
	void *scratch;
	const struct chi_fma_head *next; // to prefetch, or NULL
} chi_fma_head;

typedef struct {
	void (*attention)(const chi_fma_head *h);
	void (*attention_gradient)(const chi_fma_head *h);
	// NULL: the processor does not multiply bf16.
	void (*bf16_attention)(const chi_fma_head *h);
	void (*bf16_attention_gradient)(const chi_fma_head *h);
	// For processors with AMX.
	void (*tiles_attention)(const chi_fma_head *h);
	void (*tiles_attention_gradient)(const chi_fma_head *h);
	// GELU, or with dy its gradient. exact: not by tanh. narrow: bf16, rounded once.
	void (*gelu)(void *out, const void *x, const void *dy, int64_t n, bool exact, bool narrow);
} chi_fma_loops;

#ifdef CHI_HAS_X86_KERNELS
#define CHI_HAS_FMA_KERNELS 1
extern const chi_fma_loops chi_fma_avx2, chi_fma_avx512;
#elif defined(CHI_HAS_NEON_KERNELS)
#define CHI_HAS_FMA_KERNELS 1
extern const chi_fma_loops chi_fma_neon;
#endif

// The widest, or NULL.
const chi_fma_loops *chi_fma_best(void);

enum {
	CHI_FMA_GROUP = 32, // queries at a time
	CHI_FMA_TALL = 8, // keys are rounded up to this, widths to a group
	CHI_FMA_TILED_KEYS = 64 // keys of bf16 are
};

static inline int64_t chi_fma_round(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}

chi_kernel_list chi_fma_list(size_t index);

choir_status chi_fma_attention(const choir_kernel_call *call);
size_t chi_fma_attention_scratch(const choir_kernel_call *call);
choir_status chi_fma_attention_gradient(const choir_kernel_call *call);
size_t chi_fma_attention_gradient_scratch(const choir_kernel_call *call);
