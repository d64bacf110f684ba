// Convolutions of libchoir-cuda against the CPU's, and who computes them. cuDNN refuses what does
// not fit together, and a slow kernel then gives the same numbers: a wrong description of a
// convolution costs only time. The stand-in counts the calls of libraries.
#include <choir/choir.h>

#include "choir/extend/kernel_table.h"
#include "test.h"

#include "open.h"

#include <string.h>

typedef struct {
	const char *what;
	int64_t n, h, w, c;
	int64_t kh, kw, out;
	int stride, dilation, groups;
	int top, left, bottom, right;
	int calls; // of libraries
} convolution;

static const convolution convolutions[] = {
	{ "no padding", 2, 5, 6, 3, 3, 2, 4, 1, 1, 1, 0, 0, 0, 0, 1 },
	{ "equal padding", 2, 5, 6, 2, 3, 5, 3, 1, 1, 1, 1, 2, 1, 2, 1 },
	{ "padding at the top", 1, 4, 5, 2, 3, 2, 3, 1, 1, 1, 2, 0, 0, 0, 1 },
	{ "padding at the left", 1, 4, 5, 2, 2, 3, 2, 1, 1, 1, 0, 1, 0, 0, 1 },
	{ "padding at the bottom", 2, 4, 5, 1, 3, 3, 2, 1, 1, 1, 0, 0, 2, 0, 1 },
	{ "the same without it", 2, 4, 5, 1, 3, 3, 2, 1, 1, 1, 0, 0, 0, 0, 1 },
	{ "padding at the right", 1, 4, 5, 3, 2, 4, 2, 1, 1, 1, 0, 0, 0, 3, 1 },
	{ "four paddings", 2, 5, 4, 2, 4, 5, 3, 1, 1, 1, 3, 4, 1, 2, 1 },
	{ "a stride and TensorFlow's padding", 2, 6, 8, 2, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1 },
	{ "a stride that leaves rows out", 1, 9, 7, 2, 2, 2, 3, 3, 1, 1, 0, 0, 0, 0, 1 },
	{ "dilation", 2, 7, 8, 2, 3, 2, 3, 1, 2, 1, 0, 0, 0, 0, 1 },
	{ "dilation, a stride and padding", 1, 9, 8, 2, 3, 3, 2, 2, 3, 1, 2, 0, 0, 1, 1 },
	{ "groups", 2, 4, 5, 6, 3, 2, 9, 1, 1, 3, 0, 0, 0, 0, 1 },
	{ "groups of one channel, and padding", 1, 5, 5, 4, 3, 3, 4, 1, 1, 4, 1, 1, 0, 1, 1 },
	{ "pixels", 2, 3, 4, 5, 1, 1, 6, 1, 1, 1, 0, 0, 0, 0, 1 },
	{ "every second pixel", 2, 5, 6, 3, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 1 },
	{ "pixels with a frame", 1, 3, 4, 2, 1, 1, 3, 1, 1, 1, 0, 1, 0, 0, 1 },
	// The stand-in's cuDNN has no algorithm for it.
	{ "groups and dilation", 1, 7, 7, 4, 3, 3, 6, 1, 2, 2, 1, 0, 0, 0, 0 },
};

enum { INPUTS = 2, MOST = 1024 };

// Whole numbers: sums are exact in each order.
static void fill(float *x, const choir_buffer *b, uint32_t seed)
{
	const int64_t n = choir_shape_elements(&b->shape);
	assert_true(n <= MOST);
	for (int64_t i = 0; i < n; i++)
		x[i] = (float) (((uint32_t) i * 2654435761u + seed * 2246822519u) >> 20 & 7) - 3;
}

static void run(const convolution *v, const char *operation, const choir_buffer *first,
		const choir_buffer *second, const choir_buffer *like)
{
	static float expected[MOST], found[MOST];
	const choir_conv2d_attributes a = { .stride = v->stride,
		.top = v->top,
		.left = v->left,
		.bottom = v->bottom,
		.right = v->right,
		.dilation = v->dilation,
		.groups = v->groups };
	const choir_buffer in[INPUTS] = { *first, *second };
	choir_buffer out = { expected, CHOIR_F32, like->shape };
	const choir_kernel_call call = {
		.size = sizeof call, .n = INPUTS, .in = in, .out = &out, .attributes = &a
	};
	standin_counts before, now;
	if (choir_kernel_run(choir_device_find("cpu:0"), operation, "plain", &call) != CHOIR_OK)
		fail_msg("%s: %s", v->what, choir_error());
	out.data = found;
	standin_count(&before);
	if (choir_kernel_run(choir_device_find("gpu:0"), operation, "cuda", &call) != CHOIR_OK)
		fail_msg("%s: %s", v->what, choir_error());
	standin_count(&now);
	const int calls = (int) (now.library_calls - before.library_calls);
	const size_t bytes = (size_t) choir_shape_elements(&out.shape) * sizeof(float);
	if (memcmp(found, expected, bytes) != 0)
		fail_msg("%s: %s gives other numbers than on the CPU", v->what, operation);
	if (calls != v->calls)
		fail_msg(
				"%s: %s calls libraries %d times; %d needed", v->what, operation, calls, v->calls);
}

