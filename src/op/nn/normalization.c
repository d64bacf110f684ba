// Means and deviations are kept for the backward pass. A function of the caller may add a batch
// norm's sums of other replicas.
#include "base/lock.h"
#include "base/options.h"
#include "op/nn/nn.h"

static choir_status check_parameters(const char *name, const choir_tensor *x,
		const choir_tensor *scale, const choir_tensor *offset)
{
	const choir_tensor *const all[] = { scale, offset };
	char text[2][CHI_SHAPE_TEXT];

	if (x->shape.rank < 1 || x->shape.dim[x->shape.rank - 1] == 0)
		return choir_fail(CHOIR_INVALID, "%s: the input is %s; [.., channels] is needed", name,
				chi_shape_print(&x->shape, text[0]));
	for (int i = 0; i < 2; i++) {
		const choir_tensor *t = all[i];
		if (!t)
			continue;
		if (t->dtype != x->dtype && t->dtype != chi_dtype_wide(x->dtype))
			return choir_fail(CHOIR_INVALID, "%s: the dtypes are %s and %s; cast one of them",
					name, choir_dtype_name(x->dtype), choir_dtype_name(t->dtype));
		if (t->shape.rank != 1 || t->shape.dim[0] != x->shape.dim[x->shape.rank - 1])
			return choir_fail(CHOIR_INVALID, "%s: the %s of %s is %s; [channels] is needed", name,
					i ? "offset" : "scale", chi_shape_print(&x->shape, text[0]),
					chi_shape_print(&t->shape, text[1]));
	}
	return CHOIR_OK;
}

static choir_tensor *part(choir_tensor *flat, int64_t index, int64_t n, choir_dtype dtype)
{
	int64_t first = index * n;
	choir_tensor *t = chi_part(flat, &first, CHOIR_SHAPE(n));
	return !t || t->dtype == dtype
			? t
			: chi_op_kernel(t->frame, "cast", 1, &t, NULL, dtype, &t->shape);
}

static choir_tensor *finish(choir_tensor *y, choir_tensor *made)
{
	if (!y || !y->node)
		chi_tensor_drop(made);
	return y;
}

static choir_status row_norm_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *x = node->in[0], *moments = node->in[node->n - 1];
	choir_tensor *const for_x[] = { x, node->in[1], moments, g->dy };
	choir_tensor *const for_rest[] = { x, moments, g->dy };
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	const bool offset = node->n > 3;

	if (g->want[0])
		g->gradient[0] = chi_op_kernel(g->dy->frame, "row_norm_gradient", 4, for_x,
				node->attributes, x->dtype, &x->shape);
	if (!g->want[1] && !(offset && g->want[2]))
		return CHOIR_OK;
	const choir_dtype dtype = node->in[1]->dtype;
	choir_tensor *sums = chi_op_kernel(
			g->dy->frame, "row_norm_sums", 3, for_rest, NULL, dtype, &CHOIR_SHAPE(2 * n));
	if (g->want[1])
		g->gradient[1] = part(sums, 0, n, dtype);
	if (offset && g->want[2])
		g->gradient[2] = part(sums, 1, n, dtype);
	return CHOIR_OK;
}

static choir_tensor *row_norm(const chi_op *op, choir_tensor *x, choir_tensor *scale,
		choir_tensor *offset, double epsilon)
{
	const choir_norm_attributes attributes = { .epsilon = epsilon, .centered = offset != NULL };

	if (!x || !scale)
		return chi_frame_null_argument(choir_tensor_frame(x ? x : scale), op->label);
	if (!(epsilon >= 0))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"%s: epsilon is %g; 0 or more is needed", op->label, epsilon);
	if (check_parameters(op->label, x, scale, offset) != CHOIR_OK)
		return chi_frame_record_null(x->frame);
	choir_shape shape = x->shape;
	shape.dim[shape.rank - 1] = 2;
	choir_tensor *moments = chi_op_kernel(
			x->frame, "row_moments", 1, &x, &attributes, chi_dtype_wide(x->dtype), &shape);
	choir_tensor *in[] = { x, scale, offset, moments };
	if (!offset)
		in[2] = moments;
	return finish(chi_op_call(op, x->frame, offset ? 4 : 3, in, &attributes), moments);
}

static choir_tensor *row_means(choir_tensor *x)
{
	return x ? choir_scale(chi_sum_rows(x), 1 / (double) x->shape.dim[x->shape.rank - 1]) : NULL;
}

static choir_tensor *row_norm_formula(const chi_node *node)
{
	const choir_norm_attributes *a = node->attributes;
	choir_tensor *x = node->in[0];
	choir_tensor *away = a->centered ? choir_subtract(x, row_means(x)) : x;
	choir_tensor *factor = choir_rsqrt(
			choir_add(row_means(choir_square(away)), choir_number(x->frame, a->epsilon)));
	choir_tensor *y = choir_multiply(choir_multiply(away, factor), node->in[1]);

	return node->n > 3 ? choir_add(y, node->in[2]) : y;
}

