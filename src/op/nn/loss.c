// Losses per example.
#include "op/nn/nn.h"

static bool labels_fit(const choir_shape *logits, const choir_shape *labels)
{
	if (logits->rank < 2 || labels->rank != logits->rank - 1 || logits->dim[labels->rank] == 0)
		return false;
	for (int i = 0; i < labels->rank; i++)
		if (labels->dim[i] != logits->dim[i])
			return false;
	return true;
}

static choir_status infer_cross_entropy(chi_result *r)
{
	const choir_shape *logits = &r->in[0]->shape, *labels = &r->in[1]->shape;
	const choir_dtype label = r->in[1]->dtype;
	char text[2][CHI_SHAPE_TEXT];

	r->dtype = chi_dtype_wide(r->in[0]->dtype);
	if (label != CHOIR_U8 && label != CHOIR_I32 && label != CHOIR_I64)
		return choir_fail(CHOIR_INVALID, "the labels are %s; u8, i32 or i64 is needed",
				choir_dtype_name(label));
	if (!labels_fit(logits, labels))
		return choir_fail(CHOIR_INVALID,
				"logits %s and labels %s do not fit; [n, .., classes] and [n, ..] are needed",
				chi_shape_print(logits, text[0]), chi_shape_print(labels, text[1]));
	r->shape = *labels;
	return CHOIR_OK;
}

static choir_status cross_entropy_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *logits = node->in[0], *const in[] = { logits, node->in[1], g->dy };

	if (g->want[0])
		g->gradient[0] = chi_op_kernel(g->dy->frame, "softmax_cross_entropy_gradient", 3, in,
				node->attributes, logits->dtype, &logits->shape);
	return CHOIR_OK;
}

// -sum(target log_softmax(logits)), target one-hot, smoothed.
static choir_tensor *cross_entropy_formula(const chi_node *node)
{
	const choir_cross_entropy_attributes *a = node->attributes;
	choir_tensor *logits = node->in[0];
	const int64_t classes = logits->shape.dim[logits->shape.rank - 1];
	choir_tensor *hot = choir_one_hot(node->in[1], classes, logits->dtype);
	choir_tensor *target = choir_add(choir_scale(hot, 1 - a->smoothing),
			choir_number(logits->frame, a->smoothing / (double) classes));

	return choir_negate(
			choir_sum(choir_multiply(target, choir_log_softmax(logits)), CHOIR_AXIS(-1)));
}

static const chi_op cross_entropy_op = {
	.name = "softmax_cross_entropy",
	.attribute_bytes = sizeof(choir_cross_entropy_attributes),
	.infer = infer_cross_entropy,
	.backward = cross_entropy_backward,
	.formula = cross_entropy_formula,
};

choir_tensor *choir_sparse_softmax_cross_entropy(choir_tensor *labels, choir_tensor *logits)
{
	return choir_sparse_softmax_cross_entropy_smoothed(labels, logits, 0);
}

choir_tensor *choir_sparse_softmax_cross_entropy_smoothed(
		choir_tensor *labels, choir_tensor *logits, double smoothing)
{
	const choir_cross_entropy_attributes attributes = { smoothing };
	choir_shape rows = logits ? logits->shape : CHOIR_SCALAR;
	rows.rank -= rows.rank > 0;
	choir_tensor *const in[] = { logits, labels ? chi_match_last_axis(labels, &rows) : NULL };

	if (logits && !(smoothing >= 0 && smoothing <= 1))
		return chi_frame_fail_null(logits->frame, CHOIR_INVALID,
				"sparse_softmax_cross_entropy_smoothed: the smoothing is %g; 0 to 1 is needed",
				smoothing);
	return chi_op_call(&cross_entropy_op, NULL, 2, in, &attributes);
}

// The targets, in the predictions' shape. NULL: recorded.
static choir_tensor *match(const char *name, choir_tensor *targets, choir_tensor *predictions)
{
	char text[2][CHI_SHAPE_TEXT];

	if (!targets || !predictions)
		return targets;
	const choir_shape *given = &targets->shape, *needed = &predictions->shape;
	const bool mixed = predictions->frame->narrow != CHOIR_F32; // which converts operands
	if (targets->dtype != predictions->dtype && !mixed && !targets->is_number &&
			!predictions->is_number)
		return chi_frame_fail_null(predictions->frame, CHOIR_INVALID,
				"%s: targets are %s and predictions %s; one dtype is needed, so cast the targets",
				name, choir_dtype_name(targets->dtype), choir_dtype_name(predictions->dtype));
	targets = chi_match_last_axis(targets, needed);
	if (!targets || given->rank == 0 || needed->rank == 0 ||
			chi_shape_equal(&targets->shape, needed))
		return targets;
	return chi_frame_fail_null(predictions->frame, CHOIR_INVALID,
			"%s: targets are %s and predictions %s; equal shapes are needed", name,
			chi_shape_print(given, text[0]), chi_shape_print(needed, text[1]));
}

