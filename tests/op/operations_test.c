// What operations give, against values worked out by hand, and what they refuse.
#include "op/given.h"
#include "test.h"

#include <math.h>

static choir_tensor *f32(given *g, choir_shape shape, const float *values)
{
	choir_tensor *t = choir_constant(g->frame, CHOIR_F32, shape, values);
	assert_non_null(t);
	return t;
}

static const choir_conv_options plain = { .stride = 1, .dilation = 1, .groups = 1 };
static const choir_conv_options rectified = {
	.stride = 1, .dilation = 1, .groups = 1, .activation = CHOIR_RELU
};
static const float counting[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

TEST(elementwise)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = f32(&g, CHOIR_SHAPE(2, 1), (const float[]){ 1, 4 });
	choir_tensor *b = f32(&g, CHOIR_SHAPE(3), (const float[]){ 2, -2, 0.5f });
	given_equal(choir_add(a, b), 6, (const double[]){ 3, -1, 1.5, 6, 2, 4.5 });
	given_equal(choir_subtract(a, b), 6, (const double[]){ -1, 3, 0.5, 2, 6, 3.5 });
	given_equal(choir_multiply(a, b), 6, (const double[]){ 2, -2, 0.5, 8, -8, 2 });
	given_equal(choir_divide(a, b), 6, (const double[]){ 0.5, -0.5, 2, 2, -2, 8 });
	given_equal(choir_maximum(a, b), 6, (const double[]){ 2, 1, 1, 4, 4, 4 });
	given_equal(choir_sqrt(a), 2, (const double[]){ 1, 2 });
	given_equal(choir_relu(b), 3, (const double[]){ 2, 0, 0.5 });
	given_equal(choir_scale(b, -3), 3, (const double[]){ -6, 6, -1.5 });
	given_equal(choir_sigmoid(b), 3, (const double[]){ 0.880797078, 0.119202922, 0.622459331 });
	given_equal(choir_gelu_tanh(b), 3, (const double[]){ 1.954597695, -0.045402306, 0.345714038 });
	assert_null(choir_scale(choir_fill(g.frame, CHOIR_U8, CHOIR_SHAPE(2), 1), 0.5));
	given_failure(&g, CHOIR_INVALID, "scale:*0.5*u8");
	given_close(&g);
}

// In f32, of which 257 has too many digits for bf16: it is rounded to even.
TEST(halves_are_added)
{
	enum { N = 600 };
	given g;

	given_open(&g, "cpu:0", 1);
	float x[2 * N];
	double sum[2 * N];
	for (int i = 0; i < 2 * N; i++) {
		x[i] = (float) (i % 8);
		sum[i] = x[i] + x[i % N];
	}
	const choir_shape shape = CHOIR_SHAPE(2, N);
	for (int dtype = CHOIR_F16; dtype <= CHOIR_BF16; dtype++) {
		choir_tensor *a = choir_cast(f32(&g, shape, x), (choir_dtype) dtype);
		choir_tensor *b = choir_cast(f32(&g, CHOIR_SHAPE(N), x), (choir_dtype) dtype);
		given_equal(choir_add(a, b), 2 * N, sum);
		given_equal(choir_add(b, a), 2 * N, sum);
		const double first = dtype == CHOIR_F16 ? 257 : 256;
		choir_tensor *one = choir_fill(g.frame, (choir_dtype) dtype, CHOIR_SHAPE(2, 1), 1);
		choir_tensor *large = choir_fill(g.frame, (choir_dtype) dtype, CHOIR_SHAPE(2), 256);
		given_equal(choir_add(large, one), 4, (const double[]){ first, first, first, first });
	}
	given_close(&g);
}