static const chi_op layer_norm_op = {
	.name = "row_norm",
	.label = "layer_norm",
	.attribute_bytes = sizeof(choir_norm_attributes),
	.backward = row_norm_backward,
	.formula = row_norm_formula,
	.private_inputs = 1,
};
static const chi_op rms_norm_op = {
	.name = "row_norm",
	.label = "rms_norm",
	.attribute_bytes = sizeof(choir_norm_attributes),
	.backward = row_norm_backward,
	.formula = row_norm_formula,
	.private_inputs = 1,
};

choir_tensor *choir_layer_norm(
		choir_tensor *x, choir_tensor *scale, choir_tensor *offset, double epsilon)
{
	if (!offset)
		return chi_frame_null_argument(choir_tensor_frame(x), "layer_norm");
	return row_norm(&layer_norm_op, x, scale, offset, epsilon);
}

choir_tensor *choir_rms_norm(choir_tensor *x, choir_tensor *scale, double epsilon)
{
	return row_norm(&rms_norm_op, x, scale, NULL, epsilon);
}

// [n, groups, places, c / groups].
static choir_tensor *swap_groups(choir_tensor *x, choir_shape shape)
{
	static const int order[] = { 0, 2, 1, 3 };
	choir_tensor *split = x ? choir_reshape(x, shape) : NULL;
	return split ? choir_transpose(split, order) : NULL;
}

choir_tensor *choir_group_norm(
		choir_tensor *x, choir_tensor *scale, choir_tensor *offset, int64_t groups, double epsilon)
{
	static const char name[] = "group_norm";
	char text[CHI_SHAPE_TEXT];

	if (!x || !scale || !offset)
		return chi_frame_null_argument(choir_tensor_frame(x ? x : scale), name);
	choir_frame *f = x->frame;
	if (check_parameters(name, x, scale, offset) != CHOIR_OK)
		return chi_frame_record_null(f);
	const choir_shape whole = x->shape;
	const int64_t c = whole.dim[whole.rank - 1], n = whole.dim[0];
	if (whole.rank < 2 || groups < 1 || c % groups != 0 || !(epsilon >= 0))
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"%s: %s in %lld groups with epsilon %g; [n, .., c], groups that divide c, and 0 "
				"or "
				"more are needed",
				name, chi_shape_print(&whole, text), (long long) groups, epsilon);
	if (choir_shape_elements(&whole) == 0) // the tape needs the same variables as with examples
		return choir_add(choir_multiply(x, scale), offset);
	const int64_t part = c / groups, row = choir_shape_elements(&whole) / n / groups;
	const int64_t places = row / part;
	choir_tensor *rows = swap_groups(x, CHOIR_SHAPE(n, places, groups, part));
	rows = rows ? choir_reshape(rows, CHOIR_SHAPE(n * groups, row)) : NULL;
	choir_tensor *y = choir_layer_norm(rows, choir_fill(f, x->dtype, CHOIR_SHAPE(row), 1),
			choir_fill(f, x->dtype, CHOIR_SHAPE(row), 0), epsilon);
	y = swap_groups(y, CHOIR_SHAPE(n, groups, places, part));
	y = y ? choir_reshape(y, whole) : NULL;
	return choir_add(choir_multiply(y, scale), offset);
}

typedef struct {
	choir_norm_attributes kernel;
	choir_all_reduce_fn *sum;
	void *user;
} batch_norm;

static choir_tensor *summed(const batch_norm *b, choir_tensor *t)
{
	chi_mutex_check_none_held();
	return b->sum && t ? b->sum(t, b->user) : t;
}

static choir_status batch_norm_backward(const chi_node *node, const chi_backward *g)
{
	const batch_norm *b = node->attributes;
	choir_tensor *x = node->in[0], *moments = node->in[3];
	choir_tensor *const for_sums[] = { x, moments, g->dy };
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	choir_tensor *sums = chi_op_kernel(g->dy->frame, "channel_norm_sums", 3, for_sums, &b->kernel,
			CHOIR_F64, &CHOIR_SHAPE(2 * n));

	if (g->want[1])
		g->gradient[1] = part(sums, 0, n, node->in[1]->dtype);
	if (g->want[2])
		g->gradient[2] = part(sums, 1, n, node->in[2]->dtype);
	if (!g->want[0])
		return CHOIR_OK;
	choir_tensor *const for_x[] = { x, node->in[1], moments, g->dy, summed(b, sums) };
	g->gradient[0] = chi_op_kernel(
			g->dy->frame, "channel_norm_gradient", 5, for_x, &b->kernel, x->dtype, &x->shape);
	return CHOIR_OK;
}

