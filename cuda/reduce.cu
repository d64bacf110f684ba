// Reductions: sums, extremes and their positions, cumulative sums, and squares of chunks. The
// shape alone decides the order of additions, so bits do not depend on the GPU.
#include "block_reduce.h"
#include "device_math.h"

#include <type_traits>

namespace choir_cuda
{

enum { LONG_SUM = 256, MANY_SUMS = 4096 };

// Strides of operand 0 over the axes that stay, and over those that are reduced.
struct reduction {
	nest kept, reduced;
	int64_t outs, terms;
};

static reduction reduction_of(const choir_kernel_call *c)
{
	const uint32_t axes = attributes<choir_sum_attributes>(c)->axes;
	const choir_shape *shape = &c->in[0].shape;
	nest packed = {};
	set_packed(&packed, 0, shape);
	reduction r = {};
	r.outs = r.terms = 1;
	for (int d = 0; d < shape->rank; d++) {
		const bool reduced = (axes >> d & 1) != 0;
		nest *to = reduced ? &r.reduced : &r.kept;
		to->dim[to->rank] = shape->dim[d];
		to->stride[0][to->rank++] = packed.stride[0][d];
		*(reduced ? &r.terms : &r.outs) *= shape->dim[d];
	}
	return r;
}

// Sums of floats are made in f64; integers wrap.
template <class T> struct total {
	typedef double type;
};
template <> struct total<int32_t> {
	typedef uint64_t type;
};
template <> struct total<int64_t> {
	typedef uint64_t type;
};
template <> struct total<uint8_t> {
	typedef uint64_t type;
};

// A thread for each sum.
template <class T> __global__ void sum_kernel(const T *x, output<T> out, reduction r)
{
	typedef typename total<T>::type sum_type;
	EACH (i, r.outs) {
		int64_t first[MAX_OPERANDS], at[MAX_OPERANDS];
		sum_type sum = 0;
		r.kept.find(i, first);
		for (int64_t k = 0; k < r.terms; k++) {
			r.reduced.find(k, at);
			sum += (sum_type) x[first[0] + at[0]];
		}
		out.set(i, sum);
	}
}

// A block for each sum.
template <class T> __global__ void long_sum_kernel(const T *x, output<T> out, reduction r)
{
	int64_t first[MAX_OPERANDS], at[MAX_OPERANDS];
	r.kept.find((int64_t) blockIdx.x, first);
	double sum = 0;
	for (int64_t k = (int64_t) threadIdx.x; k < r.terms; k += (int64_t) blockDim.x) {
		r.reduced.find(k, at);
		sum += (double) x[first[0] + at[0]];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		out.set(blockIdx.x, sum);
}

KERNEL(sum)
{
	const reduction r = reduction_of(c);
	const T *x = given<T>(c, 0);
	const output<T> out = output_of<T>(*c->out);
	if (std::is_floating_point<real<T>>::value && r.terms >= LONG_SUM && r.outs < MANY_SUMS)
		return launch(
				stream_of(c->stream), (unsigned) r.outs, THREADS, long_sum_kernel<T>, x, out, r);
	return launch_each(c, r.outs, sum_kernel<T>, x, out, r);
}

template <class T, class F> __global__ void extreme_kernel(const T *x, T *out, reduction r)
{
	EACH (i, r.outs) {
		int64_t first[MAX_OPERANDS], at[MAX_OPERANDS];
		r.kept.find(i, first);
		T best = x[first[0]];
		for (int64_t k = 1; k < r.terms; k++) {
			r.reduced.find(k, at);
			best = F::template of<T>(best, x[first[0] + at[0]]);
		}
		out[i] = best;
	}
}

KERNEL_OF(class, F, extreme)
{
	const reduction r = reduction_of(c);
	return launch_each(c, r.outs, extreme_kernel<T, F>, given<T>(c, 0), made<T>(c), r);
}

// The first of equal elements wins, and any number wins over a NAN.
template <class T, bool least>
__global__ void position_kernel(const T *x, int64_t *out, int64_t outs, int64_t n, int64_t inner)
{
	EACH (i, outs) {
		const T *from = &x[i / inner * n * inner + i % inner];
		int64_t best = 0;
		for (int64_t k = 1; k < n; k++) {
			const T a = from[k * inner], b = from[best * inner];
			if ((least ? a < b : a > b) || (b != b && a == a))
				best = k;
		}
		out[i] = best;
	}
}

KERNEL_OF(bool, least, position)
{
	const int axis = attributes<choir_argmax_attributes>(c)->axis;
	const choir_shape *shape = &c->in[0].shape;
	const int64_t n = elements(*c->out);
	return launch_each(c, n, position_kernel<T, least>, given<T>(c, 0), made<int64_t>(c), n,
			shape->dim[axis], inner_of(shape, axis));
}

// A thread for each line of n elements, which are step apart.
template <class T>
__global__ void cumsum_kernel(
		const T *x, T *out, int64_t lines, int64_t n, int64_t inner, bool exclusive, bool reverse)
{
	typedef typename total<T>::type sum_type;
	EACH (i, lines) {
		const int64_t first = i / inner * n * inner + i % inner;
		sum_type sum = 0;
		for (int64_t k = 0; k < n; k++) {
			const int64_t at = first + (reverse ? n - 1 - k : k) * inner;
			const sum_type next = sum + (sum_type) x[at];
			out[at] = (T) (exclusive ? sum : next);
			sum = next;
		}
	}
}

KERNEL(cumsum)
{
	const auto *a = attributes<choir_cumsum_attributes>(c);
	const choir_shape *shape = &c->in[0].shape;
	const int64_t n = shape->dim[a->axis], lines = elements(c->in[0]) / n;
	return launch_each(c, lines, cumsum_kernel<T>, given<T>(c, 0), made<T>(c), lines, n,
			inner_of(shape, a->axis), a->exclusive, a->reverse);
}

template <class T> struct chunk_sources {
	using reads_only = void;
	const T *x[MANY];
	int64_t n[MANY];
};

struct chunk_results {
	double *out[MANY];
};

// A block for each chunk, and a row of blocks for each tensor.
template <class T>
__global__ void chunk_squares_kernel(chunk_sources<T> from, chunk_results to, int64_t chunk)
{
	const T *x = from.x[blockIdx.y];
	const int64_t first = (int64_t) blockIdx.x * chunk, n = from.n[blockIdx.y];
	const int64_t last = first + chunk < n ? first + chunk : n;
	double sum = 0;
	if (first >= n)
		return;
	for (int64_t i = first + (int64_t) threadIdx.x; i < last; i += (int64_t) blockDim.x)
		sum += (double) x[i] * (double) x[i];
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		to.out[blockIdx.y][blockIdx.x] = sum;
}

struct chunk_squares {
	enum { ATTRIBUTES = sizeof(choir_chunk_squares_attributes) };
	template <class T> static choir_status run(const choir_kernel_call *c, size_t count)
	{
		const auto *a = attributes<choir_chunk_squares_attributes>(c);
		chunk_sources<T> from = {};
		chunk_results to = {};
		int64_t most = 0;
		for (size_t i = 0; i < count; i++) {
			const int64_t chunks = elements(*c[i].out);
			from.x[i] = given<T>(&c[i], 0);
			from.n[i] = elements(c[i].in[0]);
			to.out[i] = made<double>(&c[i]);
			most = chunks > most ? chunks : most;
		}
		return launch(stream_of(c->stream), dim3((unsigned) most, (unsigned) count), THREADS,
				chunk_squares_kernel<T>, from, to, a->chunk);
	}
};

static const kernel kernels[] = {
	{ "sum", ARITHMETIC, run_any<sum> },
	{ "max", ARITHMETIC, run_any<extreme<op_maximum>> },
	{ "min", ARITHMETIC, run_any<extreme<op_minimum>> },
	{ "argmax", ARITHMETIC, run_any<position<false>> },
	{ "argmin", ARITHMETIC, run_any<position<true>> },
	{ "cumsum", ARITHMETIC, run_any<cumsum> },
	LISTED("chunk_squares", chunk_squares),
};
const kernel_list reduce_kernels = list_of(kernels);

} // namespace choir_cuda
