// Products of matrices, and biases. A transpose is a flag, so gradients are products, too.
#include "base/size.h"
#include "op/nn/nn.h"
#include "op/precision/precision.h"

typedef struct {
	choir_matmul_attributes kernel; // first: kernels see this
	bool wide;
} matmul;

static bool has_leading(const choir_shape *a, const choir_shape *b)
{
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank - 2; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

static choir_status infer_matmul(chi_result *r)
{
	const matmul *mm = r->attributes;
	const choir_shape *a = &r->in[0]->shape, *b = &r->in[1]->shape;
	const int swap_a = mm->kernel.transposed == CHOIR_TRANSPOSED_A;
	const int swap_b = mm->kernel.transposed == CHOIR_TRANSPOSED_B;
	char text[2][CHI_SHAPE_TEXT];

	r->dtype = mm->wide ? chi_dtype_wide(r->in[0]->dtype) : r->in[0]->dtype;
	if (r->in[0]->dtype != r->in[1]->dtype)
		return choir_fail(CHOIR_INVALID, "the dtypes are %s and %s; cast one of them",
				choir_dtype_name(r->in[0]->dtype), choir_dtype_name(r->in[1]->dtype));
	const bool fits = a->rank >= 2 && b->rank >= 2 && (b->rank == 2 || has_leading(a, b)) &&
			a->dim[a->rank - 1 - swap_a] == b->dim[b->rank - 2 + swap_b];
	if (!fits)
		return choir_fail(CHOIR_INVALID, "%s%s times %s%s does not fit",
				chi_shape_print(a, text[0]), swap_a ? " transposed" : "",
				chi_shape_print(b, text[1]), swap_b ? " transposed" : "");
	r->shape.dim[a->rank - 2] = a->dim[a->rank - 2 + swap_a];
	r->shape.dim[a->rank - 1] = b->dim[b->rank - 1 - swap_b];
	return CHOIR_OK;
}

static choir_tensor *rows_of_matrix(choir_tensor *x)
{
	if (!x || x->shape.rank == 2)
		return x;
	choir_shape shape = { 2, { 1, x->shape.dim[x->shape.rank - 1] } };
	for (int i = 0; i < x->shape.rank - 1; i++)
		if (!chi_int64_multiply(shape.dim[0], x->shape.dim[i], &shape.dim[0]))
			return chi_frame_fail_null(x->frame, CHOIR_INVALID, "matmul: too many rows");
	return choir_reshape(x, shape);
}

static choir_tensor *multiply(choir_tensor *a, choir_tensor *b, choir_transposed which, bool wide);

static choir_tensor *left(const chi_node *node, choir_transposed which, choir_tensor *dy)
{
	choir_tensor *b = node->in[1];
	choir_shape shape = node->in[0]->shape;
	const bool wide = chi_precision_takes_wide(node->in[0]);

	if (which == CHOIR_TRANSPOSED_NONE)
		return multiply(dy, b, CHOIR_TRANSPOSED_B, wide);
	if (which == CHOIR_TRANSPOSED_B)
		return multiply(dy, b, CHOIR_TRANSPOSED_NONE, wide);
	if (b->shape.rank != shape.rank) {
		shape.dim[shape.rank - 2] = b->shape.dim[0];
		shape.dim[shape.rank - 1] = b->shape.dim[1];
		b = chi_broadcast_to(b, &shape);
	}
	return multiply(b, dy, CHOIR_TRANSPOSED_B, wide);
}

// A shared b's gradient is one product of all rows, unless a is transposed.
static choir_tensor *right(const chi_node *node, choir_transposed which, choir_tensor *dy)
{
	choir_tensor *a = node->in[0];
	const bool shared = node->in[1]->shape.rank != a->shape.rank;
	const bool wide = chi_precision_takes_wide(node->in[1]);

	if (which == CHOIR_TRANSPOSED_A)
		return chi_sum_to(multiply(a, dy, CHOIR_TRANSPOSED_NONE, wide), &node->in[1]->shape);
	if (shared) {
		a = rows_of_matrix(a);
		dy = rows_of_matrix(dy);
	}
	if (which == CHOIR_TRANSPOSED_B)
		return multiply(dy, a, CHOIR_TRANSPOSED_A, wide);
	return multiply(a, dy, CHOIR_TRANSPOSED_A, wide);
}

static choir_status matmul_backward(const chi_node *node, const chi_backward *g)
{
	const choir_transposed which = ((const matmul *) node->attributes)->kernel.transposed;

	if (g->want[0])
		g->gradient[0] = left(node, which, g->dy);
	if (g->want[1])
		g->gradient[1] = right(node, which, g->dy);
	return CHOIR_OK;
}

static const chi_op matmul_op = {
	.name = "matmul",
	.attribute_bytes = sizeof(matmul),
	.infer = infer_matmul,
	.backward = matmul_backward,
};

static choir_tensor *multiply(choir_tensor *a, choir_tensor *b, choir_transposed which, bool wide)
{
	const matmul attributes = { { which }, wide };
	choir_tensor *const in[] = { a, b };

	return chi_op_call(&matmul_op, NULL, 2, in, &attributes);
}

// Whether the leading axes of both broadcast, to axes that one of them lacks.
static bool widens(const choir_shape *a, const choir_shape *b, choir_shape *leading)
{
	choir_shape first = *a, second = *b;
	if (a->rank < 2 || b->rank < 3 || has_leading(a, b))
		return false;
	first.rank -= 2;
	second.rank -= 2;
	return chi_broadcast_shapes(&first, &second, leading) == CHOIR_OK;
}

static choir_tensor *with_leading(choir_tensor *x, choir_shape shape)
{
	shape.rank += 2;
	for (int i = 1; i <= 2; i++)
		shape.dim[shape.rank - i] = x->shape.dim[x->shape.rank - i];
	return chi_broadcast_to(x, &shape);
}

choir_tensor *choir_matmul(choir_tensor *a, choir_tensor *b, choir_transposed which)
{
	choir_shape leading;
	if (a && (which < CHOIR_TRANSPOSED_NONE || which > CHOIR_TRANSPOSED_B))
		return chi_frame_fail_null(
				a->frame, CHOIR_INVALID, "matmul: transposed %d is unknown", (int) which);
	if (a && b && widens(&a->shape, &b->shape, &leading))
		return multiply(with_leading(a, leading), with_leading(b, leading), which, false);
	return multiply(a, b, which, false);
}

static choir_status check_bias(const choir_tensor *x, int64_t channels, const choir_tensor *bias)
{
	char text[CHI_SHAPE_TEXT];

	if (bias->dtype != x->dtype && bias->dtype != chi_dtype_wide(x->dtype))
		return choir_fail(CHOIR_INVALID, "the bias is %s, the other inputs are %s",
				choir_dtype_name(bias->dtype), choir_dtype_name(x->dtype));
	if (bias->shape.rank != 1 || bias->shape.dim[0] != channels)
		return choir_fail(CHOIR_INVALID, "the bias is %s; [%lld] is needed",
				chi_shape_print(&bias->shape, text), (long long) channels);
	return CHOIR_OK;
}

static choir_status infer_bias_add(chi_result *r)
{
	const choir_shape *x = &r->in[0]->shape;

	if (x->rank < 1)
		return choir_fail(CHOIR_INVALID, "a scalar has no channels");
	return check_bias(r->in[0], x->dim[x->rank - 1], r->in[1]);
}

static choir_status bias_add_backward(const chi_node *node, const chi_backward *g)
{
	if (g->want[0])
		g->gradient[0] = g->dy;
	if (g->want[1])
		g->gradient[1] = chi_sum_to(g->dy, &node->in[1]->shape);
	return CHOIR_OK;
}

static const chi_op bias_add_op = {
	.name = "add",
	.label = "bias_add",
	.infer = infer_bias_add,
	.backward = bias_add_backward,
};

choir_tensor *choir_bias_add(choir_tensor *x, choir_tensor *bias)
{
	choir_tensor *const in[] = { x, bias };
	return chi_op_call(&bias_add_op, NULL, 2, in, NULL);
}

static choir_status infer_dense(chi_result *r)
{
	const choir_shape *x = &r->in[0]->shape, *w = &r->in[1]->shape;
	char text[2][CHI_SHAPE_TEXT];

	if (r->in[0]->dtype != r->in[1]->dtype)
		return choir_fail(CHOIR_INVALID, "the dtypes are %s and %s; cast one of them",
				choir_dtype_name(r->in[0]->dtype), choir_dtype_name(r->in[1]->dtype));
	if (x->rank < 2 || w->rank != 2 || x->dim[x->rank - 1] != w->dim[0] || w->dim[0] == 0)
		return choir_fail(CHOIR_INVALID, "%s times %s does not fit", chi_shape_print(x, text[0]),
				chi_shape_print(w, text[1]));
	r->shape.dim[x->rank - 1] = w->dim[1];
	return check_bias(r->in[0], w->dim[1], r->in[2]);
}

static choir_status dense_backward(const chi_node *node, const chi_backward *g)
{
	const choir_dense_attributes *dense = node->attributes;
	choir_tensor *dz = chi_activation_gradient(dense->activation, node->out, g->dy);

	if (g->want[0])
		g->gradient[0] = multiply(
				dz, node->in[1], CHOIR_TRANSPOSED_B, chi_precision_takes_wide(node->in[0]));
	if (g->want[1])
		g->gradient[1] = multiply(rows_of_matrix(node->in[0]), rows_of_matrix(dz),
				CHOIR_TRANSPOSED_A, chi_precision_takes_wide(node->in[1]));
	if (g->want[2])
		g->gradient[2] = chi_sum_to(dz, &node->in[2]->shape);
	return CHOIR_OK;
}

static const chi_op dense_op = {
	.name = "dense",
	.attribute_bytes = sizeof(choir_dense_attributes),
	.infer = infer_dense,
	.backward = dense_backward,
};

choir_tensor *chi_dense(
		choir_tensor *x, choir_tensor *w, choir_tensor *bias, choir_activation activation)
{
	const choir_dense_attributes attributes = { chi_activation_fused(activation) };
	choir_tensor *const in[] = { x, w, bias };
	choir_tensor *y = chi_op_call(&dense_op, NULL, 3, in, &attributes);
	return attributes.activation == activation ? y : chi_activation_apply(activation, y);
}
