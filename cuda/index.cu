// Rows by index: gather, its gradient, and the updates of rows. A thread for each column goes
// through the indices in their order, so an index that occurs twice is applied twice, always in
// the same order. An index outside of the rows gathers zeros and updates nothing.
#include "numbers.h"

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

struct gather {
	template <class U> static choir_status run(const choir_kernel_call *c)
	{
		const choir_buffer *x = &c->in[0], *indices = &c->in[1];
		const int64_t n = elements(*c->out);
		return launch_each(c, n, gather_kernel<U>, (const U *) x->data,
				(const void *) indices->data, (int) indices->dtype, (U *) c->out->data, n,
				inner_of(&x->shape, 0), x->shape.dim[0]);
	}
};

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

template <class F> struct scatter {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const choir_buffer *target = &c->in[0], *indices = &c->in[1];
		const int64_t width = inner_of(&target->shape, 0);
		return launch_each(c, width, scatter_kernel<T, F>, (T *) target->data,
				(const void *) indices->data, (int) indices->dtype, (const T *) c->in[2].data,
				elements(*indices), width, target->shape.dim[0]);
	}
};

struct gather_gradient {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const choir_buffer *dy = &c->in[0], *indices = &c->in[1];
		const int64_t width = inner_of(&c->out->shape, 0);
		CHOIR_TRY(fill(c->stream, c->out->data, 0, (size_t) elements(*c->out) * sizeof(T)));
		return launch_each(c, width, scatter_kernel<T, op_add>, (T *) c->out->data,
				(const void *) indices->data, (int) indices->dtype, (const T *) dy->data,
				elements(*indices), width, c->out->shape.dim[0]);
	}
};

static const kernel kernels[] = {
	{ "gather", ALL, run_size<gather>, NULL, NULL },
	{ "gather_gradient", REAL, run_real<gather_gradient>, NULL, NULL },
	{ "scatter_update", ALL, run_size<scatter<op_second>>, NULL, NULL },
	{ "scatter_add", ARITHMETIC, run_number<scatter<op_add>>, NULL, NULL },
	{ "scatter_subtract", ARITHMETIC, run_number<scatter<op_subtract>>, NULL, NULL },
	{ "scatter_multiply", ARITHMETIC, run_number<scatter<op_multiply>>, NULL, NULL },
	{ "scatter_divide", ARITHMETIC, run_number<scatter<op_divide>>, NULL, NULL },
	{ "scatter_minimum", ARITHMETIC, run_number<scatter<op_minimum>>, NULL, NULL },
	{ "scatter_maximum", ARITHMETIC, run_number<scatter<op_maximum>>, NULL, NULL },
};
const kernel_list index_kernels = list_of(kernels);

} // namespace choir_cuda
