// A multilayer perceptron, and a small convolutional network.
#include "model/model_kinds.h"

#include <stdio.h>

enum { KERNEL = 3, POOL = 2 };

choir_status image_check(const model_plan *plan, int64_t min)
{
	const int64_t *size = plan->image.dim;
	if (plan->image.rank < 1)
		return choir_fail(CHOIR_INVALID,
				"%s: images are single numbers; needs at least "
				"1 dimension (are images and labels swapped?)",
				plan->kind);
	if (min == 0)
		return CHOIR_OK;
	if (plan->image.rank != 2 && plan->image.rank != 3)
		return choir_fail(CHOIR_INVALID,
				"%s: images with %d dimensions; needs height "
				"and width, or height, width and channels",
				plan->kind, plan->image.rank);
	if (size[0] < min || size[1] < min)
		return choir_fail(CHOIR_INVALID, "%s: images of %lld x %lld; needs at least %lld x %lld",
				plan->kind, (long long) size[0], (long long) size[1], (long long) min,
				(long long) min);
	return CHOIR_OK;
}

int64_t image_channels(const model_plan *plan)
{
	return plan->image.rank == 3 ? plan->image.dim[2] : 1;
}

choir_status dropout_check(const model_plan *plan)
{
	return plan->size.dropout < 1
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID, "%s: --dropout %g; needs less than 1", plan->kind,
					  plan->size.dropout);
}

static choir_status mlp_check(const model_plan *plan)
{
	CHOIR_TRY(dropout_check(plan));
	return image_check(plan, 0);
}

