// Rows by index: gather, its gradient, and the updates of rows. For updates a thread for each
// column goes through the indices in their order, so an index that occurs twice is applied twice,
// always in the same order. The gradient adds in the same order, along chains of equal indices. An
// index outside of the rows gathers zeros and updates nothing.
#include "block_reduce.h"
#include "device_math.h"

namespace choir_cuda
{

template <class U>
__global__ void gather_kernel(
		const U *x, const void *indices, int dtype, U *out, int64_t n, int64_t width, int64_t rows)
{
	EACH (i, n) {
		const int64_t row = index_at(dtype, indices, i / width);
		out[i] = row < 0 || row >= rows ? (U) 0 : x[row * width + i % width];
	}
}

KERNEL(gather)
{
	const choir_buffer *x = &c->in[0], *indices = &c->in[1];
	const int64_t n = elements(*c->out);
	return launch_each(c, n, gather_kernel<T>, (const T *) x->data, (const void *) indices->data,
			(int) indices->dtype, made<T>(c), n, inner_of(&x->shape, 0), x->shape.dim[0]);
}

template <class T, class F>
__global__ void scatter_kernel(T *target, const void *indices, int dtype, const T *values,
		int64_t n, int64_t width, int64_t rows)
{
	EACH (column, width)
		for (int64_t k = 0; k < n; k++) {
			const int64_t row = index_at(dtype, indices, k);
			if (row >= 0 && row < rows) {
				T *at = &target[row * width + column];
				*at = F::template of<T>(*at, values[k * width + column]);
			}
		}
}

KERNEL_OF(class, F, scatter)
{
	const choir_buffer *target = &c->in[0], *indices = &c->in[1];
	const int64_t width = inner_of(&target->shape, 0);
	return launch_each(c, width, scatter_kernel<T, F>, (T *) target->data,
			(const void *) indices->data, (int) indices->dtype, given<T>(c, 2), elements(*indices),
			width, target->shape.dim[0]);
}

// For each index the place of the next one that is equal, or n. The first of equal ones is a head.
__global__ void chain_kernel(
		const void *indices, int dtype, int32_t *next, uint8_t *follows, int32_t n)
{
	EACH (i, n) {
		const int64_t row = index_at(dtype, indices, i);
		int32_t k = (int32_t) i + 1;
		while (k < n && index_at(dtype, indices, k) != row)
			k++;
		next[i] = k;
		if (k < n)
			follows[k] = 1;
	}
}

// A block for each head sums the rows of its chain, in their order.
template <class T>
__global__ void chain_sum_kernel(const T *dy, const void *indices, int dtype, const int32_t *next,
		const uint8_t *follows, output<T> out, int32_t n, int64_t width, int64_t rows)
{
	const int32_t head = (int32_t) blockIdx.x;
	const int64_t row = index_at(dtype, indices, head);
	if (follows[head] != 0 || row < 0 || row >= rows)
		return;
	EACH_IN_ROW(j, width)
	{
		real<T> sum = 0;
		for (int32_t k = head; k < n; k = next[k])
			sum += (real<T>) dy[k * width + j];
		out.set(row * width + j, sum);
	}
}

static size_t chain_scratch(const choir_kernel_call *c)
{
	return (size_t) elements(c->in[1]) * (sizeof(int32_t) + 1);
}

KERNEL(gather_gradient)
{
	const choir_buffer *dy = &c->in[0], *indices = &c->in[1], *out = c->out;
	const int64_t n = elements(*indices);
	const void *data = indices->data;
	int32_t *next = (int32_t *) c->scratch;
	uint8_t *follows = (uint8_t *) (next + n);
	if (n > INT32_MAX)
		return with.fail(
				CHOIR_UNSUPPORTED, "%lld indices; at most 2147483647 are possible", (long long) n);
	CHOIR_TRY(fill(c->stream, out->data, 0, (size_t) elements(*out) * size_of(out->dtype)));
	CHOIR_TRY(fill(c->stream, follows, 0, (size_t) n));
	CHOIR_TRY(launch_each(
			c, n, chain_kernel, data, (int) indices->dtype, next, follows, (int32_t) n));
	return launch(stream_of(c->stream), (unsigned) n, threads_for(inner_of(&out->shape, 0)),
			chain_sum_kernel<T>, (const T *) dy->data, data, (int) indices->dtype,
			(const int32_t *) next, (const uint8_t *) follows, output_of<T>(*out), (int32_t) n,
			inner_of(&out->shape, 0), out->shape.dim[0]);
}

static const kernel kernels[] = {
	{ "gather", ALL, run_size<gather> },
	{ "gather_gradient", FLOATS, run_float<gather_gradient>, chain_scratch },
	{ "scatter_update", ALL, run_size<scatter<op_second>> },
	{ "scatter_add", NUMBERS, run_number<scatter<op_add>> },
	{ "scatter_subtract", NUMBERS, run_number<scatter<op_subtract>> },
	{ "scatter_multiply", NUMBERS, run_number<scatter<op_multiply>> },
	{ "scatter_divide", NUMBERS, run_number<scatter<op_divide>> },
	{ "scatter_minimum", NUMBERS, run_number<scatter<op_minimum>> },
	{ "scatter_maximum", NUMBERS, run_number<scatter<op_maximum>> },
};
const kernel_list index_kernels = list_of(kernels);

} // namespace choir_cuda
