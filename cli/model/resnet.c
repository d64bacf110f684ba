// The residual network for small images of He et al. 2015, section 4.2: 6 n + 2 layers in three
// stages of n blocks. The second and third stage halve the image and double the channels, with a
// 1x1 convolution as the shortcut.
#include "model/kind.h"

#include <stdio.h>

enum { KERNEL = 3, THIRDS = 3 };

// These are usual for this network. Keras' momentum 0.99 adapts too slowly in few steps.
static const double MOMENTUM = 0.9, EPSILON = 1e-5;

choir_status resnet_check(const model_plan *plan)
{
	const model_size *size = &plan->size;
	if (size->layers < 8 || (size->layers - 2) % (2 * THIRDS) != 0)
		return choir_fail(CHOIR_INVALID,
				"resnet20: --layers %lld; needs 6 n + 2, as in 8, 14, 20, 32, 44, 56",
				(long long) size->layers);
	if (size->width > MAX_WIDTH >> THIRDS)
		return choir_fail(CHOIR_INVALID, "resnet20: --width %lld; needs at most %d",
				(long long) size->width, MAX_WIDTH >> THIRDS);
	return image_check(plan, 1);
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

choir_status resnet_build(model *m)
{
	const model_plan *plan = &m->plan;
	const int64_t blocks = (plan->size.layers - 2) / 2;
	choir_layer *layers[MAX_LAYERS];
	int64_t in = plan->size.width;
	size_t n = add_convolution(layers, "stem", "conv", image_channels(plan), in, KERNEL, 1);
	layers[n++] = choir_activation_new(CHOIR_RELU);
	for (int64_t i = 0; i < blocks; i++) {
		const int64_t third = i / (blocks / THIRDS), out = plan->size.width << third;
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

double resnet_weights(const model_plan *plan)
{
	const int64_t blocks = (plan->size.layers - 2) / 2;
	double in = (double) plan->size.width;
	double sum = convolution_weights((double) image_channels(plan), in, KERNEL);
	for (int64_t i = 0; i < blocks; i++) {
		const double out = (double) (plan->size.width << (i / (blocks / THIRDS)));
		sum += convolution_weights(in, out, KERNEL) + convolution_weights(out, out, KERNEL);
		if (in < out)
			sum += convolution_weights(in, out, 1);
		in = out;
	}
	return sum + (in + 1) * (double) plan->classes;
}

double resnet_activations(const model_plan *plan)
{
	const double pixels = (double) plan->image.dim[0] * (double) plan->image.dim[1];
	const double blocks = (double) ((plan->size.layers - 2) / 2) / THIRDS;
	// Seven images per block; the next stage has half of their numbers.
	return pixels * (double) plan->size.width * (3 + 7 * blocks * (1 + 0.5 + 0.25));
}

// With normalization: reads x four times and dy twice, writes y and dx.
static void add_work(
		model_work *sum, double in, double out, double kernel, double pixels, int passes)
{
	sum->convolutions += passes * 2 * kernel * kernel * in * out * pixels;
	sum->numbers += 8 * out * pixels;
}

model_work resnet_work(const model_plan *plan)
{
	const int64_t blocks = (plan->size.layers - 2) / 2;
	double in = (double) plan->size.width;
	double pixels = (double) plan->image.dim[0] * (double) plan->image.dim[1];
	model_work sum = { .numbers = 3 * (double) plan->classes };
	add_work(&sum, (double) image_channels(plan), in, KERNEL, pixels, 2);
	sum.numbers += 5 * in * pixels; // ReLU
	for (int64_t i = 0; i < blocks; i++) {
		const double out = (double) (plan->size.width << (i / (blocks / THIRDS)));
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
