// Attention by examples and heads, which attention.inc works on.
#ifdef CHI_HAS_X86_KERNELS
#include "op/fma/fma.h"
#include "op/op.h"

// n: how many of the inputs are queries, keys and values; 1: they lie behind each other.
static chi_fma_head head_of(const choir_kernel_call *call, size_t n)
{
	const choir_attention_attributes *a = call->attributes;
	const choir_shape *q = &call->in[0].shape, *k = &call->in[n == 1 ? 0 : 1].shape;
	const int64_t width = n == 1 ? q->dim[2] / 3 : q->dim[2];
	return (chi_fma_head){
		.queries = q->dim[1],
		.keys = k->dim[1],
		.width = width / a->heads,
		.q_row = q->dim[2],
		.kv_row = k->dim[2],
		.y_row = width,
		.causal = a->causal,
		.scale = (float) a->scale,
		.scratch = call->scratch,
	};
}

static size_t scratch_of(const choir_kernel_call *call, size_t n)
{
	const chi_fma_head h = head_of(call, n);
	const int64_t keys = chi_fma_round(h.keys, CHI_FMA_TALL);
	const int64_t wide = chi_fma_round(h.width, CHI_FMA_GROUP);
	const int64_t elements = 4 * keys * wide + 5 * CHI_FMA_GROUP * wide + 2 * keys * CHI_FMA_GROUP;
	return (size_t) elements * sizeof(float);
}

size_t chi_fma_attention_scratch(const choir_kernel_call *call)
{
	return scratch_of(call, call->n);
}

size_t chi_fma_attention_gradient_scratch(const choir_kernel_call *call)
{
	return scratch_of(call, call->n - 1);
}

static const float *input(const choir_kernel_call *call, size_t i)
{
	return call->in[i].data;
}

choir_status chi_fma_attention(const choir_kernel_call *call)
{
	const choir_attention_attributes *a = call->attributes;
	const size_t n = call->n;
	chi_fma_head h = head_of(call, n);
	const float *q = input(call, 0), *k = n == 1 ? q + h.y_row : input(call, 1);
	const float *v = n == 1 ? k + h.y_row : input(call, 2);
	float *y = call->out->data;
	for (int64_t i = 0; i < call->in[0].shape.dim[0]; i++)
		for (int64_t index = 0; index < a->heads; index++) {
			const int64_t column = index * h.width, kv = i * h.keys * h.kv_row + column;
			h.q = q + i * h.queries * h.q_row + column;
			h.k = k + kv;
			h.v = v + kv;
			h.y = y + i * h.queries * h.y_row + column;
			chi_fma_best()->attention(&h);
		}
	return CHOIR_OK;
}

// out is laid out as the packed input, or is the gradients of q, k and v behind each other.
choir_status chi_fma_attention_gradient(const choir_kernel_call *call)
{
	const choir_attention_attributes *a = call->attributes;
	const size_t n = call->n - 1;
	chi_fma_head h = head_of(call, n);
	const int64_t examples = call->in[0].shape.dim[0];
	const float *q = input(call, 0), *k = n == 1 ? q + h.y_row : input(call, 1);
	const float *v = n == 1 ? k + h.y_row : input(call, 2), *dy = input(call, n);
	float *dq = call->out->data;
	float *dk = dq + (n == 1 ? h.y_row : examples * h.queries * h.q_row);
	float *dv = dk + (n == 1 ? h.y_row : examples * h.keys * h.kv_row);
	for (int64_t i = 0; i < examples; i++)
		for (int64_t index = 0; index < a->heads; index++) {
			const int64_t column = index * h.width, kv = i * h.keys * h.kv_row + column;
			const int64_t at = i * h.queries * h.q_row + column;
			h.q = q + at;
			h.k = k + kv;
			h.v = v + kv;
			h.dy = dy + i * h.queries * h.y_row + column;
			h.dq = dq + at;
			h.dk = dk + kv;
			h.dv = dv + kv;
			chi_fma_best()->attention_gradient(&h);
		}
	return CHOIR_OK;
}

#else
typedef int chi_no_fma_attention; // a C file must not be empty
#endif
