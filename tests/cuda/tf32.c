// TF32 in libchoir-cuda: kernels of that arithmetic round their operands to 11 significant bits,
// and no other kernel does. The operands are whole numbers with a little more, which TF32 takes
// away. So the results are exactly those of the whole numbers on a CPU.
#include <choir/choir.h>

#include "choir/extend/kernel_table.h"
#include "test.h"

#include "open.h"

#include <math.h>
#include <string.h>

enum { MOST = 512, INPUTS = 3 };
static const float above = 1 + 0x1p-12f;

static const choir_matmul_attributes plain = { CHOIR_TRANSPOSED_NONE },
									 b_transposed = { CHOIR_TRANSPOSED_B };
static const choir_dense_attributes relu = { CHOIR_RELU };
static const choir_conv2d_attributes pixels = { .stride = 1, .dilation = 1, .groups = 1 };
static const choir_conv2d_attributes framed = {
	.stride = 1, .dilation = 1, .groups = 1, .top = 1, .left = 1, .bottom = 1, .right = 1
};
// With one key, the weights of the softmax are 1.
static const choir_attention_attributes one_key = { .heads = 2, .scale = 1 };

typedef struct {
	const char *operation;
	const void *attributes;
	size_t n;
	choir_shape in[INPUTS], out;
} sample;

static void run(const sample *s, const char *device, const char *name, float by, float *out)
{
	static float x[INPUTS][MOST];
	choir_buffer in[INPUTS], to = { out, CHOIR_F32, s->out };
	for (size_t k = 0; k < s->n; k++) {
		const int64_t n = choir_shape_elements(&s->in[k]);
		assert_true(n <= MOST);
		for (int64_t i = 0; i < n; i++)
			x[k][i] = ((float) ((uint32_t) (i + (int64_t) k) * 2654435761u >> 20 & 7) - 3) *
					(s->in[k].rank == 1 ? 1 : by); // a bias is not rounded
		in[k] = (choir_buffer){ x[k], CHOIR_F32, s->in[k] };
	}
	const choir_kernel_call call = {
		.size = sizeof call, .n = s->n, .in = in, .out = &to, .attributes = s->attributes
	};
	if (choir_kernel_run(choir_device_find(device), s->operation, name, &call) != CHOIR_OK)
		fail_msg("%s: %s", s->operation, choir_error());
}

TEST(operands_are_rounded)
{
	const choir_shape images = CHOIR_SHAPE(2, 4, 5, 3), result = CHOIR_SHAPE(2, 4, 5, 4);
	const choir_shape filter = CHOIR_SHAPE(3, 3, 3, 4), pixel = CHOIR_SHAPE(1, 1, 3, 4);
	const sample samples[] = {
		{ "matmul", &plain, 2, { CHOIR_SHAPE(5, 7), CHOIR_SHAPE(7, 6) }, CHOIR_SHAPE(5, 6) },
		{ "matmul", &b_transposed, 2, { CHOIR_SHAPE(2, 5, 7), CHOIR_SHAPE(2, 3, 7) },
				CHOIR_SHAPE(2, 5, 3) },
		{ "dense", &relu, 3, { CHOIR_SHAPE(5, 7), CHOIR_SHAPE(7, 6), CHOIR_SHAPE(6) },
				CHOIR_SHAPE(5, 6) },
		{ "conv2d", &framed, 2, { images, filter }, result },
		{ "conv2d", &pixels, 2, { images, pixel }, result },
		{ "conv2d_gradient_input", &framed, 2, { filter, result }, images },
		{ "conv2d_gradient_filter", &framed, 2, { images, result }, filter },
		{ "conv2d_gradient_filter", &pixels, 2, { images, result }, pixel },
		{ "attention", &one_key, 3,
				{ CHOIR_SHAPE(2, 3, 4), CHOIR_SHAPE(2, 1, 4), CHOIR_SHAPE(2, 1, 4) },
				CHOIR_SHAPE(2, 3, 4) },
	};
	static float expected[MOST], f32[MOST], tf32[MOST];
	for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k++) {
		const sample *s = &samples[k];
		const int64_t n = choir_shape_elements(&s->out);
		assert_true(n <= MOST);
		run(s, "cpu:0", "plain", 1, expected);
		// In this order: each must find its own algorithm.
		run(s, "gpu:0", "cuda", above, f32);
		run(s, "gpu:0", "cuda_tf32", above, tf32);
		if (memcmp(tf32, expected, (size_t) n * sizeof(float)) != 0)
			fail_msg("%s: TF32 does not take the little more away", s->operation);
		double most = 0;
		for (int64_t i = 0; i < n; i++)
			most = fmax(most, fabs((double) f32[i] - (double) expected[i]));
		if (most == 0)
			fail_msg("%s: f32 rounds as TF32 does", s->operation);
		assert_true(most < 64 * 3 * (double) (above - 1));
	}
}

typedef struct {
	float y, gradient;
} result;

// A product, and its gradient.
static result multiply(choir_frame *f, choir_precision p)
{
	const float x[4] = { above, 0, 0, above };
	float y[4], gradient[4];
	choir_frame_clear(f);
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *in[2], *gradients[2];
	for (int i = 0; i < 2; i++)
		in[i] = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2, 2), x);
	const choir_precision before = choir_frame_set_precision(f, p);
	choir_tensor *product = choir_matmul(in[0], in[1], CHOIR_TRANSPOSED_NONE);
	choir_frame_set_precision(f, before);
	assert_int_equal(choir_tensor_to_host(product, y, sizeof y), CHOIR_OK);
	choir_tensor *sum = choir_sum(product, CHOIR_ALL_AXES);
	assert_int_equal(choir_tape_gradient(tape, sum, 2, in, gradients), CHOIR_OK);
	assert_int_equal(choir_tensor_to_host(gradients[0], gradient, sizeof gradient), CHOIR_OK);
	return (result){ y[0], gradient[0] };
}

TEST(a_frame_chooses)
{
	choir_device *d = choir_device_find("gpu:0");
	choir_frame *f = choir_frame_new(d);
	const result tf32 = multiply(f, CHOIR_PRECISION_TF32), f32 = multiply(f, CHOIR_PRECISION_F32);
	assert_true(tf32.y == 1 && tf32.gradient == 1);
	assert_true(f32.y == above * above && f32.gradient == above);
	choir_frame_free(f);
	assert_true(choir_precision_is_narrow(CHOIR_PRECISION_TF32, "attention_gradient", d));
	assert_false(choir_precision_is_narrow(CHOIR_PRECISION_TF32, "softmax", d));
	assert_false(choir_precision_is_narrow(CHOIR_PRECISION_TF32, "matmul", NULL));
}
