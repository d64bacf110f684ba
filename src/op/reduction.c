// Kernels get axes without negative numbers.
#include "op/op.h"

// False: no such axis.
static bool resolve(choir_axes axes, int rank, uint32_t *out, int *axis)
{
	const uint32_t bits = axes.bits == ~0u ? (1u << rank) - 1 : axes.bits;
	*out = 0;
	for (int bit = 0; bit < 32; bit++) {
		if (!(bits >> bit & 1))
			continue;
		const int i = bit < 16 ? bit : bit - 32 + rank;
		if (i < 0 || i >= rank) {
			*axis = bit < 16 ? bit : bit - 32;
			return false;
		}
		*out |= (uint32_t) 1 << i;
	}
	return true;
}

static choir_status infer_sum(chi_result *r)
{
	const choir_sum_attributes *sum = r->attributes;

	r->shape.rank = 0;
	for (int i = 0; i < r->in[0]->shape.rank; i++)
		if (!(sum->axes >> i & 1))
			r->shape.dim[r->shape.rank++] = r->in[0]->shape.dim[i];
	return CHOIR_OK;
}

static choir_status infer_total(chi_result *r)
{
	const choir_status status = infer_sum(r);

	r->dtype = chi_dtype_wide(r->dtype);
	return status;
}

static choir_shape kept_shape(const choir_shape *shape, uint32_t axes)
{
	choir_shape kept = *shape;
	for (int i = 0; i < kept.rank; i++)
		if (axes >> i & 1)
			kept.dim[i] = 1;
	return kept;
}

static choir_status sum_backward(const chi_node *node, const chi_backward *g)
{
	const choir_sum_attributes *sum = node->attributes;
	const choir_shape kept = kept_shape(&node->in[0]->shape, sum->axes);

	g->gradient[0] = chi_broadcast_to(choir_reshape(g->dy, kept), &node->in[0]->shape);
	return CHOIR_OK;
}

static const chi_op sum_op = {
	.name = "sum",
	.attribute_bytes = sizeof(choir_sum_attributes),
	.infer = infer_total,
	.backward = sum_backward,
};

static choir_tensor *sum_axes(choir_tensor *x, uint32_t axes)
{
	const choir_sum_attributes attributes = { axes };
	return axes ? chi_op_call(&sum_op, NULL, 1, &x, &attributes) : x;
}

// False: recorded in x's frame, if any.
static bool axes_of(const char *name, choir_tensor *x, choir_axes axes, uint32_t *resolved)
{
	int axis = 0;

	if (!x)
		chi_frame_null_argument(NULL, name);
	else if (!resolve(axes, x->shape.rank, resolved, &axis))
		(void) chi_axis_of(name, x, axis);
	else
		return true;
	return false;
}

choir_tensor *choir_sum(choir_tensor *x, choir_axes axes)
{
	uint32_t resolved;
	return axes_of("sum", x, axes, &resolved) ? sum_axes(x, resolved) : NULL;
}

// i32 and i64 are divided in f64, other integers in f32.
choir_tensor *choir_mean(choir_tensor *x, choir_axes axes)
{
	uint32_t resolved;
	double count = 1;

	if (!axes_of("mean", x, axes, &resolved))
		return NULL;
	for (int i = 0; i < x->shape.rank; i++)
		if (resolved >> i & 1)
			count *= (double) x->shape.dim[i];
	if (x->dtype == CHOIR_I32 || x->dtype == CHOIR_I64)
		x = choir_cast(x, CHOIR_F64);
	else if (!chi_dtype_is_float(x->dtype))
		x = choir_cast(x, CHOIR_F32);
	if (!resolved || (x = sum_axes(x, resolved)) == NULL)
		return x;
	return choir_divide(x, choir_number(x->frame, count));
}

// Divided among equal elements, as TensorFlow does.
static choir_status extreme_backward(const chi_node *node, const chi_backward *g)
{
	const choir_sum_attributes *a = node->attributes;
	choir_tensor *x = node->in[0];
	const choir_shape kept = kept_shape(&x->shape, a->axes);
	choir_tensor *hits = choir_cast(choir_equal(x, choir_reshape(node->out, kept)), x->dtype);
	choir_tensor *share = choir_divide(choir_reshape(g->dy, kept),
			hits ? choir_reshape(sum_axes(hits, a->axes), kept) : NULL);

	g->gradient[0] = choir_multiply(hits, share);
	return CHOIR_OK;
}

