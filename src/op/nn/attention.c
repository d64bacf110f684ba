// Attention as one operation, of three tensors or of one that packs queries, keys and values.
#include "base/options.h"
#include "op/nn/nn.h"

#include <inttypes.h>
#include <math.h>

static choir_status infer_attention(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	const choir_attention_attributes *a = attributes;
	const choir_shape *q = &in[0]->shape;
	char text[3][CHI_SHAPE_TEXT];
	bool fits = q->rank == 3;

	*dtype = in[0]->dtype;
	*shape = *q;
	for (size_t i = 1; i < n && fits; i++) {
		const choir_shape *s = &in[i]->shape;
		fits = in[i]->dtype == *dtype && s->rank == 3 && s->dim[0] == q->dim[0] &&
				s->dim[1] == in[1]->shape.dim[1] && s->dim[2] == q->dim[2];
	}
	if (n == 1 && (!fits || q->dim[2] % 3 != 0))
		return choir_fail(CHOIR_INVALID, "the input is %s; [n, positions, 3 width] is needed",
				chi_shape_print(q, text[0]));
	if (!fits)
		return choir_fail(CHOIR_INVALID,
				"queries %s, keys %s and values %s do not fit; "
				"[n, positions, width] of one dtype is needed",
				chi_shape_print(q, text[0]), chi_shape_print(&in[1]->shape, text[1]),
				chi_shape_print(&in[2]->shape, text[2]));
	if (n == 1)
		shape->dim[2] /= 3;
	if (shape->dim[2] % a->heads != 0)
		return choir_fail(CHOIR_INVALID, "%" PRId64 " heads do not divide a width of %" PRId64,
				a->heads, shape->dim[2]);
	if (n > 1 && a->causal && in[1]->shape.dim[1] < q->dim[1])
		return choir_fail(CHOIR_INVALID,
				"causal attention of %" PRId64 " queries to %" PRId64 " "
				"keys; no more queries than keys are possible",
				q->dim[1], in[1]->shape.dim[1]);
	return CHOIR_OK;
}

static choir_status attention_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	choir_tensor *in[4];
	choir_shape shape = { 1, { 0 } };

	(void) want;
	for (size_t i = 0; i < node->n; i++) {
		in[i] = node->in[i];
		shape.dim[0] += choir_shape_elements(&in[i]->shape);
	}
	in[node->n] = dy;
	choir_tensor *made = chi_op_kernel(dy->frame, "attention_gradient", node->n + 1, in,
			node->attributes, dy->dtype, node->n == 1 ? &in[0]->shape : &shape);
	int64_t first = 0;
	for (size_t i = 0; i < node->n; i++)
		gradient[i] = node->n == 1 ? made : chi_part(made, &first, node->in[i]->shape);
	return CHOIR_OK;
}

static const chi_op attention_op = {
	.name = "attention",
	.attribute_bytes = sizeof(choir_attention_attributes),
	.infer = infer_attention,
	.backward = attention_backward,
};

static choir_tensor *call(size_t n, choir_tensor *const in[], const choir_attention_options *o)
{
	choir_attention_options all;

	for (size_t i = 0; i < n; i++)
		if (!in[i])
			return chi_frame_null_argument(choir_tensor_frame(in[0]), "attention");
	choir_frame *f = in[0]->frame;
	if (chi_options_take("attention: the options'", &all, sizeof all, o) != CHOIR_OK) {
		chi_frame_record_error(f);
		return NULL;
	}
	choir_attention_attributes a = {
		.heads = all.heads ? all.heads : 1, .causal = all.causal == CHOIR_ON, .scale = all.scale
	};
	if (a.heads < 1 || (unsigned) all.causal > CHOIR_OFF || !isfinite(a.scale))
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"attention: %" PRId64 " heads, causal %d or scale %g is invalid; "
				"1 head or more, a toggle and a finite number are needed",
				a.heads, (int) all.causal, a.scale);
	const choir_shape *q = &in[0]->shape;
	if (a.scale == 0 && q->rank == 3)
		a.scale = 1 / sqrt((double) (q->dim[2] / (n == 1 ? 3 : 1) / a.heads));
	return chi_op_call(&attention_op, f, n, in, &a);
}

choir_tensor *choir_attention(
		choir_tensor *q, choir_tensor *k, choir_tensor *v, const choir_attention_options *o)
{
	choir_tensor *const in[] = { q, k, v };
	return call(3, in, o);
}

choir_tensor *choir_self_attention(choir_tensor *qkv, const choir_attention_options *o)
{
	return call(1, &qkv, o);
}