TEST(reductions)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = f32(&g, CHOIR_SHAPE(2, 3, 2), counting);
	given_equal(choir_sum(x, CHOIR_ALL_AXES), 1, (const double[]){ 78 });
	given_equal(choir_sum(x, CHOIR_AXES(0, -1)), 3, (const double[]){ 18, 26, 34 });
	given_equal(choir_mean(x, CHOIR_AXIS(-2)), 4, (const double[]){ 3, 4, 9, 10 });
	assert_ptr_equal(choir_sum(x, CHOIR_NO_AXIS), x);
	const int64_t whole[4] = { 1, 2, 4, INT64_MAX };
	choir_tensor *i = choir_constant(g.frame, CHOIR_I64, CHOIR_SHAPE(2, 2), whole);
	choir_tensor *mean = choir_mean(i, CHOIR_AXIS(1));
	assert_int_equal(choir_tensor_dtype(mean), CHOIR_F64);
	assert_true(choir_tensor_number(chi_tensor_rows(g.frame, mean, 0, 1)) == 1.5);
	choir_tensor *bytes = choir_constant(g.frame, CHOIR_U8, CHOIR_SHAPE(2), "\377\376");
	mean = choir_mean(bytes, CHOIR_ALL_AXES);
	assert_int_equal(choir_tensor_dtype(mean), CHOIR_F32);
	given_equal(mean, 1, (const double[]){ 254.5 });
	mean = choir_mean(choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(41), 1), CHOIR_ALL_AXES);
	assert_true(choir_tensor_number(mean) == 1); // 41 times 1 / 41 is less
	choir_tensor *peaks = f32(&g, CHOIR_SHAPE(2, 3), (const float[]){ 1, 5, 5, 0, -1, 0 });
	given_equal(choir_argmax(peaks, -1), 2, (const double[]){ 1, 0 });
	given_equal(choir_argmax(peaks, 0), 3, (const double[]){ 0, 0, 0 });
	assert_int_equal(choir_tensor_dtype(choir_argmax(peaks, 0)), CHOIR_I64);
	assert_null(choir_sum(x, CHOIR_AXIS(3)));
	given_failure(&g, CHOIR_INVALID, "sum:*[2, 3, 2]*axis 3");
	assert_null(choir_mean(f32(&g, CHOIR_SHAPE(2), counting), CHOIR_AXIS(-2)));
	given_failure(&g, CHOIR_INVALID, "mean:*[2]*axis -2");
	assert_null(choir_argmax(f32(&g, CHOIR_SHAPE(0), counting), 0));
	given_failure(&g, CHOIR_INVALID, "argmax:*axis 0*[0]");
	assert_null(choir_argmax(f32(&g, CHOIR_SCALAR, counting), 0));
	given_failure(&g, CHOIR_INVALID, "argmax:*[]*axis 0");
	given_close(&g);
}

