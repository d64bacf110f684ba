// Attention of three tensors, or of one that packs queries, keys and values.
#include "base/options.h"
#include "op/nn/nn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static choir_status infer_attention(chi_result *r)
{
	const choir_attention_attributes *a = r->attributes;
	const choir_shape *q = &r->in[0]->shape;
	char text[3][CHI_SHAPE_TEXT];
	bool fits = q->rank == 3;

	for (size_t i = 1; i < r->n && fits; i++) {
		const choir_shape *s = &r->in[i]->shape;
		fits = r->in[i]->dtype == r->dtype && s->rank == 3 && s->dim[0] == q->dim[0] &&
				s->dim[1] == r->in[1]->shape.dim[1] && s->dim[2] == q->dim[2];
	}
	if (r->n == 1 && (!fits || q->dim[2] % 3 != 0))
		return choir_fail(CHOIR_INVALID, "the input is %s; [n, positions, 3 width] is needed",
				chi_shape_print(q, text[0]));
	if (!fits)
		return choir_fail(CHOIR_INVALID,
				"queries %s, keys %s and values %s do not fit; "
				"[n, positions, width] of one dtype is needed",
				chi_shape_print(q, text[0]), chi_shape_print(&r->in[1]->shape, text[1]),
				chi_shape_print(&r->in[2]->shape, text[2]));
	if (r->n == 1)
		r->shape.dim[2] /= 3;
	if (r->shape.dim[2] % a->heads != 0)
		return choir_fail(CHOIR_INVALID, "%" PRId64 " heads do not divide a width of %" PRId64,
				a->heads, r->shape.dim[2]);
	if (r->n > 1 && a->causal && r->in[1]->shape.dim[1] < q->dim[1])
		return choir_fail(CHOIR_INVALID,
				"causal attention of %" PRId64 " queries to %" PRId64 " "
				"keys; no more queries than keys are possible",
				q->dim[1], r->in[1]->shape.dim[1]);
	return CHOIR_OK;
}

static choir_status attention_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *in[4];
	choir_shape shape = { 1, { 0 } };

	for (size_t i = 0; i < node->n; i++) {
		in[i] = node->in[i];
		shape.dim[0] += choir_shape_elements(&in[i]->shape);
	}
	in[node->n] = g->dy;
	choir_tensor *made = chi_op_kernel(g->dy->frame, "attention_gradient", node->n + 1, in,
			node->attributes, g->dy->dtype, node->n == 1 ? &in[0]->shape : &shape);
	int64_t first = 0;
	for (size_t i = 0; i < node->n; i++)
		g->gradient[i] = node->n == 1 ? made : chi_part(made, &first, node->in[i]->shape);
	return CHOIR_OK;
}

// [n, heads, positions, width / heads].
static choir_tensor *by_heads(choir_tensor *x, int64_t heads)
{
	static const int swap[] = { 0, 2, 1, 3 };
	if (!x)
		return NULL;
	const int64_t *dim = x->shape.dim;
	choir_tensor *split = choir_reshape(x, CHOIR_SHAPE(dim[0], dim[1], heads, dim[2] / heads));
	return split ? choir_transpose(split, swap) : NULL;
}

// Later keys score -infinity.
static choir_tensor *causal(choir_tensor *scores)
{
	if (!scores)
		return NULL;
	choir_frame *f = scores->frame;
	const int64_t t = scores->shape.dim[2], s = scores->shape.dim[3];
	choir_tensor *query = chi_count_up(f, t), *key = chi_count_up(f, s);
	query = query
			? choir_add(choir_reshape(query, CHOIR_SHAPE(t, 1)), choir_number(f, (double) (s - t)))
			: NULL;
	return choir_where(choir_less_equal(key, query), scores, choir_number(f, -INFINITY));
}

// By operations, with a mask and dropout.
typedef struct {
	choir_attention_attributes kernel;
	choir_tensor *mask;
	double dropout;
	uint64_t seed;
} composed;

