// MobileNet (Howard et al. 2017, table 1): a 3x3 convolution, 13 blocks of a depthwise 3x3
// convolution and a 1x1 convolution, and a dense layer after the mean of all pixels. On images of
// at most 64 x 64 pixels the first convolution has stride 1.
#include "model/model_kinds.h"

#include <stdio.h>

enum { KERNEL = 3, BLOCKS = 13, SMALL = 64 };

// Of each block: the factor of --width for its output, and its stride.
static const struct {
	int64_t width;
	int stride;
} blocks[BLOCKS] = { { 2, 1 }, { 4, 2 }, { 4, 1 }, { 8, 2 }, { 8, 1 }, { 16, 2 }, { 16, 1 },
	{ 16, 1 }, { 16, 1 }, { 16, 1 }, { 16, 1 }, { 32, 2 }, { 32, 1 } };

static const double MOMENTUM = 0.9, EPSILON = 1e-5; // as in resnet.c

static int stem_stride(const model_plan *plan)
{
	return plan->image.dim[0] > SMALL || plan->image.dim[1] > SMALL ? 2 : 1;
}

static choir_status mobilenet_check(const model_plan *plan)
{
	const int64_t max = MAX_WIDTH / blocks[BLOCKS - 1].width;
	if (plan->size.width > max)
		return choir_fail(CHOIR_INVALID, "mobilenet: --width %lld; needs at most %lld",
				(long long) plan->size.width, (long long) max);
	return image_check(plan, 1);
}

static size_t add_convolution(choir_layer *layers[], const char *name, int64_t in, int64_t out,
		int kernel, int stride, int64_t groups)
{
	char norm[LAYER_NAME];
	snprintf(norm, sizeof norm, "%s_norm", name);
	layers[0] = choir_conv2d_new(name, in, out, kernel,
			CHOIR_OPTIONS(choir_conv_options, .stride = stride, .padding = kernel / 2,
					.groups = (int) groups, .bias = CHOIR_OFF));
	layers[1] = choir_batch_normalization_new(norm, out,
			CHOIR_OPTIONS(
					choir_batch_normalization_options, .momentum = MOMENTUM, .epsilon = EPSILON));
	layers[2] = choir_activation_new(CHOIR_RELU);
	return 3;
}

static choir_status mobilenet_build(model *m)
{
	const model_plan *plan = &m->plan;
	choir_layer *layers[6 * BLOCKS + 5];
	int64_t in = plan->size.width;
	size_t n = add_convolution(
			layers, "stem/conv", image_channels(plan), in, KERNEL, stem_stride(plan), 1);
	for (int i = 0; i < BLOCKS; i++) {
		const int64_t out = plan->size.width * blocks[i].width;
		char name[LAYER_NAME / 2];
		snprintf(name, sizeof name, "block%d/depthwise", i);
		n += add_convolution(layers + n, name, in, in, KERNEL, blocks[i].stride, in);
		snprintf(name, sizeof name, "block%d/pointwise", i);
		n += add_convolution(layers + n, name, in, out, 1, 1, 1);
		in = out;
	}
	layers[n++] = choir_global_average_pool2d_new();
	layers[n++] = choir_dense_new("classes", in, plan->classes, CHOIR_LINEAR);
	m->net = choir_sequential_new(n, layers);
	return m->net == NULL ? choir_error_status() : CHOIR_OK;
}

// Calls add for each convolution, with the channels that one output channel reads, and the pixels
// of its output.
static double walk(const model_plan *plan, void *sum,
		void (*add)(void *sum, double in, double out, double kernel, double pixels))
{
	double h = (double) plan->image.dim[0], w = (double) plan->image.dim[1];
	double in = (double) plan->size.width;
	const int stem = stem_stride(plan);
	h /= stem;
	w /= stem;
	add(sum, (double) image_channels(plan), in, KERNEL, h * w);
	for (int i = 0; i < BLOCKS; i++) {
		const double out = (double) (plan->size.width * blocks[i].width);
		h = h > 1 ? h / blocks[i].stride : 1;
		w = w > 1 ? w / blocks[i].stride : 1;
		add(sum, 1, in, KERNEL, h * w);
		add(sum, in, out, 1, h * w);
		in = out;
	}
	return in;
}

// With gamma, beta and two moving statistics.
static void add_weights(void *sum, double in, double out, double kernel, double pixels)
{
	(void) pixels;
	*(double *) sum += in * out * kernel * kernel + 4 * out;
}

static double mobilenet_weights(const model_plan *plan)
{
	double sum = 0;
	const double last = walk(plan, &sum, add_weights);
	return sum + (last + 1) * (double) plan->classes;
}

static void add_activations(void *sum, double in, double out, double kernel, double pixels)
{
	(void) in;
	(void) kernel;
	*(double *) sum += 3 * out * pixels;
}

static double mobilenet_activations(const model_plan *plan)
{
	double sum = 0;
	walk(plan, &sum, add_activations);
	return sum;
}

// Normalization as in resnet.c, and ReLU. A depthwise convolution also counts its bytes: it reads
// x and dy twice, and writes y and dx.
static void add_work(void *to, double in, double out, double kernel, double pixels)
{
	model_work *sum = to;
	const double own = in == 1 ? 6 : 0;
	sum->convolutions += 3 * 2 * kernel * kernel * in * out * pixels;
	sum->numbers += (8 + 5 + own) * out * pixels;
}

static model_work mobilenet_work(const model_plan *plan)
{
	model_work sum = { .numbers = 3 * (double) plan->classes };
	const double pixels = (double) plan->image.dim[0] * (double) plan->image.dim[1] /
			(stem_stride(plan) * stem_stride(plan));
	// The images need no gradient.
	sum.convolutions -= 2 * KERNEL * KERNEL * (double) image_channels(plan) *
			(double) plan->size.width * pixels;
	const double last = walk(plan, &sum, add_work);
	sum.products += 3 * 2 * last * (double) plan->classes;
	return sum;
}

const model_kind mobilenet_kind = { mobilenet_check, mobilenet_build, mobilenet_weights,
	mobilenet_activations, mobilenet_work };