TEST(products)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = f32(&g, CHOIR_SHAPE(2, 3), counting),
				 *b = f32(&g, CHOIR_SHAPE(3, 2), counting);
	given_equal(choir_matmul(a, b, CHOIR_TRANSPOSED_NONE), 4, (const double[]){ 22, 28, 49, 64 });
	given_equal(choir_matmul(a, a, CHOIR_TRANSPOSED_B), 4, (const double[]){ 14, 32, 32, 77 });
	given_equal(choir_matmul(b, b, CHOIR_TRANSPOSED_A), 4, (const double[]){ 35, 44, 44, 56 });
	choir_tensor *many = f32(&g, CHOIR_SHAPE(2, 1, 2, 3), counting);
	choir_tensor *shared = choir_matmul(many, b, CHOIR_TRANSPOSED_NONE);
	assert_int_equal(choir_tensor_shape(shared)->rank, 4);
	given_equal(shared, 8, (const double[]){ 22, 28, 49, 64, 76, 100, 103, 136 });
	choir_tensor *repeated =
			choir_matmul(a, f32(&g, CHOIR_SHAPE(2, 1, 3, 1), counting), CHOIR_TRANSPOSED_NONE);
	assert_int_equal(choir_tensor_shape(repeated)->rank, 4);
	given_equal(repeated, 4, (const double[]){ 14, 32, 32, 77 });
	repeated = choir_matmul(f32(&g, CHOIR_SHAPE(2, 1, 1, 1), counting),
			f32(&g, CHOIR_SHAPE(1, 3, 1, 1), counting), CHOIR_TRANSPOSED_B);
	given_equal(repeated, 6, (const double[]){ 1, 2, 3, 2, 4, 6 });
	choir_tensor *bias = f32(&g, CHOIR_SHAPE(2), (const float[]){ -30, 1 });
	given_equal(choir_bias_add(b, bias), 6, (const double[]){ -29, 3, -27, 5, -25, 7 });
	given_equal(chi_dense(a, b, bias, CHOIR_RELU), 4, (const double[]){ 0, 29, 19, 65 });
	choir_tensor *none = choir_constant(g.frame, CHOIR_F32, CHOIR_SHAPE(2, 0), NULL);
	given_equal(choir_matmul(none, none, CHOIR_TRANSPOSED_B), 4, (const double[4]){ 0 });

	assert_null(choir_matmul(a, a, CHOIR_TRANSPOSED_NONE));
	given_failure(&g, CHOIR_INVALID, "matmul:*[2, 3]");
	a = f32(&g, CHOIR_SHAPE(2, 3), counting);
	assert_null(choir_matmul(a, f32(&g, CHOIR_SHAPE(5, 2), counting), CHOIR_TRANSPOSED_B));
	given_failure(&g, CHOIR_INVALID, "matmul:*[2, 3]*[5, 2]");
	assert_null(choir_matmul(f32(&g, CHOIR_SHAPE(3), counting), f32(&g, CHOIR_SHAPE(3), counting),
			CHOIR_TRANSPOSED_NONE));
	given_failure(&g, CHOIR_INVALID, "matmul:*[3]");
	assert_null(choir_matmul(f32(&g, CHOIR_SHAPE(2, 1, 1), counting),
			f32(&g, CHOIR_SHAPE(3, 1, 1), counting), CHOIR_TRANSPOSED_NONE));
	given_failure(&g, CHOIR_INVALID, "matmul:*[2, 1, 1]*[3, 1, 1]*does not fit");
	assert_null(choir_bias_add(
			f32(&g, CHOIR_SHAPE(2, 3), counting), f32(&g, CHOIR_SHAPE(2), counting)));
	given_failure(&g, CHOIR_INVALID, "bias_add:*[2]*[3]");
	a = f32(&g, CHOIR_SHAPE(2, 2), counting);
	assert_null(choir_matmul(a, a, (choir_transposed) 5));
	given_failure(&g, CHOIR_INVALID, "matmul:*transposed 5");
	a = f32(&g, CHOIR_SHAPE(2, 2), counting);
	assert_null(chi_dense(a, a, f32(&g, CHOIR_SHAPE(3), counting), CHOIR_LINEAR));
	given_failure(&g, CHOIR_INVALID, "dense:*[3]*[2]");
	given_close(&g);
}

// Kernels of products apply the first four, operations the others.
TEST(activations_of_products)
{
	given g;

	given_open(&g, "cpu:0", 1);
	for (choir_activation a = CHOIR_LINEAR; a <= CHOIR_SILU; a++) {
		choir_conv_options o = plain;
		o.activation = a;
		choir_tensor *x = f32(&g, CHOIR_SHAPE(1, 2), (const float[]){ 1, -2 });
		choir_tensor *ones = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2, 1), 1);
		choir_tensor *bias = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1), 0.5);
		choir_tensor *z = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1), -0.5);
		const double minus_half = *(const float *) choir_tensor_data(chi_activation_apply(a, z));
		assert_int_equal(chi_activation_fused(a), a <= CHOIR_SIGMOID ? a : CHOIR_LINEAR);
		given_equal(chi_dense(x, ones, bias, a), 1, &minus_half);
		given_equal(chi_conv2d(choir_reshape(x, CHOIR_SHAPE(1, 1, 1, 2)),
							choir_reshape(ones, CHOIR_SHAPE(1, 1, 2, 1)), bias, &o),
				1, &minus_half);
	}
	given_close(&g);
}

