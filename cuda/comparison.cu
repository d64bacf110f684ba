// Comparisons, logical operations and the choice by a condition, which broadcast.
#include "device_math.h"

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

KERNEL_OF(class, F, comparison)
{
	const int64_t n = elements(*c->out);
	return launch_each(c, n, broadcast_kernel<T, uint8_t, F>, given<T>(c, 0), given<T>(c, 1),
			(uint8_t *) c->out->data, n, broadcast_all(c, c->n));
}

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

KERNEL(where)
{
	const int64_t n = elements(*c->out);
	return launch_each(c, n, where_kernel<T>, given<T>(c, 0), given<T>(c, 1),
			(const uint8_t *) c->in[2].data, made<T>(c), n, broadcast_all(c, c->n));
}

static const kernel kernels[] = {
	{ "equal", ARITHMETIC | BOOL, run_any<comparison<is_equal>> },
	{ "not_equal", ARITHMETIC | BOOL, run_any<comparison<is_not_equal>> },
	{ "less", ARITHMETIC | BOOL, run_any<comparison<is_less>> },
	{ "less_equal", ARITHMETIC | BOOL, run_any<comparison<is_less_equal>> },
	{ "logical_and", BOOL, run_number<comparison<is_both>> },
	{ "logical_or", BOOL, run_number<comparison<is_either>> },
	{ "where", ALL, run_size<where> },
};
const kernel_list comparison_kernels = list_of(kernels);

} // namespace choir_cuda
