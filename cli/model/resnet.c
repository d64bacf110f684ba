// The residual networks of He et al. 2015. resnet20 is that for small images, section 4.2: 6 n + 2
// layers in three stages of n blocks. resnet18 is that of table 1: four stages of two blocks. Each
// stage but the first halves the image and doubles the channels, with a 1x1 convolution as the
// shortcut. On images larger than 64 x 64 pixels resnet18 begins with a 7x7 convolution of stride
// 2 and a pool of 3x3 pixels and stride 2; on smaller ones with a 3x3 convolution, as resnet20.
#include "model/model_kinds.h"

#include <stdio.h>
#include <string.h>

enum { KERNEL = 3, STEM_KERNEL = 7, POOL = 3, STAGES18 = 4, STAGES20 = 3, SMALL = 64 };

// These are usual for these networks. Keras' momentum 0.99 adapts too slowly in few steps.
static const double MOMENTUM = 0.9, EPSILON = 1e-5;

static bool is_18(const model_plan *plan)
{
	return strcmp(plan->kind, "resnet18") == 0;
}

static int64_t stages(const model_plan *plan)
{
	return is_18(plan) ? STAGES18 : STAGES20;
}

static int64_t blocks_of_stage(const model_plan *plan)
{
	return is_18(plan) ? 2 : (plan->size.layers - 2) / (2 * STAGES20);
}

static int64_t blocks_of(const model_plan *plan)
{
	return stages(plan) * blocks_of_stage(plan);
}

// The channels of a block's output.
static int64_t channels_of(const model_plan *plan, int64_t block)
{
	return plan->size.width << (block / blocks_of_stage(plan));
}

static bool has_pool(const model_plan *plan)
{
	return is_18(plan) && (plan->image.dim[0] > SMALL || plan->image.dim[1] > SMALL);
}

static choir_status resnet_check(const model_plan *plan)
{
	const model_size *size = &plan->size;
	if (!is_18(plan) && (size->layers < 8 || (size->layers - 2) % (2 * STAGES20) != 0))
		return choir_fail(CHOIR_INVALID,
				"resnet20: --layers %lld; needs 6 n + 2, as in 8, 14, 20, 32, 44, 56",
				(long long) size->layers);
	if (size->width > MAX_WIDTH >> STAGES18)
		return choir_fail(CHOIR_INVALID, "%s: --width %lld; needs at most %d", plan->kind,
				(long long) size->width, MAX_WIDTH >> STAGES18);
	return image_check(plan, has_pool(plan) ? POOL + 2 : 1);
}

// The batch normalization has the bias.
static size_t add_convolution(choir_layer *layers[], const char *block, const char *part,
		int64_t in, int64_t out, int kernel, int stride)
{
	char name[LAYER_NAME], norm[LAYER_NAME];
	snprintf(name, sizeof name, "%s/%s", block, part);
	snprintf(norm, sizeof norm, "%s/%s_norm", block, part);
	layers[0] = choir_conv2d_new(name, in, out, kernel,
			CHOIR_OPTIONS(choir_conv_options, .stride = stride, .padding = kernel / 2,
					.bias = CHOIR_OFF));
	layers[1] = choir_batch_normalization_new(norm, out,
			CHOIR_OPTIONS(
					choir_batch_normalization_options, .momentum = MOMENTUM, .epsilon = EPSILON));
	return 2;
}

static choir_layer *block(int64_t i, int64_t in, int64_t out, int stride)
{
	char name[LAYER_NAME / 2];
	choir_layer *layers[5], *shortcut[2];
	snprintf(name, sizeof name, "block%lld", (long long) i);
	size_t n = add_convolution(layers, name, "conv1", in, out, KERNEL, stride);
	layers[n++] = choir_activation_new(CHOIR_RELU);
	n += add_convolution(layers + n, name, "conv2", out, out, KERNEL, 1);
	choir_layer *inside = choir_sequential_new(n, layers);
	if (in == out && stride == 1)
		return choir_residual_new(inside, NULL, CHOIR_RELU);
	n = add_convolution(shortcut, name, "shortcut", in, out, 1, stride);
	return choir_residual_new(inside, choir_sequential_new(n, shortcut), CHOIR_RELU);
}