TEST(convolutions)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = f32(&g, CHOIR_SHAPE(1, 3, 3, 1), counting);
	choir_tensor *ones = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2, 2, 1, 1), 1);
	given_equal(choir_conv2d(x, ones, NULL), 4, (const double[]){ 12, 16, 24, 28 });
	// SAME puts the odd zero at the bottom and on the right.
	given_equal(choir_conv2d(
						x, ones, CHOIR_OPTIONS(choir_conv_options, .padding = CHOIR_PADDING_SAME)),
			9, (const double[]){ 12, 16, 9, 24, 28, 15, 15, 17, 9 });
	given_equal(
			choir_conv2d(x, ones,
					CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = CHOIR_PADDING_SAME)),
			4, (const double[]){ 12, 9, 15, 9 });
	given_equal(
			choir_conv2d(x, ones, CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = 1)), 4,
			(const double[]){ 1, 5, 11, 28 });
	choir_tensor *bias = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1), -20);
	given_equal(chi_conv2d(x, ones, bias, &rectified), 4, (const double[]){ 0, 0, 4, 8 });
	assert_null(choir_conv2d(x, ones, CHOIR_OPTIONS(choir_conv_options, .stride = -2)));
	given_failure(&g, CHOIR_INVALID, "conv2d:*stride*-2");
	x = f32(&g, CHOIR_SHAPE(1, 2, 2, 2), counting),
	ones = f32(&g, CHOIR_SHAPE(1, 1, 1, 2), counting);
	assert_null(choir_conv2d(x, ones, NULL));
	given_failure(&g, CHOIR_INVALID, "conv2d:*[1, 2, 2, 2]*[1, 1, 1, 2]");
	x = f32(&g, CHOIR_SHAPE(1, 2, 2, 1), counting),
	ones = f32(&g, CHOIR_SHAPE(3, 3, 1, 1), counting);
	assert_null(choir_conv2d(x, ones, NULL));
	given_failure(&g, CHOIR_INVALID, "result");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 0, 2, 1), 0),
	ones = f32(&g, CHOIR_SHAPE(3, 3, 1, 1), counting);
	assert_null(choir_conv2d(x, ones, CHOIR_OPTIONS(choir_conv_options, .padding = 2)));
	given_failure(&g, CHOIR_INVALID, "[1, 0, 2, 1]*[3, 3, 1, 1]");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40, 0), 0);
	ones = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(0, 3), 0);
	assert_null(choir_matmul(x, ones, CHOIR_TRANSPOSED_NONE));
	assert_int_equal(choir_frame_status(g.frame), CHOIR_INVALID);
	choir_frame_clear(g.frame);
	assert_null(choir_conv2d(NULL, f32(&g, CHOIR_SHAPE(1, 1, 1, 1), counting), NULL));
	assert_int_equal(choir_frame_status(g.frame), CHOIR_INVALID);
	choir_frame_clear(g.frame);
	x = f32(&g, CHOIR_SHAPE(1, 2, 2, 1), counting),
	ones = f32(&g, CHOIR_SHAPE(1, 1, 1, 2), counting);
	assert_null(chi_conv2d(x, ones, f32(&g, CHOIR_SHAPE(1), counting), &plain));
	given_failure(&g, CHOIR_INVALID, "conv2d:*[1]*[2]");
	given_close(&g);
}

// A NAN must be seen, also where the ReLU is part of what comes before it. -1 becomes 0.
TEST(a_nan_is_not_rectified)
{
	enum { MAX = 16 };

	for (int64_t k = 1; k <= MAX; k *= MAX) {
		given g;
		given_open(&g, "cpu:0", 1);
		choir_tensor *bias = f32(&g, CHOIR_SHAPE(2), (const float[]){ NAN, -1 });
		choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 4, 4, k), 0);
		choir_tensor *w = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(k, 2), 0);
		choir_tensor *filter = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(3, 3, k, 2), 0);
		const float *y = choir_tensor_data(chi_dense(x, w, bias, CHOIR_RELU));
		assert_true(isnan(y[0]) && y[1] == 0);
		y = choir_tensor_data(chi_conv2d(x, filter, bias, &rectified));
		assert_true(isnan(y[0]) && y[1] == 0);
		given_close(&g);
	}
}