static const chi_op extreme_ops[] = {
	{ .name = "max",
			.attribute_bytes = sizeof(choir_sum_attributes),
			.infer = infer_sum,
			.backward = extreme_backward },
	{ .name = "min",
			.attribute_bytes = sizeof(choir_sum_attributes),
			.infer = infer_sum,
			.backward = extreme_backward },
};

static choir_tensor *fail_empty(choir_tensor *x, const char *name)
{
	char text[CHI_SHAPE_TEXT];
	return chi_frame_fail_null(x->frame, CHOIR_INVALID,
			"%s: %s has no element along the axes; one or more are needed", name,
			chi_shape_print(&x->shape, text));
}

static choir_tensor *extreme(const chi_op *op, choir_tensor *x, choir_axes axes)
{
	choir_sum_attributes a;

	if (!axes_of(op->name, x, axes, &a.axes))
		return NULL;
	for (int i = 0; i < x->shape.rank; i++)
		if ((a.axes >> i & 1) && x->shape.dim[i] == 0)
			return fail_empty(x, op->name);
	return a.axes ? chi_op_call(op, NULL, 1, &x, &a) : x;
}

choir_tensor *choir_max(choir_tensor *x, choir_axes axes)
{
	return extreme(&extreme_ops[0], x, axes);
}

choir_tensor *choir_min(choir_tensor *x, choir_axes axes)
{
	return extreme(&extreme_ops[1], x, axes);
}

static choir_tensor *reduced_first(choir_tensor *x, uint32_t axes, choir_shape *kept)
{
	int order[CHOIR_MAX_RANK], n = 0;
	int64_t reduced = 1;

	*kept = (choir_shape){ 0, { 0 } };
	for (int i = 0; i < x->shape.rank; i++)
		if (axes >> i & 1) {
			order[n++] = i;
			reduced *= x->shape.dim[i];
		}
	for (int i = 0; i < x->shape.rank; i++)
		if (!(axes >> i & 1)) {
			order[n++] = i;
			kept->dim[kept->rank++] = x->shape.dim[i];
		}
	choir_tensor *moved = choir_transpose(x, order);
	return moved ? choir_reshape(moved, CHOIR_SHAPE(reduced, choir_shape_elements(kept))) : NULL;
}

// Halves are multiplied: the gradient is right where elements are 0.
choir_tensor *choir_prod(choir_tensor *x, choir_axes axes)
{
	uint32_t resolved;
	choir_shape kept;

	if (!axes_of("prod", x, axes, &resolved))
		return NULL;
	if (!resolved)
		return x;
	choir_tensor *rows = reduced_first(x, resolved, &kept);
	if (rows && rows->shape.dim[0] == 0)
		return choir_fill(x->frame, x->dtype, kept, 1);
	while (rows && rows->shape.dim[0] > 1) {
		const int64_t n = rows->shape.dim[0], half = n / 2;
		choir_tensor *both =
				choir_multiply(choir_slice(rows, 0, 0, half), choir_slice(rows, 0, half, half));
		choir_tensor *const parts[] = { both, n % 2 ? choir_slice(rows, 0, n - 1, 1) : NULL };
		rows = n % 2 && both ? choir_concat(2, parts, 0) : both;
	}
	return rows ? choir_reshape(rows, kept) : NULL;
}

choir_tensor *chi_sum_to(choir_tensor *x, const choir_shape *shape)
{
	uint32_t axes = 0;

	if (!x || chi_shape_equal(&x->shape, shape))
		return x;
	const int lead = x->shape.rank - shape->rank;
	for (int i = 0; i < x->shape.rank; i++)
		if (i < lead || shape->dim[i - lead] != x->shape.dim[i])
			axes |= (uint32_t) 1 << i;
	choir_tensor *sum = sum_axes(x, axes);
	return sum ? choir_reshape(sum, *shape) : NULL; // restores axes of length 1
}
