// Every layer in mixed precision, on inputs of f32 and of 16 bits: results near those of f32, and
// gradients of variables in f32.
#include "train/problem.h"

#include "base/status.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_VARIABLES = 8 };

static const choir_precision mixed[] = { CHOIR_PRECISION_MIXED_BF16, CHOIR_PRECISION_MIXED_F16 };

typedef struct {
	int64_t n;
	float *y;
} result;

static result apply(choir_frame *f, choir_layer *l, choir_tensor *x, choir_precision p)
{
	choir_tensor *sources[MAX_VARIABLES], *gradients[MAX_VARIABLES];
	const int n = choir_layer_variables(l);
	choir_frame_set_precision(f, p);
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *y = choir_layer_apply(l, x);
	choir_tensor *loss = choir_sum(choir_multiply(y, y), CHOIR_ALL_AXES);
	choir_tensor *wide = y == NULL ? NULL : choir_cast(choir_stop_gradient(y), CHOIR_F32);
	assert_true(n <= MAX_VARIABLES);
	for (int i = 0; i < n; i++)
		sources[i] = choir_variable_read(choir_layer_variable(l, i), f);
	if (choir_tape_gradient(tape, loss, (size_t) n, sources, gradients) != CHOIR_OK)
		fail_msg("%s: %s", choir_precision_name(p), choir_error());
	for (int i = 0; i < n; i++)
		assert_int_equal(choir_tensor_dtype(gradients[i]), CHOIR_F32);
	choir_frame_set_precision(f, CHOIR_PRECISION_F32);
	result r = { .n = choir_shape_elements(choir_tensor_shape(wide)) };
	r.y = malloc((size_t) r.n * sizeof *r.y);
	assert_int_equal(chi_tensor_to_host(wide, r.y), CHOIR_OK);
	return r;
}

static choir_tensor *input(choir_frame *f, choir_shape shape, bool indices, choir_dtype dtype)
{
	choir_frame_clear(f);
	if (indices)
		return choir_fill(f, CHOIR_I32, shape, 1);
	float values[2000];
	for (int i = 0; i < 2000; i++)
		values[i] = (float) (2 * sin(i * 1.7 + 0.3));
	assert_true(choir_shape_elements(&shape) <= 2000);
	choir_tensor *x = choir_constant(f, CHOIR_F32, shape, values);
	return dtype == CHOIR_F32 ? x : choir_cast(x, dtype);
}

static void check(choir_frame *f, choir_layer *l, choir_shape shape, bool indices)
{
	if (l == NULL)
		fail_msg("%s", choir_error());
	const result f32 = apply(f, l, input(f, shape, indices, CHOIR_F32), CHOIR_PRECISION_F32);
	double size = 1e-3;
	for (int64_t i = 0; i < f32.n; i++)
		size = fmax(size, fabs((double) f32.y[i]));
	for (int k = 0; k < 4; k++) {
		const choir_dtype half = k % 2 == 0 ? CHOIR_BF16 : CHOIR_F16;
		const choir_dtype dtype = k < 2 ? CHOIR_F32 : half;
		const result r = apply(f, l, input(f, shape, indices, dtype), mixed[k % 2]);
		assert_int_equal(r.n, f32.n);
		for (int64_t i = 0; i < r.n; i++)
			assert_true(fabs((double) r.y[i] - (double) f32.y[i]) < 0.04 * size);
		free(r.y);
	}
	free(f32.y);
}

// A convolution, so that the input of second is of 16 bits.
static choir_layer *after_conv(const char *name, choir_layer *second)
{
	choir_layer *const both[] = { choir_conv2d_new(name, 4, 4, 3, NULL), second };
	return choir_sequential_new(2, both);
}

TEST_WITHIN(images, scoped_open, scoped_close)
{
	choir_frame *f = ((scoped *) *state)->frame;
	const choir_shape image = CHOIR_SHAPE(2, 8, 8, 4);
	check(f, choir_conv2d_new("conv", 4, 6, 3, NULL), image, false);
	check(f, choir_conv3d_new("conv3", 4, 6, 3, NULL), CHOIR_SHAPE(2, 5, 5, 5, 4), false);
	check(f, choir_conv2d_transpose_new("transpose", 4, 6, 3, NULL), image, false);
	check(f, after_conv("max", choir_max_pool2d_new(2, 2, 0)), image, false);
	check(f, after_conv("average", choir_average_pool2d_new(2, 2, 0)), image, false);
	check(f, after_conv("mean", choir_global_average_pool_new()), image, false);
	check(f, after_conv("largest", choir_global_max_pool_new()), image, false);
	check(f, after_conv("up", choir_upsample_new(2, CHOIR_BILINEAR)), image, false);
	check(f, choir_batch_normalization_new("batch", 4, NULL), image, false);
	check(f, choir_group_normalization_new("group", 4, 2, 0), image, false);
}

TEST_WITHIN(sequences, scoped_open, scoped_close)
{
	choir_frame *f = ((scoped *) *state)->frame;
	const choir_shape sequence = CHOIR_SHAPE(2, 6, 8), bytes = CHOIR_SHAPE(2, 6);
	check(f, choir_conv1d_new("conv", 8, 6, 3, NULL), sequence, false);
	check(f, choir_conv1d_transpose_new("transpose", 8, 6, 3, NULL), sequence, false);
	check(f, choir_self_attention_new("attention", 8, 2, CHOIR_ON), sequence, false);
	check(f, choir_layer_normalization_new("norm", 8, 0), sequence, false);
	check(f, choir_rms_normalization_new("rms", 8, 0), sequence, false);
	check(f, choir_lstm_new("lstm", 8, 5), sequence, false);
	check(f, choir_gru_new("gru", 8, 5), sequence, false);
	check(f, choir_position_embedding_new("place", 6, 8), sequence, false);
	check(f, choir_residual_new(choir_dense_new("inside", 8, 8, CHOIR_SILU), NULL, CHOIR_RELU),
			sequence, false);
	choir_layer *table = choir_embedding_new("token", 10, 8);
	choir_layer *const tied[] = { table, choir_tied_embedding_new(table) };
	check(f, choir_sequential_new(2, tied), bytes, true);
	check(f, choir_embedding_new("large", 100000, 8), bytes, true);
}