TEST(pools)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = f32(&g, CHOIR_SHAPE(1, 3, 3, 1), counting);
	given_equal(choir_max_pool2d(x, 2, 1, 0), 4, (const double[]){ 5, 6, 8, 9 });
	given_equal(
			choir_max_pool2d(choir_scale(x, -1), 2, 2, -1), 4, (const double[]){ -1, -3, -7, -9 });
	given_equal(choir_average_pool2d(x, 2, 2, -1), 4, (const double[]){ 3, 4.5, 7.5, 9 });
	given_equal(choir_average_pool2d(x, 3, 3, 1), 1, (const double[]){ 3 });
	assert_null(choir_max_pool2d(x, 2, 1, 2));
	given_failure(&g, CHOIR_INVALID, "max_pool2d:*[1, 3, 3, 1]*size 2*stride 1*padding 2");
	assert_null(choir_average_pool2d(f32(&g, CHOIR_SHAPE(3), counting), 2, 1, 0));
	given_failure(&g, CHOIR_INVALID, "average_pool2d:*[3]");
	// Nothing but what does not count is no image, unless nothing comes of it.
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 0, 3, 1), 0);
	assert_int_equal(choir_tensor_shape(choir_max_pool2d(x, 2, 1, -1))->dim[1], 0);
	assert_null(choir_max_pool2d(x, 2, 1, 1));
	given_failure(&g, CHOIR_INVALID, "max_pool2d:*[1, 0, 3, 1]*size 2");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 3, 0, 1), 0);
	assert_null(choir_average_pool2d(x, 2, 1, 1));
	given_failure(&g, CHOIR_INVALID, "average_pool2d:*[1, 3, 0, 1]*size 2");
	given_close(&g);
}

TEST(losses)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *logits = f32(&g, CHOIR_SHAPE(2, 2), (const float[]){ 0, 0, 1000, 0 });
	choir_tensor *labels = choir_constant(g.frame, CHOIR_U8, CHOIR_SHAPE(2), "\1\1");
	given_equal(choir_sparse_softmax_cross_entropy(labels, logits), 2,
			(const double[]){ log(2), 1000 });
	given_equal(choir_softmax(logits), 4, (const double[]){ 0.5, 0.5, 1, 0 });
	choir_tensor *x = f32(&g, CHOIR_SHAPE(2, 2), counting), *one = f32(&g, CHOIR_SCALAR, counting);
	given_equal(choir_mean_squared_error(one, x), 2, (const double[]){ 0.5, 6.5 });
	given_equal(choir_mean_squared_error(one, f32(&g, CHOIR_SHAPE(2), counting)), 2,
			(const double[]){ 0, 1 });
	labels = choir_constant(g.frame, CHOIR_U8, CHOIR_SHAPE(2), "\1\2");
	assert_null(choir_sparse_softmax_cross_entropy(labels, logits));
	given_failure(&g, CHOIR_INVALID, "softmax_cross_entropy:*label");
	x = f32(&g, CHOIR_SHAPE(2, 2), counting);
	assert_null(choir_sparse_softmax_cross_entropy(x, x));
	given_failure(&g, CHOIR_INVALID, "softmax_cross_entropy:*f32*u8*i32*i64");
	x = f32(&g, CHOIR_SHAPE(2, 2), counting);
	assert_null(choir_sparse_softmax_cross_entropy(
			choir_fill(g.frame, CHOIR_U8, CHOIR_SHAPE(3), 0), x));
	given_failure(&g, CHOIR_INVALID, "[2, 2]*[3]");
	x = f32(&g, CHOIR_SCALAR, counting);
	assert_null(choir_mean_squared_error(x, x));
	given_failure(&g, CHOIR_INVALID, "squared_error:*scalar");
	given_close(&g);
}

