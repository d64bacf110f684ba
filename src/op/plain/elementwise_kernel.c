// Elementwise kernels: one loop for each run of a broadcast.
#include "op/plain/broadcast_iterator.h"
#include "op/plain/cast_kernel.h"
#include "op/vector.h"

#include <string.h>

static const chi_binary binary_ops[] = { CHI_ADD, CHI_SUBTRACT, CHI_MULTIPLY, CHI_DIVIDE,
	CHI_MAXIMUM, CHI_MINIMUM };
static const chi_number_unary number_unary_ops[] = { CHI_NUMBER_SQUARE, CHI_ABS, CHI_NEGATE,
	CHI_SIGN };
static const chi_comparison comparisons[] = { CHI_EQUAL, CHI_NOT_EQUAL, CHI_LESS, CHI_LESS_EQUAL };
static const chi_library functions[] = { CHI_FLOOR, CHI_CEIL, CHI_ROUND_EVEN, CHI_SIN, CHI_COS,
	CHI_TAN, CHI_RSQRT, CHI_LOG1P, CHI_EXPM1, CHI_ERF };
static const chi_library2 functions2[] = { CHI_POW, CHI_ATAN2 };
static const chi_unary unary_ops[] = { CHI_SQUARE, CHI_SQRT, CHI_EXP, CHI_LOG, CHI_RELU, CHI_TANH,
	CHI_SIGMOID, CHI_GELU_TANH, CHI_GELU, CHI_SILU, CHI_SOFTPLUS };

// A bool is computed as u8.
static const chi_number_loops *number_loops(choir_dtype dtype)
{
	return chi_loops_best()->number[dtype == CHOIR_BOOL ? CHOIR_U8 : dtype];
}

typedef void run_fn(const choir_kernel_call *call, void *out, const void *a, const void *b,
		int64_t n, bool a_repeats, bool b_repeats);

static choir_status run_both(const choir_kernel_call *call, run_fn *run)
{
	const choir_buffer *a = &call->in[0], *b = &call->in[1];
	chi_broadcast_iterator it;
	chi_broadcast_iterator_init(&it, &call->out->shape, 2, call->in);
	const int64_t n = chi_broadcast_iterator_run(&it);
	const bool a_repeats = chi_broadcast_iterator_repeats(&it, 0),
			   b_repeats = chi_broadcast_iterator_repeats(&it, 1);
	for (int64_t at = 0; !it.done; at += n, chi_broadcast_iterator_next(&it))
		run(call, chi_element(call->out, at), chi_element(a, it.at[0]), chi_element(b, it.at[1]),
				n, a_repeats, b_repeats);
	return CHOIR_OK;
}

static void binary(const choir_kernel_call *call, void *out, const void *a, const void *b,
		int64_t n, bool a_repeats, bool b_repeats)
{
	number_loops(call->in[0].dtype)
			->binary(*(const chi_binary *) call->user, out, a, b, n, a_repeats, b_repeats);
}

static void compare(const choir_kernel_call *call, void *out, const void *a, const void *b,
		int64_t n, bool a_repeats, bool b_repeats)
{
	number_loops(call->in[0].dtype)
			->compare(*(const chi_comparison *) call->user, out, a, b, n, a_repeats, b_repeats);
}

static void library2(const choir_kernel_call *call, void *out, const void *a, const void *b,
		int64_t n, bool a_repeats, bool b_repeats)
{
	chi_loops_best()->real[call->in[0].dtype]->library2(
			*(const chi_library2 *) call->user, out, a, b, n, a_repeats, b_repeats);
}

static choir_status run_binary(const choir_kernel_call *call)
{
	return run_both(call, binary);
}

static choir_status run_comparison(const choir_kernel_call *call)
{
	return run_both(call, compare);
}

static choir_status run_library2(const choir_kernel_call *call)
{
	return run_both(call, library2);
}

static choir_status run_library(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	chi_loops_best()->real[x->dtype]->library(
			*(const chi_library *) call->user, call->out->data, x->data, chi_elements(x));
	return CHOIR_OK;
}

