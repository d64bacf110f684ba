// Sums and maxima of a block's threads, in a fixed order.
#pragma once

#include "launch.h"

namespace choir_cuda
{

enum { WARP = 32 };
static const unsigned ALL_LANES = 0xffffffffu;

// The sum over the block, for all its threads. The block has whole warps.
__device__ inline double block_sum(double x)
{
	__shared__ double part[WARP];
	for (int by = WARP / 2; by > 0; by /= 2)
		x += __shfl_xor_sync(ALL_LANES, x, by);
	__syncthreads(); // all have read part of an earlier call
	if (threadIdx.x % WARP == 0)
		part[threadIdx.x / WARP] = x;
	__syncthreads();
	double all = 0;
	for (unsigned i = 0; i < blockDim.x / WARP; i++)
		all += part[i];
	return all;
}

// A loop over this thread's elements of a row that belongs to its block.
#define EACH_IN_ROW(j, n) \
	for (int64_t j = (int64_t) threadIdx.x; j < (n); j += (int64_t) blockDim.x)

// Threads of a block for a row of n elements. The shape decides about the order of sums.
inline unsigned threads_for(int64_t n)
{
	return n >= THREADS ? (unsigned) THREADS : (unsigned) ((n + WARP - 1) / WARP * WARP);
}

// Launches a block for each row of in[0].
template <class... P, class... A>
choir_status launch_rows(const choir_kernel_call *c, void (*kernel)(P...), A... arguments)
{
	return launch(stream_of(c->stream), (unsigned) (elements(c->in[0]) / width_of(c)),
			threads_for(width_of(c)), kernel, arguments...);
}

// The maximum over the block; NAN if one of the numbers is.
__device__ inline double block_max(double x)
{
	__shared__ double part[WARP];
	for (int by = WARP / 2; by > 0; by /= 2) {
		const double other = __shfl_xor_sync(ALL_LANES, x, by);
		x = x >= other || x != x ? x : other;
	}
	__syncthreads();
	if (threadIdx.x % WARP == 0)
		part[threadIdx.x / WARP] = x;
	__syncthreads();
	double all = part[0];
	for (unsigned i = 1; i < blockDim.x / WARP; i++)
		all = all >= part[i] || all != all ? all : part[i];
	return all;
}

} // namespace choir_cuda
