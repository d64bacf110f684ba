// Elementwise kernels, their gradients, and fill: a loop for each run of a shape.
#include "op/plain/broadcast_iterator.h"
#include "op/plain/cast_kernel.h"
#include "op/vector.h"

#include <string.h>

// A spec's user points to one of these.
static const chi_binary binary_ops[] = { CHI_ADD, CHI_SUBTRACT, CHI_MULTIPLY, CHI_DIVIDE,
	CHI_MAXIMUM };
static const chi_unary unary_ops[] = { CHI_SQUARE, CHI_SQRT, CHI_EXP, CHI_LOG, CHI_RELU, CHI_TANH,
	CHI_SIGMOID, CHI_GELU_TANH, CHI_GELU, CHI_SILU, CHI_SOFTPLUS };

static choir_status run_binary(const choir_kernel_call *call)
{
	const chi_binary op = *(const chi_binary *) call->user;
	const choir_buffer *a = &call->in[0], *b = &call->in[1];
	const chi_number_loops *loops = chi_loops_best()->number[a->dtype];
	chi_broadcast_iterator it;
	chi_broadcast_iterator_init(&it, &call->out->shape, 2, call->in);
	const int64_t run = chi_broadcast_iterator_run(&it);
	const bool a_repeats = chi_broadcast_iterator_repeats(&it, 0),
			   b_repeats = chi_broadcast_iterator_repeats(&it, 1);
	for (int64_t at = 0; !it.done; at += run, chi_broadcast_iterator_next(&it))
		loops->binary(op, chi_element(call->out, at), chi_element(a, it.at[0]),
				chi_element(b, it.at[1]), run, a_repeats, b_repeats);
	return CHOIR_OK;
}

static choir_status run_square(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	chi_loops_best()->number[x->dtype]->square(call->out->data, x->data, chi_elements(x));
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

// f16 and bf16 are added only to sum gradients. A repeating operand is expanded in chunks.
static choir_status run_add_half(const choir_kernel_call *call)
{
	enum { CHUNK = 256 };
	const choir_buffer *in = call->in;
	uint16_t same[2][CHUNK];
	chi_broadcast_iterator it;
	chi_broadcast_iterator_init(&it, &call->out->shape, 2, in);
	const int64_t run = chi_broadcast_iterator_run(&it);
	const bool repeats[] = { chi_broadcast_iterator_repeats(&it, 0),
		chi_broadcast_iterator_repeats(&it, 1) };
	for (int64_t at = 0; !it.done; at += run, chi_broadcast_iterator_next(&it)) {
		for (int k = 0; k < 2; k++)
			if (repeats[k])
				repeat(same[k], chi_element(&in[k], it.at[k]), sizeof **same, CHUNK);
		for (int64_t i = 0; i < run; i += CHUNK)
			chi_vector_add(in[0].dtype, chi_element(call->out, at + i),
					repeats[0] ? same[0] : chi_element(&in[0], it.at[0] + i),
					repeats[1] ? same[1] : chi_element(&in[1], it.at[1] + i),
					run - i < CHUNK ? run - i : CHUNK);
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
	{ "add", 1 << CHOIR_F16 | 1 << CHOIR_BF16, 0, run_add_half, NULL, NULL, NULL },
	{ "subtract", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[1] },
	{ "multiply", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[2] },
	{ "divide", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[3] },
	{ "maximum", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[4] },
	{ "maximum_gradient", CHI_REAL, sizeof(choir_maximum_gradient_attributes),
			run_maximum_gradient, NULL, NULL, NULL },
	{ "square", CHI_ARITHMETIC, 0, run_square, NULL, NULL, NULL },
	{ "sqrt", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[1] },
	{ "exp", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[2] },
	{ "log", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[3] },
	{ "relu", CHI_REAL, 0, run_unary, NULL, NULL, &unary_ops[4] },
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