static choir_status resnet_build(model *m)
{
	const model_plan *plan = &m->plan;
	const bool pool = has_pool(plan);
	choir_layer *layers[MAX_LAYERS];
	int64_t in = plan->size.width;
	size_t n = add_convolution(layers, "stem", "conv", image_channels(plan), in,
			pool ? STEM_KERNEL : KERNEL, pool ? 2 : 1);
	layers[n++] = choir_activation_new(CHOIR_RELU);
	if (pool)
		layers[n++] = choir_max_pool2d_new(POOL, 2, 1);
	for (int64_t i = 0; i < blocks_of(plan); i++) {
		const int64_t out = channels_of(plan, i);
		layers[n++] = block(i, in, out, out == in ? 1 : 2);
		in = out;
	}
	layers[n++] = choir_global_average_pool2d_new();
	layers[n++] = choir_dense_new("classes", in, plan->classes, CHOIR_LINEAR);
	m->net = choir_sequential_new(n, layers);
	return m->net == NULL ? choir_error_status() : CHOIR_OK;
}

// With gamma, beta and two moving statistics.
static double convolution_weights(double in, double out, double kernel)
{
	return in * out * kernel * kernel + 4 * out;
}

static double resnet_weights(const model_plan *plan)
{
	double in = (double) plan->size.width;
	double sum = convolution_weights(
			(double) image_channels(plan), in, has_pool(plan) ? STEM_KERNEL : KERNEL);
	for (int64_t i = 0; i < blocks_of(plan); i++) {
		const double out = (double) channels_of(plan, i);
		sum += convolution_weights(in, out, KERNEL) + convolution_weights(out, out, KERNEL);
		if (in < out)
			sum += convolution_weights(in, out, 1);
		in = out;
	}
	return sum + (in + 1) * (double) plan->classes;
}

// The pixels of the stem's output.
static double stem_pixels(const model_plan *plan)
{
	const double pixels = (double) plan->image.dim[0] * (double) plan->image.dim[1];
	return has_pool(plan) ? pixels / 4 : pixels;
}

static double resnet_activations(const model_plan *plan)
{
	double pixels = stem_pixels(plan);
	double in = (double) plan->size.width, sum = 3 * pixels * in;
	if (has_pool(plan))
		pixels /= 4;
	for (int64_t i = 0; i < blocks_of(plan); i++) {
		const double out = (double) channels_of(plan, i);
		pixels = in < out ? pixels / 4 : pixels;
		sum += 7 * pixels * out; // images of a block
		in = out;
	}
	return sum;
}

// With normalization: reads x four times and dy twice, writes y and dx.
static void add_work(
		model_work *sum, double in, double out, double kernel, double pixels, int passes)
{
	sum->convolutions += passes * 2 * kernel * kernel * in * out * pixels;
	sum->numbers += 8 * out * pixels;
}

static model_work resnet_work(const model_plan *plan)
{
	const bool pool = has_pool(plan);
	double in = (double) plan->size.width, pixels = stem_pixels(plan);
	model_work sum = { .numbers = 3 * (double) plan->classes };
	add_work(&sum, (double) image_channels(plan), in, pool ? STEM_KERNEL : KERNEL, pixels, 2);
	sum.numbers += 5 * in * pixels; // ReLU
	if (pool) {
		// The pool reads its input forward and backward, and writes its gradient.
		pixels /= 4;
		sum.numbers += 3 * in * pixels * 4 + 3 * in * pixels;
	}
	for (int64_t i = 0; i < blocks_of(plan); i++) {
		const double out = (double) channels_of(plan, i);
		pixels = in < out ? pixels / 4 : pixels;
		add_work(&sum, in, out, KERNEL, pixels, 3);
		add_work(&sum, out, out, KERNEL, pixels, 3);
		if (in < out)
			add_work(&sum, in, out, 1, pixels, 3);
		// Two ReLUs, the residual sum, and that of the gradients.
		sum.numbers += 16 * out * pixels;
		in = out;
	}
	sum.products += 3 * 2 * in * (double) plan->classes;
	sum.numbers += 2 * in * pixels;
	return sum;
}

const model_kind resnet_kind = { resnet_check, resnet_build, resnet_weights, resnet_activations,
	resnet_work };
