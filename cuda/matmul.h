// Products of matrices for several operations, by cuBLASLt or by the tiles below.
#pragma once

#include "launch.h"

namespace choir_cuda
{

// out [m, n] = alpha a [m, k] times b [k, n] + bias [n], for each matrix of a batch. Matrices are
// row-major; a transposed one is stored as [k, m] or [n, k].
struct product {
	choir_dtype dtype, out_dtype; // f32 is possible for out where dtype has 16 bits
	int64_t m, n, k, batch;
	int64_t a_row, b_row, out_row; // elements from one stored row to the next
	int64_t a_apart, b_apart, out_apart; // from one matrix to the next
	bool a_transposed, b_transposed, tf32;
	double alpha;
	const void *a, *b;
	const void *bias; // of out's dtype, only for cuBLASLt; NULL: none
	void *out;
};

// A product of one packed matrix by another.
product packed_product(choir_dtype dtype, int64_t m, int64_t n, int64_t k);

// 0 unless both operands have one dtype.
int score_product(const choir_kernel_call *c);

// The bytes of workspace of a product, 64-byte aligned.
size_t product_workspace();
// Sets p->tf32.
choir_status multiply(const choir_kernel_call *c, product *p, void *workspace);

// Adds a bias (NULL: none) to out [n / width, width], and applies the activation.
choir_status finish(const choir_kernel_call *c, const choir_buffer *bias, int64_t width,
		choir_activation activation);

// Operands and results of the tiles.
template <class T> struct matrix {
	using reads_only = void;
	const T *data;
	int64_t row, column, apart; // elements from one to the next
	__device__ real<T> operator()(int64_t batch, int64_t i, int64_t j) const
	{
		return (real<T>) data[batch * apart + i * row + j * column];
	}
};

template <class T> struct result {
	output<T> out;
	int64_t row, apart;
	double alpha;
	__device__ void set(int64_t batch, int64_t i, int64_t j, real<T> sum) const
	{
		out.set(batch * apart + i * row + j, (real<T>) alpha * sum);
	}
};

enum { TILE = 64, STEP = 16, PART = TILE / STEP };

// A block makes a tile of out [m, n], a thread PART x PART elements of it, in the order of k. The
// functors a(batch, row, k) and b(batch, k, column) give operands, and out.set takes a sum.
template <class V, class A, class B, class C>
__global__ void tile_kernel(A a, B b, C out, int64_t m, int64_t n, int64_t k, int64_t batches)
{
	__shared__ V of_a[STEP][TILE], of_b[STEP][TILE];
	const int x = (int) threadIdx.x % STEP, y = (int) threadIdx.x / STEP;
	const int64_t row = (int64_t) blockIdx.x * TILE, column = (int64_t) blockIdx.y * TILE;
	for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
		V sum[PART][PART] = {};
		for (int64_t first = 0; first < k; first += STEP) {
			for (int i = 0; i < PART; i++) {
				const int64_t r = row + y + i * STEP, s = column + x + i * STEP;
				of_a[x][y + i * STEP] = r < m && first + x < k ? a(batch, r, first + x) : (V) 0;
				of_b[y][x + i * STEP] = s < n && first + y < k ? b(batch, first + y, s) : (V) 0;
			}
			__syncthreads();
			for (int j = 0; j < STEP; j++)
				for (int i = 0; i < PART; i++)
					for (int l = 0; l < PART; l++)
						sum[i][l] += of_a[j][y + i * STEP] * of_b[j][x + l * STEP];
			__syncthreads();
		}
		for (int i = 0; i < PART; i++)
			for (int l = 0; l < PART; l++)
				if (row + y + i * STEP < m && column + x + l * STEP < n)
					out.set(batch, row + y + i * STEP, column + x + l * STEP, sum[i][l]);
	}
}

template <class V, class A, class B, class C>
choir_status launch_tiles(const choir_kernel_call *c, const A &a, const B &b, const C &out,
		int64_t m, int64_t n, int64_t k, int64_t batches)
{
	const int64_t most = 65535, columns = (n + TILE - 1) / TILE;
	if (columns > most)
		return with.fail(CHOIR_UNSUPPORTED, "a product with %lld columns; %lld are possible",
				(long long) n, (long long) (most * TILE));
	const dim3 grid((unsigned) ((m + TILE - 1) / TILE), (unsigned) columns,
			(unsigned) (batches < most ? batches : most));
	return launch(stream_of(c->stream), grid, STEP * STEP, tile_kernel<V, A, B, C>, a, b, out, m,
			n, k, batches);
}

} // namespace choir_cuda