static choir_status mlp_build(model *m)
{
	enum { LAYERS = 4 }; // of a width: dense, normalization, activation, dropout
	choir_layer *layers[LAYERS * MAX_WIDTHS + 1];
	const model_plan *plan = &m->plan;
	const model_size *size = &plan->size;
	int64_t in = choir_shape_elements(&plan->image);
	size_t n = 0;
	for (int i = 0; i < plan->widths; i++) {
		const int64_t out = plan->width[i];
		char name[32], norm[32], dropout[32];
		snprintf(name, sizeof name, "hidden%d", i + 1);
		snprintf(norm, sizeof norm, "norm%d", i + 1);
		snprintf(dropout, sizeof dropout, "dropout%d", i + 1);
		layers[n++] = choir_dense_new(name, in, out, size->batch_norm ? CHOIR_LINEAR : CHOIR_RELU);
		if (size->batch_norm) {
			layers[n++] = choir_batch_normalization_new(norm, out, NULL);
			layers[n++] = choir_activation_new(CHOIR_RELU);
		}
		if (size->dropout > 0)
			layers[n++] = choir_dropout_new(dropout, size->dropout);
		in = out;
	}
	layers[n++] = choir_dense_new("classes", in, plan->classes, CHOIR_LINEAR);
	m->net = choir_sequential_new(n, layers);
	return m->net == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status cnn_check(const model_plan *plan)
{
	return image_check(plan, 2 * (KERNEL - 1) + POOL);
}

static choir_status cnn_build(model *m)
{
	const model_plan *plan = &m->plan;
	const int64_t *size = plan->image.dim, *width = plan->width;
	const int64_t lost = 2 * (KERNEL - 1);
	const choir_conv_options *relu = CHOIR_OPTIONS(choir_conv_options, .activation = CHOIR_RELU);
	const int64_t flat = (size[0] - lost) / POOL * ((size[1] - lost) / POOL) * width[1];
	choir_layer *layers[] = {
		choir_conv2d_new("conv1", image_channels(plan), width[0], KERNEL, relu),
		choir_conv2d_new("conv2", width[0], width[1], KERNEL, relu),
		choir_max_pool2d_new(POOL, POOL, 0),
		choir_flatten_new(),
		choir_dense_new("hidden", flat, width[2], CHOIR_RELU),
		choir_dense_new("classes", width[2], plan->classes, CHOIR_LINEAR),
	};
	m->net = choir_sequential_new(sizeof layers / sizeof layers[0], layers);
	return m->net == NULL ? choir_error_status() : CHOIR_OK;
}

static double mlp_weights(const model_plan *plan)
{
	double in = (double) choir_shape_elements(&plan->image), sum = 0;
	const double norm = plan->size.batch_norm ? 4 : 0; // beta, gamma and the moving statistics
	for (int i = 0; i < plan->widths; i++) {
		sum += (in + 1 + norm) * (double) plan->width[i];
		in = (double) plan->width[i];
	}
	return sum + (in + 1) * (double) plan->classes;
}

static double mlp_activations(const model_plan *plan)
{
	double sum = 3 * (double) plan->classes;
	const double kept = 2 + 2 * plan->size.batch_norm + 2 * (plan->size.dropout > 0);
	for (int i = 0; i < plan->widths; i++)
		sum += kept * (double) plan->width[i];
	return sum;
}

static double cnn_weights(const model_plan *plan)
{
	const double lost = 2 * (KERNEL - 1), filter = KERNEL * KERNEL;
	const double h = ((double) plan->image.dim[0] - lost) / POOL;
	const double w = ((double) plan->image.dim[1] - lost) / POOL;
	const double a = (double) plan->width[0], b = (double) plan->width[1];
	const double c = (double) plan->width[2];
	const double in = (double) image_channels(plan);
	return (in * filter + 1) * a + (a * filter + 1) * b + (h * w * b + 1) * c +
			(c + 1) * (double) plan->classes;
}

static double cnn_activations(const model_plan *plan)
{
	const double pixels = (double) plan->image.dim[0] * (double) plan->image.dim[1];
	return pixels * 2 * ((double) plan->width[0] + (double) plan->width[1]);
}

// The gradient of ReLU reads its result and dy and writes dx; the bias gradient reads dx.
static void add_dense(model_work *sum, double in, double out, bool first, bool relu)
{
	sum->products += (first ? 2 : 3) * 2 * in * out;
	sum->numbers += (relu ? 4 : 1) * out;
}

// Per class: reads the scores twice, writes their gradient.
static const double LOSS = 3;

static model_work mlp_work(const model_plan *plan)
{
	model_work sum = { .numbers = LOSS * (double) plan->classes };
	double in = (double) choir_shape_elements(&plan->image);
	for (int i = 0; i < plan->widths; i++) {
		add_dense(&sum, in, (double) plan->width[i], i == 0, true);
		in = (double) plan->width[i];
	}
	add_dense(&sum, in, (double) plan->classes, plan->widths == 0, false);
	return sum;
}

static model_work cnn_work(const model_plan *plan)
{
	const double filter = KERNEL * KERNEL;
	const double h = (double) plan->image.dim[0], w = (double) plan->image.dim[1];
	const double a = (double) plan->width[0], b = (double) plan->width[1];
	const double pixels1 = (h - KERNEL + 1) * (w - KERNEL + 1);
	const double pixels2 = (h - 2 * KERNEL + 2) * (w - 2 * KERNEL + 2);
	const double pooled = pixels2 * b / (POOL * POOL);
	model_work sum = { .numbers = LOSS * (double) plan->classes };
	sum.convolutions += 2 * 2 * filter * (double) image_channels(plan) * a * pixels1;
	sum.convolutions += 3 * 2 * filter * a * b * pixels2;
	sum.numbers += 4 * (pixels1 * a + pixels2 * b);
	// The pool reads its input forward and backward, and writes its gradient.
	sum.numbers += 3 * pixels2 * b + 3 * pooled;
	add_dense(&sum, pooled, (double) plan->width[2], false, true);
	add_dense(&sum, (double) plan->width[2], (double) plan->classes, false, false);
	return sum;
}

const model_kind mlp_kind = { mlp_check, mlp_build, mlp_weights, mlp_activations, mlp_work };

const model_kind cnn_kind = { cnn_check, cnn_build, cnn_weights, cnn_activations, cnn_work };