static choir_status run_number_unary(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	number_loops(x->dtype)->unary(
			*(const chi_number_unary *) call->user, call->out->data, x->data, chi_elements(x));
	return CHOIR_OK;
}

static choir_status run_unary(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	chi_loops_best()->real[x->dtype]->unary(
			*(const chi_unary *) call->user, call->out->data, x->data, chi_elements(x));
	return CHOIR_OK;
}

static choir_status run_gradient(const choir_kernel_call *call)
{
	const choir_buffer *by = &call->in[0];
	chi_loops_best()->real[by->dtype]->gradient(*(const chi_unary *) call->user, call->out->data,
			by->data, call->in[1].data, chi_elements(by));
	return CHOIR_OK;
}

static choir_status run_relu_half(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	chi_half_loops_best(x->dtype)->relu(call->out->data, x->data, chi_elements(x));
	return CHOIR_OK;
}

static choir_status run_relu_gradient_half(const choir_kernel_call *call)
{
	const choir_buffer *y = &call->in[0];
	chi_half_loops_best(y->dtype)->relu_gradient(
			call->out->data, y->data, call->in[1].data, chi_elements(y));
	return CHOIR_OK;
}

static choir_status run_scale(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	const choir_scale_attributes *attributes = call->attributes;
	chi_loops_best()->real[x->dtype]->scale(
			call->out->data, x->data, attributes->by, chi_elements(x));
	return CHOIR_OK;
}

static choir_status run_huber(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	const choir_huber_attributes *attributes = call->attributes;
	chi_loops_best()->real[x->dtype]->huber(
			call->out->data, x->data, attributes->delta, chi_elements(x));
	return CHOIR_OK;
}

static choir_status run_huber_gradient(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	const choir_huber_attributes *attributes = call->attributes;
	chi_loops_best()->real[x->dtype]->huber_gradient(
			call->out->data, x->data, call->in[1].data, attributes->delta, chi_elements(x));
	return CHOIR_OK;
}

static choir_status run_maximum_gradient(const choir_kernel_call *call)
{
	const choir_maximum_gradient_attributes *attributes = call->attributes;
	const choir_buffer *in = call->in;
	const chi_real_loops *loops = chi_loops_best()->real[call->out->dtype];
	chi_broadcast_iterator it;
	chi_broadcast_iterator_init(&it, &call->out->shape, 3, in);
	const int64_t run = chi_broadcast_iterator_run(&it);
	const bool a_repeats = chi_broadcast_iterator_repeats(&it, 0),
			   b_repeats = chi_broadcast_iterator_repeats(&it, 1);
	for (int64_t at = 0; !it.done; at += run, chi_broadcast_iterator_next(&it))
		loops->maximum_gradient(chi_element(call->out, at), chi_element(&in[0], it.at[0]),
				chi_element(&in[1], it.at[1]), chi_element(&in[2], it.at[2]), run, a_repeats,
				b_repeats, attributes->side == 1);
	return CHOIR_OK;
}

static inline __attribute__((always_inline)) void choose_sized(const chi_broadcast_iterator *it,
		const choir_kernel_call *call, void *out, int64_t n, size_t size)
{
	const char *a = chi_element(&call->in[0], it->at[0]),
			   *b = chi_element(&call->in[1], it->at[1]);
	const char *condition = chi_element(&call->in[2], it->at[2]);
	const size_t a_step = chi_broadcast_iterator_repeats(it, 0) ? 0 : size;
	const size_t b_step = chi_broadcast_iterator_repeats(it, 1) ? 0 : size;
	const size_t step = !chi_broadcast_iterator_repeats(it, 2);
	char *to = out;
	for (size_t i = 0; i < (size_t) n; i++)
		memcpy(to + i * size, condition[i * step] ? a + i * a_step : b + i * b_step, size);
}

