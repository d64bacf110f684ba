// Launching kernels, and what kernels share: loops over elements, broadcasting, and dtypes.
#pragma once

#include "half.h"
#include "plugin.h"

#include <cstring>

namespace choir_cuda
{

enum { THREADS = 256, MAX_BLOCKS = 4096 };

template <class... P, class... A>
choir_status launch(stream *s, dim3 grid, unsigned block, void (*kernel)(P...), A... arguments)
{
	on_gpu on(s->d->gpu);
	cudaLaunchConfig_t c = {};
	c.gridDim = grid;
	c.blockDim = dim3(block);
	c.stream = s->s;
	s->dirty = true;
	return CALL(s->d, cudaLaunchKernelEx, &c, kernel, arguments...);
}

inline unsigned grid_for(int64_t items)
{
	const int64_t blocks = (items + THREADS - 1) / THREADS;
	return (unsigned) (blocks < 1 ? 1 : blocks > MAX_BLOCKS ? (int64_t) MAX_BLOCKS : blocks);
}

// Launches a kernel whose threads take items 0 to items - 1 by EACH.
template <class... P, class... A>
choir_status launch_each(
		const choir_kernel_call *call, int64_t items, void (*kernel)(P...), A... arguments)
{
	return launch(stream_of(call->stream), grid_for(items), THREADS, kernel, arguments...);
}

// A loop over this thread's items. No sum may be divided among them: the grid is not fixed.
#define EACH(i, n) \
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x, \
				 step_ = (int64_t) gridDim.x * blockDim.x; \
			i < (n); i += step_)

// Memory whose extent is known to the stand-in, which checks what launches reach.
template <class T> struct span {
	using is_span = void;
	T *data;
	int64_t count;
};

inline int64_t elements(const choir_buffer &b)
{
	int64_t n = 1;
	for (int i = 0; i < b.shape.rank; i++)
		n *= b.shape.dim[i];
	return n;
}

inline size_t size_of(choir_dtype dtype)
{
	static const size_t sizes[] = { 4, 8, 4, 8, 1, 1, 2, 2 };
	return sizes[dtype];
}

// The number of elements in one index of an axis.
inline int64_t inner_of(const choir_shape *shape, int axis)
{
	int64_t n = 1;
	for (int d = axis + 1; d < shape->rank; d++)
		n *= shape->dim[d];
	return n;
}

inline bool same_shape(const choir_buffer &a, const choir_buffer &b)
{
	bool same = a.shape.rank == b.shape.rank;
	for (int i = 0; same && i < a.shape.rank; i++)
		same = a.shape.dim[i] == b.shape.dim[i];
	return same;
}

enum { MAX_OPERANDS = 3 };

// The place of element i of a shape in up to three operands with strides of their own.
struct nest {
	int rank;
	int64_t dim[CHOIR_MAX_RANK], stride[MAX_OPERANDS][CHOIR_MAX_RANK];
	__host__ __device__ void find(int64_t i, int64_t at[MAX_OPERANDS]) const
	{
		at[0] = at[1] = at[2] = 0;
		for (int d = rank - 1; d >= 0; d--) {
			const int64_t k = i % dim[d];
			i /= dim[d];
			for (int o = 0; o < MAX_OPERANDS; o++)
				at[o] += k * stride[o][d];
		}
	}
};

inline nest nest_over(const choir_shape *shape)
{
	nest n = {};
	n.rank = shape->rank;
	for (int d = 0; d < shape->rank; d++)
		n.dim[d] = shape->dim[d];
	return n;
}

// The strides of an operand that repeats to fill the nest, aligned at the right.
inline void set_broadcast(nest *n, int operand, const choir_shape *shape)
{
	int64_t stride = 1;
	for (int d = n->rank - 1; d >= 0; d--) {
		const int own = d - (n->rank - shape->rank);
		const int64_t dim = own >= 0 ? shape->dim[own] : 1;
		n->stride[operand][d] = dim == 1 ? 0 : stride;
		stride *= dim;
	}
}

// For the first inputs of a call.
inline nest broadcast_all(const choir_kernel_call *c, size_t inputs)
{
	nest shape = nest_over(&c->out->shape);
	for (size_t i = 0; i < inputs; i++)
		set_broadcast(&shape, (int) i, &c->in[i].shape);
	return shape;
}

// The strides of an operand with packed axes of this shape.
inline void set_packed(nest *n, int operand, const choir_shape *shape)
{
	int64_t stride = 1;
	for (int d = shape->rank - 1; d >= 0; d--) {
		n->stride[operand][d] = stride;
		stride *= shape->dim[d];
	}
}

inline choir_status fail_dtype(choir_dtype dtype)
{
	return with.fail(CHOIR_INTERNAL, "the kernel has no code for dtype %d", (int) dtype);
}

// The data of an input, and of out.
template <class T> const T *given(const choir_kernel_call *c, size_t i)
{
	return (const T *) c->in[i].data;
}

template <class T> T *made(const choir_kernel_call *c)
{
	return (T *) c->out->data;
}

