// Calls of kernels in pieces: what lies in rows, or is made element by element, is cut by a rule
// that knows shapes and nothing else, and the pieces are shared by the thread's team
// (base/team.h). What is summed over examples is made of the sums of pieces, added in their order.
// A result's bits are those of its pieces, so they are the same for any number of threads.
#pragma once

#include "op/op.h"

// So many bytes and what is left of their last cache line.
static inline size_t chi_whole_lines(size_t bytes)
{
	return (bytes + 63) & ~(size_t) 63;
}

// How a call is cut.
typedef struct {
	int64_t chunks; // 1: it is not
	choir_kernel_call first; // its first piece, of
	choir_buffer in[CHI_MAX_INPUTS], out;
	size_t sums; // bytes for the sums of the other pieces
} chi_parallel_plan;

void chi_parallel_plan_make(
		const char *operation, const choir_kernel_call *call, chi_parallel_plan *out);

// Runs all pieces of a call by a kernel's function. The call's scratch memory has room for the
// sums, and behind it bytes for each member of this thread's team.
typedef choir_status chi_kernel_fn(const choir_kernel_call *call);
choir_status chi_parallel_run(const chi_parallel_plan *plan, const char *operation,
		chi_kernel_fn *run, const choir_kernel_call *call, size_t bytes);