static choir_tensor *by_example(const char *name, choir_tensor *losses)
{
	if (!losses)
		return NULL;
	const int rank = losses->shape.rank;
	if (rank < 1)
		return chi_frame_fail_null(losses->frame, CHOIR_INVALID,
				"%s: the input is a scalar; [n, ...] is needed", name);
	return rank == 1 ? losses : choir_mean(losses, CHOIR_AXES_BITS((1u << rank) - 2));
}

choir_tensor *choir_mean_squared_error(choir_tensor *targets, choir_tensor *predictions)
{
	targets = match("mean_squared_error", targets, predictions);
	return by_example("mean_squared_error", choir_square(choir_subtract(predictions, targets)));
}

static choir_status huber_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *const in[] = { node->in[0], g->dy };

	g->gradient[0] = chi_op_kernel(
			g->dy->frame, "huber_gradient", 2, in, node->attributes, g->dy->dtype, &g->dy->shape);
	return CHOIR_OK;
}

static choir_tensor *huber_formula(const chi_node *node)
{
	const choir_huber_attributes *a = node->attributes;
	choir_tensor *x = node->in[0], *size = choir_abs(x), *delta = choir_number(x->frame, a->delta);
	choir_tensor *line =
			choir_scale(choir_subtract(size, choir_number(x->frame, a->delta / 2)), a->delta);

	return choir_where(choir_less_equal(size, delta), choir_scale(choir_square(x), 0.5), line);
}

static const chi_op huber_op = {
	.name = "huber",
	.attribute_bytes = sizeof(choir_huber_attributes),
	.backward = huber_backward,
	.formula = huber_formula,
};

choir_tensor *choir_huber(choir_tensor *targets, choir_tensor *predictions, double delta)
{
	const choir_huber_attributes attributes = { delta };
	choir_tensor *difference;

	if (predictions && !(delta > 0))
		return chi_frame_fail_null(predictions->frame, CHOIR_INVALID,
				"huber: delta is %g; more than 0 is needed", delta);
	difference = choir_subtract(predictions, match("huber", targets, predictions));
	return by_example("huber", chi_op_call(&huber_op, NULL, 1, &difference, &attributes));
}

// softplus(x) - x target = -target log(sigmoid(x)) - (1 - target) log(1 - sigmoid(x))
choir_tensor *choir_sigmoid_cross_entropy(choir_tensor *targets, choir_tensor *logits)
{
	targets = match("sigmoid_cross_entropy", targets, logits);
	return by_example("sigmoid_cross_entropy",
			choir_subtract(choir_softplus(logits), choir_multiply(logits, targets)));
}

choir_tensor *choir_hinge(choir_tensor *targets, choir_tensor *predictions)
{
	choir_tensor *agreement = choir_multiply(predictions, match("hinge", targets, predictions));
	if (!agreement)
		return NULL;
	return by_example(
			"hinge", choir_relu(choir_subtract(choir_number(agreement->frame, 1), agreement)));
}

static choir_tensor *clip_below(choir_tensor *x, double min)
{
	return x ? choir_maximum(x, choir_number(x->frame, min)) : NULL;
}

choir_tensor *choir_kl_divergence(choir_tensor *targets, choir_tensor *predictions)
{
	targets = match("kl_divergence", targets, predictions);
	choir_tensor *t = clip_below(targets, 1e-7), *p = clip_below(predictions, 1e-7);
	choir_tensor *terms = choir_multiply(t, choir_log(choir_divide(t, p)));
	if (terms && terms->shape.rank < 2)
		return chi_frame_fail_null(terms->frame, CHOIR_INVALID,
				"kl_divergence: the operands have %d axes; [n, .., classes] is needed",
				terms->shape.rank);
	return terms ? by_example("kl_divergence", choir_sum(terms, CHOIR_AXIS(terms->shape.rank - 1)))
				 : NULL;
}