template <class A> const A *attributes(const choir_kernel_call *c)
{
	return (const A *) c->attributes;
}

// The length of the first input's last axis.
inline int64_t width_of(const choir_kernel_call *c)
{
	return c->in[0].shape.dim[c->in[0].shape.rank - 1];
}

// Whether the operand of a kernel for T is f32 although T has 16 bits.
template <class T> bool is_wide(const choir_buffer &b)
{
	return sizeof(T) == 2 && b.dtype == CHOIR_F32;
}

template <class T> input<T> input_of(const choir_buffer &b)
{
	return is_wide<T>(b) ? input<T>{ NULL, (const float *) b.data }
						 : input<T>{ (const T *) b.data, NULL };
}

template <class T> output<T> output_of(const choir_buffer &b)
{
	return is_wide<T>(b) ? output<T>{ NULL, (float *) b.data } : output<T>{ (T *) b.data, NULL };
}

// Calls F::run<T>(arguments) with the type of a dtype.
template <class F, class... A> choir_status for_real(choir_dtype dtype, A... arguments)
{
	switch (dtype) {
	case CHOIR_F32:
		return F::template run<float>(arguments...);
	case CHOIR_F64:
		return F::template run<double>(arguments...);
	default:
		return fail_dtype(dtype);
	}
}

// Of a dtype of 16 bits, too.
template <class F, class... A> choir_status for_float(choir_dtype dtype, A... arguments)
{
	switch (dtype) {
	case CHOIR_F16:
		return F::template run<f16>(arguments...);
	case CHOIR_BF16:
		return F::template run<bf16>(arguments...);
	default:
		return for_real<F>(dtype, arguments...);
	}
}

template <class F, class... A> choir_status for_number(choir_dtype dtype, A... arguments)
{
	switch (dtype) {
	case CHOIR_I32:
		return F::template run<int32_t>(arguments...);
	case CHOIR_I64:
		return F::template run<int64_t>(arguments...);
	case CHOIR_U8:
	case CHOIR_BOOL:
		return F::template run<uint8_t>(arguments...);
	default:
		return for_real<F>(dtype, arguments...);
	}
}

// With an unsigned type of the dtype's size, for kernels that only move.
template <class F, class... A> choir_status for_size(choir_dtype dtype, A... arguments)
{
	switch (size_of(dtype)) {
	case 8:
		return F::template run<uint64_t>(arguments...);
	case 4:
		return F::template run<uint32_t>(arguments...);
	case 2:
		return F::template run<uint16_t>(arguments...);
	default:
		return F::template run<uint8_t>(arguments...);
	}
}

// The code of a kernel for each type T, which a functor calls by its name.
#define KERNEL(name) \
	struct name { \
		template <class T> static choir_status run(const choir_kernel_call *c); \
	}; \
	template <class T> choir_status name::run(const choir_kernel_call *c)
#define KERNEL_OF(kind, F, name) \
	template <kind F> struct name { \
		template <class T> static choir_status run(const choir_kernel_call *c); \
	}; \
	template <kind F> template <class T> choir_status name<F>::run(const choir_kernel_call *c)

// Kernels of one type of functor, as entries of a list.
template <class F> choir_status run_real(const choir_kernel_call *call)
{
	return for_real<F>(call->n > 0 ? call->in[0].dtype : call->out->dtype, call);
}

template <class F> choir_status run_float(const choir_kernel_call *call)
{
	return for_float<F>(call->n > 0 ? call->in[0].dtype : call->out->dtype, call);
}

template <class F> choir_status run_number(const choir_kernel_call *call)
{
	return for_number<F>(call->in[0].dtype, call);
}

template <class F> choir_status run_any(const choir_kernel_call *call)
{
	const choir_dtype dtype = call->in[0].dtype;
	return size_of(dtype) == 2 ? for_float<F>(dtype, call) : for_number<F>(dtype, call);
}

// Kernels that take lists: F::run<T>(calls, count). A launch serves up to MANY calls with equal
// attributes on small tensors, or one on a large tensor.
enum { MANY = 64, LARGE = 1 << 16 };

template <class F> choir_status run_all(const choir_kernel_call *calls, size_t count)
{
	for (size_t done = 0, n; done < count; done += n) {
		const choir_kernel_call *c = &calls[done];
		n = 1;
		while (n < MANY && done + n < count && elements(c->in[0]) <= LARGE &&
				elements(c[n].in[0]) <= LARGE &&
				memcmp(c->attributes, c[n].attributes, F::ATTRIBUTES) == 0)
			n++;
		CHOIR_TRY(for_real<F>(c->in[0].dtype, c, n));
	}
	return CHOIR_OK;
}

template <class F> choir_status run_one(const choir_kernel_call *call)
{
	return run_all<F>(call, 1);
}
#define LISTED(operation, F) \
	{ \
		operation, REAL, run_one<F>, NULL, NULL, run_all<F> \
	}

template <class F> choir_status run_size(const choir_kernel_call *call)
{
	return for_size<F>(call->out->dtype, call);
}

} // namespace choir_cuda
