// Calls in chunks that the thread's team (base/team.h) shares. The shapes alone decide the chunks,
// and their sums are added in order, so bits do not depend on the threads.
#pragma once

#include "op/op.h"

static inline size_t chi_whole_lines(size_t bytes)
{
	return (bytes + 63) & ~(size_t) 63;
}

typedef struct {
	int64_t chunks;
	choir_kernel_call first, last; // the last chunk may be smaller
	choir_buffer in[CHI_MAX_INPUTS], out;
	choir_buffer last_in[CHI_MAX_INPUTS], last_out;
	size_t sums;
} chi_parallel_plan;

void chi_parallel_plan_make(
		const char *operation, const choir_kernel_call *call, chi_parallel_plan *out);

// Bytes for the call or any of its chunks: a smaller chunk may need more.
size_t chi_parallel_scratch(const chi_parallel_plan *plan, const choir_kernel_table *kernel,
		const choir_kernel_call *call);

// The scratch memory holds the sums, then `bytes` bytes per thread.
typedef choir_status chi_kernel_fn(const choir_kernel_call *call);
choir_status chi_parallel_run(const chi_parallel_plan *plan, const char *operation,
		chi_kernel_fn *run, const choir_kernel_call *call, size_t bytes);

// Chunks that stay in the first caches, for little work per element. chunks and first are set.
void chi_parallel_blocks_make(
		const char *operation, const choir_kernel_call *call, chi_parallel_plan *out);
// With the bits of the whole call.
choir_status chi_parallel_run_blocks(
		const char *operation, chi_kernel_fn *run, const choir_kernel_call *call);
