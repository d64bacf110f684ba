// Comparisons, logical operations and the choice by a condition, which broadcast.
#include "numbers.h"

namespace choir_cuda
{

#define PREDICATE(name, expression) \
	struct name { \
		template <class T> static __device__ inline uint8_t of(T a, T b) \
		{ \
			return (uint8_t) (expression); \
		} \
	}
PREDICATE(is_equal, a == b);
PREDICATE(is_not_equal, a != b);
PREDICATE(is_less, a < b);
PREDICATE(is_less_equal, a <= b);
PREDICATE(is_both, a != 0 && b != 0);
PREDICATE(is_either, a != 0 || b != 0);
#undef PREDICATE

template <class T, class F>
__global__ void compare_kernel(const T *a, const T *b, uint8_t *out, int64_t n, nest shape)
{
	EACH (i, n) {
		int64_t at[MAX_OPERANDS];
		shape.find(i, at);
		out[i] = F::template of<real<T>>((real<T>) a[at[0]], (real<T>) b[at[1]]);
	}
}

static nest broadcast_all(const choir_kernel_call *c)
{
	nest shape = nest_over(&c->out->shape);
	for (size_t i = 0; i < c->n; i++)
		set_broadcast(&shape, (int) i, &c->in[i].shape);
	return shape;
}

template <class F> struct comparison {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(*c->out);
		return launch_each(c, n, compare_kernel<T, F>, (const T *) c->in[0].data,
				(const T *) c->in[1].data, (uint8_t *) c->out->data, n, broadcast_all(c));
	}
};

template <class U>
__global__ void where_kernel(
		const U *a, const U *b, const uint8_t *condition, U *out, int64_t n, nest shape)
{
	EACH (i, n) {
		int64_t at[MAX_OPERANDS];
		shape.find(i, at);
		out[i] = condition[at[2]] != 0 ? a[at[0]] : b[at[1]];
	}
}

struct where {
	template <class U> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(*c->out);
		return launch_each(c, n, where_kernel<U>, (const U *) c->in[0].data,
				(const U *) c->in[1].data, (const uint8_t *) c->in[2].data, (U *) c->out->data, n,
				broadcast_all(c));
	}
};

static const kernel kernels[] = {
	{ "equal", ARITHMETIC | BOOL, run_any<comparison<is_equal>>, NULL, NULL },
	{ "not_equal", ARITHMETIC | BOOL, run_any<comparison<is_not_equal>>, NULL, NULL },
	{ "less", ARITHMETIC | BOOL, run_any<comparison<is_less>>, NULL, NULL },
	{ "less_equal", ARITHMETIC | BOOL, run_any<comparison<is_less_equal>>, NULL, NULL },
	{ "logical_and", BOOL, run_number<comparison<is_both>>, NULL, NULL },
	{ "logical_or", BOOL, run_number<comparison<is_either>>, NULL, NULL },
	{ "where", ALL, run_size<where>, NULL, NULL },
};
const kernel_list comparison_kernels = list_of(kernels);

} // namespace choir_cuda