static choir_status run_where(const choir_kernel_call *call)
{
	const size_t size = chi_dtype_size(call->out->dtype);
	chi_broadcast_iterator it;
	chi_broadcast_iterator_init(&it, &call->out->shape, 3, call->in);
	const int64_t run = chi_broadcast_iterator_run(&it);
	for (int64_t at = 0; !it.done; at += run, chi_broadcast_iterator_next(&it)) {
		void *out = chi_element(call->out, at);
		if (size == 8)
			choose_sized(&it, call, out, run, 8);
		else if (size == 4)
			choose_sized(&it, call, out, run, 4);
		else if (size == 2)
			choose_sized(&it, call, out, run, 2);
		else
			choose_sized(&it, call, out, run, 1);
	}
	return CHOIR_OK;
}

static void repeat(void *out, const void *element, size_t size, int64_t n)
{
	const size_t bytes = (size_t) n * size;
	if (bytes == 0)
		return;
	memcpy(out, element, size);
	for (size_t done = size; done < bytes; done *= 2)
		memcpy((char *) out + done, out, done < bytes - done ? done : bytes - done);
}

static choir_status run_broadcast(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	const size_t size = chi_dtype_size(x->dtype);
	chi_broadcast_iterator it;
	chi_broadcast_iterator_init(&it, &call->out->shape, 1, x);
	const int64_t run = chi_broadcast_iterator_run(&it);
	for (int64_t at = 0; !it.done; at += run, chi_broadcast_iterator_next(&it)) {
		void *to = chi_element(call->out, at);
		if (chi_broadcast_iterator_repeats(&it, 0))
			repeat(to, chi_element(x, it.at[0]), size, run);
		else
			memcpy(to, chi_element(x, it.at[0]), (size_t) run * size);
	}
	return CHOIR_OK;
}

// Only for sums of gradients. A repeating operand is expanded in blocks.
static choir_status run_add_half(const choir_kernel_call *call)
{
	enum { BLOCK = 256 };
	const choir_buffer *in = call->in;
	uint16_t same[2][BLOCK];
	chi_broadcast_iterator it;
	chi_broadcast_iterator_init(&it, &call->out->shape, 2, in);
	const int64_t run = chi_broadcast_iterator_run(&it);
	const bool repeats[] = { chi_broadcast_iterator_repeats(&it, 0),
		chi_broadcast_iterator_repeats(&it, 1) };
	for (int64_t at = 0; !it.done; at += run, chi_broadcast_iterator_next(&it)) {
		for (int k = 0; k < 2; k++)
			if (repeats[k])
				repeat(same[k], chi_element(&in[k], it.at[k]), sizeof **same, BLOCK);
		for (int64_t i = 0; i < run; i += BLOCK)
			chi_vector_add(in[0].dtype, chi_element(call->out, at + i),
					repeats[0] ? same[0] : chi_element(&in[0], it.at[0] + i),
					repeats[1] ? same[1] : chi_element(&in[1], it.at[1] + i),
					run - i < BLOCK ? run - i : BLOCK);
	}
	return CHOIR_OK;
}