// Hidden keys score so low that they weigh 0 beside any other.
static choir_tensor *masked(choir_tensor *scores, choir_tensor *mask)
{
	const double hidden = -1e30;
	choir_shape shape;
	char text[2][CHI_SHAPE_TEXT];

	if (!scores)
		return NULL;
	choir_frame *f = scores->frame;
	if (!chi_op_operands("attention: the mask", f, 1, &mask))
		return NULL;
	if ((mask->dtype != CHOIR_BOOL && mask->dtype != scores->dtype) ||
			chi_broadcast_shapes(&mask->shape, &scores->shape, &shape) != CHOIR_OK ||
			!chi_shape_equal(&shape, &scores->shape))
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"attention: the mask is %s %s; bool or %s, and a shape that broadcasts to %s, are "
				"needed",
				choir_dtype_name(mask->dtype), chi_shape_print(&mask->shape, text[0]),
				choir_dtype_name(scores->dtype), chi_shape_print(&scores->shape, text[1]));
	return mask->dtype == CHOIR_BOOL ? choir_where(mask, scores, choir_number(f, hidden))
									 : choir_add(scores, mask);
}

static choir_tensor *compose(size_t n, choir_tensor *const given[], const composed *c)
{
	static const int swap[] = { 0, 2, 1, 3 };
	const int64_t heads = c->kernel.heads;
	choir_tensor *in[3] = { given[0], NULL, NULL };

	if (n == 3)
		memcpy(in, given, sizeof in);
	else if (choir_split(given[0], 2, 3, in) != CHOIR_OK)
		return NULL;
	choir_tensor *scores = choir_scale(
			choir_matmul(by_heads(in[0], heads), by_heads(in[1], heads), CHOIR_TRANSPOSED_B),
			c->kernel.scale);
	// f16 has no -1e30
	scores = scores ? choir_cast(scores, chi_dtype_wide(scores->dtype)) : NULL;
	scores = c->kernel.causal ? causal(scores) : scores;
	scores = c->mask ? masked(scores, c->mask) : scores;
	choir_tensor *weights = scores ? choir_softmax(scores) : NULL;
	weights = weights && c->dropout != 0 ? choir_dropout(weights, c->dropout, c->seed) : weights;
	choir_tensor *y = choir_matmul(weights, by_heads(in[2], heads), CHOIR_TRANSPOSED_NONE);
	y = y ? choir_transpose(y, swap) : NULL;
	return y ? choir_reshape(y, in[0]->shape) : NULL;
}

static choir_tensor *attention_formula(const chi_node *node)
{
	const composed c = { .kernel = *(const choir_attention_attributes *) node->attributes };
	return compose(node->n, node->in, &c);
}

static const chi_op attention_op = {
	.name = "attention",
	.attribute_bytes = sizeof(choir_attention_attributes),
	.infer = infer_attention,
	.backward = attention_backward,
	.formula = attention_formula,
};

static choir_tensor *call(size_t n, choir_tensor *const in[], const choir_attention_options *o)
{
	choir_attention_options all;

	for (size_t i = 0; i < n; i++)
		if (!in[i])
			return chi_frame_null_argument(choir_tensor_frame(in[0]), "attention");
	choir_frame *f = in[0]->frame;
	if (chi_options_take("attention: the options'", &all, sizeof all, o) != CHOIR_OK)
		return chi_frame_record_null(f);
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
	if (!all.mask && all.dropout == 0)
		return chi_op_call(&attention_op, f, n, in, &a);
	const composed c = { a, all.mask, all.dropout, all.seed };
	if (!chi_op_operands("attention", f, n, in))
		return NULL;
	chi_result result = { n, in, &a, in[0]->dtype, in[0]->shape };
	return infer_attention(&result) == CHOIR_OK ? compose(n, in, &c)
												: chi_op_failed(f, "attention");
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