// In f64, over all axes but the last.
static choir_tensor *channel_sums(choir_tensor *x)
{
	return x ? choir_sum(x, CHOIR_AXES_BITS((1u << (x->shape.rank - 1)) - 1)) : NULL;
}

static choir_tensor *batch_norm_formula(const chi_node *node)
{
	const batch_norm *b = node->attributes;
	choir_tensor *x = node->in[0], *wide = choir_cast(x, CHOIR_F64);
	choir_frame *f = x->frame;
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	const double rows = n ? (double) (choir_shape_elements(&x->shape) / n) : 0;
	choir_tensor *const parts[] = { channel_sums(wide), channel_sums(choir_square(wide)),
		choir_fill(f, CHOIR_F64, CHOIR_SHAPE(1), rows) };
	choir_tensor *sums = parts[0] && parts[1] && parts[2] ? choir_concat(3, parts, 0) : NULL;

	sums = summed(b, sums);
	if (!sums)
		return NULL;
	choir_tensor *means = choir_divide(sums, choir_slice(sums, 0, 2 * n, 1));
	choir_tensor *mean = means ? choir_slice(means, 0, 0, n) : NULL;
	choir_tensor *square = means ? choir_slice(means, 0, n, n) : NULL;
	choir_tensor *variance = choir_subtract(square, choir_square(mean));
	choir_tensor *factor = choir_rsqrt(choir_add(variance, choir_number(f, b->kernel.epsilon)));
	choir_tensor *z = choir_multiply(choir_subtract(wide, mean), factor);
	return choir_add(choir_multiply(z ? choir_cast(z, x->dtype) : NULL, node->in[1]), node->in[2]);
}

static const chi_op batch_norm_op = {
	.name = "channel_norm",
	.label = "batch_norm",
	.attribute_bytes = sizeof(batch_norm),
	.backward = batch_norm_backward,
	.formula = batch_norm_formula,
	.private_inputs = 1,
};

// In f64, of all replicas: means, variances, rows.
static choir_tensor *moments_of(const batch_norm *b, choir_tensor *x)
{
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	choir_tensor *sums = summed(b,
			chi_op_kernel(
					x->frame, "channel_sums", 1, &x, NULL, CHOIR_F64, &CHOIR_SHAPE(2 * n + 1)));
	return chi_op_kernel(
			x->frame, "channel_moments", 1, &sums, NULL, CHOIR_F64, &CHOIR_SHAPE(2 * n + 1));
}

// Sets both outputs or neither.
static bool give_moments(
		const choir_batch_norm_options *o, choir_tensor *moments, int64_t n, choir_dtype dtype)
{
	choir_tensor *mean = o->mean ? part(moments, 0, n, dtype) : NULL;
	choir_tensor *variance = o->variance ? part(moments, 1, n, dtype) : NULL;

	if (!moments || (o->mean && !mean) || (o->variance && !variance))
		return false;
	if (o->mean)
		*o->mean = mean;
	if (o->variance)
		*o->variance = variance;
	return true;
}

static void forget_moments(const choir_batch_norm_options *o)
{
	if (o->mean)
		*o->mean = NULL;
	if (o->variance)
		*o->variance = NULL;
}

choir_tensor *choir_batch_norm(choir_tensor *x, choir_tensor *scale, choir_tensor *offset,
		const choir_batch_norm_options *o)
{
	choir_batch_norm_options all;

	// every return sets the outputs
	if (chi_options_take("batch_norm: the options'", &all, sizeof all, o) != CHOIR_OK)
		return chi_frame_record_null(choir_tensor_frame(x));
	forget_moments(&all);
	if (!x || !scale || !offset)
		return chi_frame_null_argument(choir_tensor_frame(x ? x : scale), "batch_norm");
	const double epsilon = all.epsilon == 0 ? 1e-3 : all.epsilon == CHOIR_ZERO ? 0 : all.epsilon;
	if (!(epsilon >= 0))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"batch_norm: epsilon is %g; 0 or more is needed", epsilon);
	if (check_parameters("batch_norm", x, scale, offset) != CHOIR_OK)
		return chi_frame_record_null(x->frame);
	const batch_norm b = { { .epsilon = epsilon, .centered = true }, all.sum, all.user };
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	choir_tensor *moments = moments_of(&b, x);
	choir_tensor *const in[] = { x, scale, offset, moments };
	const bool given = give_moments(&all, moments, n, chi_dtype_wide(x->dtype));
	choir_tensor *y =
			finish(given ? chi_op_call(&batch_norm_op, x->frame, 4, in, &b) : NULL, moments);
	if (!y)
		forget_moments(&all);
	return y;
}