static choir_status run_fill(const choir_kernel_call *call)
{
	const choir_fill_attributes *attributes = call->attributes;
	uint64_t element = 0;
	chi_narrow(call->out->dtype, &element, &attributes->value, 1);
	repeat(call->out->data, &element, chi_dtype_size(call->out->dtype), chi_elements(call->out));
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "add", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[0] },
	{ "add", CHI_HALF, 0, run_add_half, NULL, NULL, NULL },
	{ "subtract", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[1] },
	{ "multiply", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[2] },
	{ "divide", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[3] },
	{ "maximum", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[4] },
	{ "minimum", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[5] },
	{ "logical_and", 1 << CHOIR_BOOL, 0, run_binary, NULL, NULL, &binary_ops[5] },
	{ "logical_or", 1 << CHOIR_BOOL, 0, run_binary, NULL, NULL, &binary_ops[4] },
	{ "equal", CHI_COMPARABLE, 0, run_comparison, NULL, NULL, &comparisons[0] },
	{ "not_equal", CHI_COMPARABLE, 0, run_comparison, NULL, NULL, &comparisons[1] },
	{ "less", CHI_COMPARABLE, 0, run_comparison, NULL, NULL, &comparisons[2] },
	{ "less_equal", CHI_COMPARABLE, 0, run_comparison, NULL, NULL, &comparisons[3] },
	{ "where", CHI_ALL, 0, run_where, NULL, NULL, NULL },
	{ "pow", CHI_REAL, 0, run_library2, NULL, NULL, &functions2[0] },
	{ "atan2", CHI_REAL, 0, run_library2, NULL, NULL, &functions2[1] },
	{ "maximum_gradient", CHI_REAL, sizeof(choir_maximum_gradient_attributes),
			run_maximum_gradient, NULL, NULL, NULL },
	{ "square", CHI_ARITHMETIC, 0, run_number_unary, NULL, NULL, &number_unary_ops[0] },
	{ "abs", CHI_ARITHMETIC, 0, run_number_unary, NULL, NULL, &number_unary_ops[1] },
	{ "negate", CHI_ARITHMETIC, 0, run_number_unary, NULL, NULL, &number_unary_ops[2] },
	{ "sign", CHI_ARITHMETIC, 0, run_number_unary, NULL, NULL, &number_unary_ops[3] },
	{ "floor", CHI_REAL, 0, run_library, NULL, NULL, &functions[0] },
	{ "ceil", CHI_REAL, 0, run_library, NULL, NULL, &functions[1] },
	{ "round", CHI_REAL, 0, run_library, NULL, NULL, &functions[2] },
	{ "sin", CHI_REAL, 0, run_library, NULL, NULL, &functions[3] },
	{ "cos", CHI_REAL, 0, run_library, NULL, NULL, &functions[4] },
	{ "tan", CHI_REAL, 0, run_library, NULL, NULL, &functions[5] },
	{ "rsqrt", CHI_REAL, 0, run_library, NULL, NULL, &functions[6] },
	{ "log1p", CHI_REAL, 0, run_library, NULL, NULL, &functions[7] },
	{ "expm1", CHI_REAL, 0, run_library, NULL, NULL, &functions[8] },
	{ "erf", CHI_REAL, 0, run_library, NULL, NULL, &functions[9] },
	{ "sqrt", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[1] },
	{ "exp", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[2] },
	{ "log", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[3] },
	{ "relu", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[4] },
	{ "relu", CHI_HALF, 0, run_relu_half, NULL, NULL, NULL },
	{ "tanh", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[5] },
	{ "sigmoid", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[6] },
	{ "gelu_tanh", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[7] },
	{ "gelu", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[8] },
	{ "silu", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[9] },
	{ "softplus", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[10] },
	{ "huber", CHI_REAL, sizeof(choir_huber_attributes), run_huber, NULL, NULL, NULL },
	{ "scale", CHI_REAL, sizeof(choir_scale_attributes), run_scale, NULL, NULL, NULL },
	{ "square_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[0] },
	{ "sqrt_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[1] },
	{ "relu_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[4] },
	{ "relu_gradient", CHI_HALF, 0, run_relu_gradient_half, NULL, NULL, NULL },
	{ "tanh_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[5] },
	{ "sigmoid_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[6] },
	{ "gelu_tanh_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[7] },
	{ "gelu_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[8] },
	{ "silu_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[9] },
	{ "softplus_gradient", CHI_REAL, 0, run_gradient, NULL, NULL, &unary_ops[10] },
	{ "huber_gradient", CHI_REAL, sizeof(choir_huber_attributes), run_huber_gradient, NULL, NULL,
			NULL },
	{ "broadcast", CHI_ALL, 0, run_broadcast, NULL, NULL, NULL },
	{ "fill", CHI_ALL, sizeof(choir_fill_attributes), run_fill, NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_elementwise = { specs, sizeof specs / sizeof specs[0] };