TEST(views_and_casts)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = f32(&g, CHOIR_SHAPE(2, 6), counting);
	choir_tensor *y = choir_reshape(x, CHOIR_SHAPE(3, CHOIR_UNKNOWN, 2));
	assert_ptr_equal(y->buffer, x->buffer);
	assert_int_equal(choir_tensor_shape(y)->dim[1], 2);
	choir_tensor *i = choir_cast(choir_scale(x, 0.5), CHOIR_I32);
	assert_int_equal(choir_tensor_dtype(i), CHOIR_I32);
	given_equal(chi_tensor_rows(g.frame, i, 0, 1), 6, (const double[]){ 0, 1, 1, 2, 2, 3 });
	assert_ptr_equal(choir_cast(x, CHOIR_F32), x);
	choir_tensor *counted = choir_with_count(x, 5);
	assert_int_equal(counted->count, 5);
	assert_int_equal(x->count, CHOIR_NONE);
	assert_null(choir_with_count(x, -1));
	given_failure(&g, CHOIR_INVALID, "with_count:*-1");
	x = f32(&g, CHOIR_SHAPE(2, 6), counting);
	assert_null(choir_reshape(x, CHOIR_SHAPE(5, CHOIR_UNKNOWN)));
	given_failure(&g, CHOIR_INVALID, "reshape:*[2, 6]*[5, -1]");
	x = f32(&g, CHOIR_SHAPE(2, 6), counting);
	assert_null(choir_reshape(x, CHOIR_SHAPE(CHOIR_UNKNOWN, CHOIR_UNKNOWN)));
	given_failure(&g, CHOIR_INVALID, "[-1, -1]");
	assert_null(choir_fill(g.frame, CHOIR_U8, CHOIR_SHAPE(1), 300));
	given_failure(&g, CHOIR_INVALID, "fill:*number 300*u8");
	assert_null(choir_fill(g.frame, (choir_dtype) 44, CHOIR_SHAPE(1), 300));
	given_failure(&g, CHOIR_INVALID, "dtype 44");
	given_close(&g);
}

TEST(random_numbers)
{
	enum { N = 20000 };
	given g;
	static double first[N], second[N];
	double sum = 0, squares = 0;

	given_open(&g, "cpu:0", 1);
	choir_frame *f = g.frame;
	assert_int_equal(choir_tensor_to_host(choir_random_normal(f, CHOIR_F64, CHOIR_SHAPE(N), 1),
							 first, sizeof(first)),
			CHOIR_OK);
	assert_int_equal(choir_tensor_to_host(choir_random_normal(f, CHOIR_F64, CHOIR_SHAPE(N), 1),
							 second, sizeof(second)),
			CHOIR_OK);
	for (int i = 0; i < N; i++) {
		assert_true(first[i] != second[i]); // another place in the program
		sum += first[i];
		squares += first[i] * first[i];
	}
	assert_true(fabs(sum / N) < 0.03 && fabs(squares / N - 1) < 0.04);
	f->random.place = 0;
	assert_int_equal(choir_tensor_to_host(choir_random_normal(f, CHOIR_F64, CHOIR_SHAPE(N), 1),
							 second, sizeof(second)),
			CHOIR_OK);
	assert_memory_equal(first, second, sizeof(first));
	f->random = (chi_random_key){ .replica = 1 };
	assert_int_equal(choir_tensor_to_host(choir_random_normal(f, CHOIR_F64, CHOIR_SHAPE(N), 1),
							 second, sizeof(second)),
			CHOIR_OK);
	assert_true(first[0] != second[0]);
	given_close(&g);
}

TEST(dropout)
{
	enum { N = 10000 };
	given g;
	static float kept[N];
	int zeros = 0;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(N), 3);
	assert_ptr_equal(choir_dropout(x, 0.25, 1), x); // nobody trains
	choir_tape_begin(g.frame);
	assert_ptr_equal(choir_dropout(x, 0, 1), x);
	assert_int_equal(
			choir_tensor_to_host(choir_dropout(x, 0.25, 1), kept, sizeof(kept)), CHOIR_OK);
	for (int i = 0; i < N; i++) {
		assert_true(kept[i] == 0 || fabsf(kept[i] - 4) < 1e-5f);
		zeros += kept[i] == 0;
	}
	assert_true(zeros > 0.23 * N && zeros < 0.27 * N);
	assert_null(choir_dropout(x, 1, 1));
	given_failure(&g, CHOIR_INVALID, "dropout:*rate*1;");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 3);
	assert_null(choir_dropout(x, (double) NAN, 1));
	given_failure(&g, CHOIR_INVALID, "dropout:");
	given_close(&g);
}