static int64_t windows(int64_t size, int padding, int64_t filter, int dilation, int stride)
{
	return (size + padding - (filter - 1) * dilation - 1) / stride + 1;
}

TEST(numbers_and_who_computes_them)
{
	static float of_x[MOST], of_filter[MOST], of_dy[MOST];
	for (size_t i = 0; i < sizeof convolutions / sizeof convolutions[0]; i++) {
		const convolution *v = &convolutions[i];
		const int64_t oh = windows(v->h, v->top + v->bottom, v->kh, v->dilation, v->stride);
		const int64_t ow = windows(v->w, v->left + v->right, v->kw, v->dilation, v->stride);
		const choir_buffer x = { of_x, CHOIR_F32, CHOIR_SHAPE(v->n, v->h, v->w, v->c) };
		const choir_buffer filter = { of_filter, CHOIR_F32,
			CHOIR_SHAPE(v->kh, v->kw, v->c / v->groups, v->out) };
		const choir_buffer dy = { of_dy, CHOIR_F32, CHOIR_SHAPE(v->n, oh, ow, v->out) };
		fill(of_x, &x, 1);
		fill(of_filter, &filter, 2);
		fill(of_dy, &dy, 3);
		run(v, "conv2d", &x, &filter, &dy);
		run(v, "conv2d_gradient_input", &filter, &dy, &x);
		run(v, "conv2d_gradient_filter", &x, &dy, &filter);
	}
}

enum { RESULTS = 3, SIDE = 5, CHANNELS = 4 };

static choir_tensor *numbers(choir_frame *f, choir_shape shape, uint32_t seed)
{
	static float x[MOST];
	fill(x, &(choir_buffer){ x, CHOIR_F32, shape }, seed);
	return choir_constant(f, CHOIR_F32, shape, x);
}

static void take(const choir_tensor *t, float to[MOST])
{
	const size_t bytes = (size_t) choir_shape_elements(choir_tensor_shape(t)) * sizeof(float);
	assert_true(bytes <= MOST * sizeof(float));
	assert_int_equal(choir_tensor_to_host(t, to, bytes), CHOIR_OK);
}

// The result, and both gradients of its squares. Returns the calls of libraries.
static int transpose(const char *device, const choir_conv_options *o, float to[RESULTS][MOST])
{
	standin_counts before, now;
	choir_frame *f = choir_frame_new(choir_device_find(device));
	assert_non_null(f);
	choir_tape *tape = choir_tape_begin(f);
	const int64_t groups = o->groups == 0 ? 1 : o->groups;
	choir_tensor *in[] = { numbers(f, CHOIR_SHAPE(2, SIDE, SIDE, CHANNELS), 4),
		numbers(f, CHOIR_SHAPE(3, 2, CHANNELS / groups, CHANNELS), 5) };
	choir_tensor *gradients[2];
	standin_count(&before);
	choir_tensor *y = choir_conv2d_transpose(in[0], in[1], o);
	take(y, to[0]);
	if (choir_tape_gradient(tape, choir_multiply(y, y), 2, in, gradients) != CHOIR_OK)
		fail_msg("%s: %s", device, choir_error());
	standin_count(&now);
	take(gradients[0], to[1]);
	take(gradients[1], to[2]);
	choir_frame_free(f);
	return (int) (now.library_calls - before.library_calls);
}

TEST(transposed_convolutions)
{
	static const choir_conv_options options[] = {
		{ .size = sizeof *options, .stride = 2, .padding = CHOIR_PADDING_SAME },
		{ .size = sizeof *options, .stride = 2, .pad_before = { 1 }, .pad_after = { 0, 1 } },
		{ .size = sizeof *options, .dilation = 2, .pad_before = { 0, 1 } },
		{ .size = sizeof *options, .groups = 2, .pad_after = { 2 } }
	};
	static float expected[RESULTS][MOST], found[RESULTS][MOST];
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		assert_int_equal(transpose("cpu:0", &options[i], expected), 0);
		assert_int_equal(transpose("gpu:0", &options[i], found), RESULTS);
		assert_memory_equal(found, expected, sizeof found);
	}
}
