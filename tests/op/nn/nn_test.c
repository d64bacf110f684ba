// Norms, activations and losses of nn.h: against values worked out by hand, the formulas of the
// header, and finite differences; and what they refuse.
#include "op/given.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

enum { ROUNDS = 5 };

static choir_tensor *f64(given *g, choir_shape shape, const double *values)
{
	choir_tensor *t = choir_constant(g->frame, CHOIR_F64, shape, values);
	assert_non_null(t);
	return t;
}

TEST(activations_are_their_formulas)
{
	const double x[5] = { -30, -1.5, 0, 0.7, 40 };
	given g;

	given_open(&g, "cpu:0", 1);
	double gelu[5], silu[5], softplus[5];
	for (int i = 0; i < 5; i++) {
		gelu[i] = x[i] * 0.5 * (1 + erf(x[i] / sqrt(2)));
		silu[i] = x[i] / (1 + exp(-x[i]));
		softplus[i] = x[i] > 30 ? x[i] : log(1 + exp(x[i]));
	}
	for (int dtype = CHOIR_F32; dtype <= CHOIR_F64; dtype++) {
		choir_tensor *t = choir_cast(f64(&g, CHOIR_SHAPE(5), x), (choir_dtype) dtype);
		given_equal(choir_gelu(t), 5, gelu);
		given_equal(choir_silu(t), 5, silu);
		given_equal(choir_softplus(t), 5, softplus);
	}
	for (int dtype = CHOIR_F32; dtype <= CHOIR_F64; dtype++) {
		choir_tape *tape = choir_tape_begin(g.frame);
		const double ends[2] = { -(double) INFINITY, (double) INFINITY };
		choir_tensor *t = choir_cast(f64(&g, CHOIR_SHAPE(2), ends), (choir_dtype) dtype), *slope;
		assert_int_equal(choir_tape_gradient(tape, choir_gelu(t), 1, &t, &slope), CHOIR_OK);
		given_equal(slope, 2, (const double[]){ 0, 1 });
		choir_frame_clear(g.frame);
	}
	const double rows[6] = { 1000, 1000, 1001, -3, 0, 2 };
	double log_softmax[6];
	for (int i = 0; i < 6; i++) {
		const double *r = rows + i / 3 * 3;
		log_softmax[i] = rows[i] - r[2] - log(exp(r[0] - r[2]) + exp(r[1] - r[2]) + 1);
	}
	given_equal(choir_log_softmax(f64(&g, CHOIR_SHAPE(2, 3), rows)), 6, log_softmax);
	// The logarithm is below an ulp of the numbers, of which it is the whole result.
	choir_tensor *large = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 2), 1e8);
	given_equal(choir_log_softmax(large), 2, (const double[]){ -log(2), -log(2) });
	assert_null(choir_log_softmax(choir_fill(g.frame, CHOIR_F64, CHOIR_SCALAR, 1)));
	given_failure(&g, CHOIR_INVALID, "log_softmax:*scalar");
	given_close(&g);
}

static choir_tensor *activate(choir_tensor *const in[], void *user)
{
	return (*(choir_unary_op **) user)(in[0]);
}

TEST(gradients_of_activations)
{
	choir_unary_op *const ops[] = { choir_gelu, choir_silu, choir_softplus, choir_log_softmax };
	given g;

	given_open(&g, "cpu:0", 2);
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		for (int round = 0; round < ROUNDS; round++) {
			choir_unary_op *op = ops[i];
			choir_tensor *x = given_normal(&g, given_shape(&g, 1, 3, 5));
			given_check(&g, 1, &x, activate, &op);
			choir_frame_clear(g.frame);
		}
	given_close(&g);
}

TEST(convolutions_by_hand)
{
	const double sequence[5] = { 1, 2, 3, 4, 5 };
	given g;

	given_open(&g, "cpu:0", 9);
	choir_tensor *x = f64(&g, CHOIR_SHAPE(1, 5, 1), sequence);
	choir_tensor *k = f64(&g, CHOIR_SHAPE(2, 1, 1), (const double[]){ 10, 1 });
	given_equal(choir_conv1d(x, k, NULL), 4, (const double[]){ 12, 23, 34, 45 });
	// Causal, two apart: the first sees itself alone.
	given_equal(choir_conv1d(x, k,
						CHOIR_OPTIONS(choir_conv_options, .dilation = 2, .pad_before = { 2 })),
			5, (const double[]){ 1, 2, 13, 24, 35 });
	given_equal(
			choir_conv1d(x, k,
					CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = CHOIR_PADDING_SAME)),
			3, (const double[]){ 12, 34, 50 });
	given_equal(choir_conv1d(x, k, CHOIR_OPTIONS(choir_conv_options, .padding = 1)), 6,
			(const double[]){ 1, 12, 23, 34, 45, 50 });
	// Two groups of two channels: the second result sees the last two.
	x = f64(&g, CHOIR_SHAPE(1, 1, 1, 4), sequence);
	k = f64(&g, CHOIR_SHAPE(1, 1, 2, 2), (const double[]){ 1, 10, 2, 20 });
	given_equal(choir_conv2d(x, k, CHOIR_OPTIONS(choir_conv_options, .groups = 2)), 2,
			(const double[]){ 5, 110 });
	assert_null(choir_conv2d(x, k, NULL));
	given_failure(&g, CHOIR_INVALID, "conv2d:*[1, 1, 1, 4]*[1, 1, 2, 2]");
	x = f64(&g, CHOIR_SHAPE(1, 5, 1), sequence);
	k = f64(&g, CHOIR_SHAPE(2, 1, 1), sequence);
	assert_null(choir_conv1d(x, k, CHOIR_OPTIONS(choir_conv_options, .dilation = 5)));
	given_failure(&g, CHOIR_INVALID, "conv1d:*dilation 5");
	given_close(&g);
}

// Options that functions refuse, and what the text says of each.
TEST(refused_options_of_convolutions)
{
	const choir_conv_options refused[] = {
		{ .stride = -1 },
		{ .dilation = -1 },
		{ .groups = -3 },
		{ .padding = -2 },
		{ .pad_before = { 0, -1 } },
		{ .padding = CHOIR_PADDING_SAME, .pad_after = { 2 } },
		{ .activation = (choir_activation) 77 },
		{ .bias = CHOIR_ON },
		{ .bias = (choir_toggle) 5 },
	};
	const char *const texts[] = { "stride*-1", "dilation*-1", "groups*-3", "padding*-2",
		"pad_before[1]*-1", "pad_after[0]*2*SAME", "activation 77", "bias*choir_bias_add",
		"bias*5" };
	char text[64];
	given g;

	given_open(&g, "cpu:0", 1);
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		for (int axes = 1; axes <= 2; axes++) {
			choir_conv_options o = refused[i];
			o.size = sizeof o;
			choir_tensor *x = choir_fill(g.frame, CHOIR_F32,
					axes == 1 ? CHOIR_SHAPE(1, 5, 1) : CHOIR_SHAPE(1, 5, 5, 1), 1);
			choir_tensor *k = choir_fill(g.frame, CHOIR_F32,
					axes == 1 ? CHOIR_SHAPE(2, 1, 1) : CHOIR_SHAPE(2, 2, 1, 1), 1);
			assert_null(axes == 1 ? choir_conv1d(x, k, &o) : choir_conv2d(x, k, &o));
			snprintf(text, sizeof text, "conv%dd:*%s", axes, texts[i]);
			given_failure(&g, CHOIR_INVALID, text);
		}
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 5, 1), 1);
	choir_tensor *k = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2, 1, 1), 1);
	assert_null(choir_conv1d(x, k, CHOIR_OPTIONS(choir_conv_options, .pad_after[1] = 3)));
	given_failure(&g, CHOIR_INVALID, "conv1d:*pad_after[1]*3");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 5, 1), 1);
	assert_null(choir_conv1d(x, choir_reshape(x, CHOIR_SHAPE(1, 1, 5, 1)), NULL));
	given_failure(&g, CHOIR_INVALID, "conv1d:*[1, 5, 1]*[1, 1, 5, 1]");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 5, 1), 1);
	assert_null(choir_conv2d(x, choir_reshape(x, CHOIR_SHAPE(1, 1, 5, 1)), NULL));
	given_failure(&g, CHOIR_INVALID, "conv2d:*[1, 5, 1]*[1, 1, 5, 1]");
	given_close(&g);
}

TEST(norms_of_rows)
{
	const double x[8] = { 1, 2, 3, 6, -1, -1, -1, -1 };
	given g;

	given_open(&g, "cpu:0", 3);
	for (int dtype = CHOIR_F32; dtype <= CHOIR_F64; dtype++) {
		choir_tensor *t = choir_cast(f64(&g, CHOIR_SHAPE(2, 4), x), (choir_dtype) dtype);
		choir_tensor *scale = choir_cast(
				f64(&g, CHOIR_SHAPE(4), (const double[]){ 1, 2, 1, -1 }), (choir_dtype) dtype);
		choir_tensor *offset = choir_cast(
				f64(&g, CHOIR_SHAPE(4), (const double[]){ 0, 0, 5, 1 }), (choir_dtype) dtype);
		// The first row: mean 3, variance 3.5; the mean of squares is 12.5.
		const double s = 1 / sqrt(3.5 + 0.5), r = 1 / sqrt(12.5 + 0.5);
		given_equal(choir_layer_norm(t, scale, offset, 0.5), 8,
				(const double[]){ -2 * s, -2 * s, 5, 1 - 3 * s, 0, 0, 5, 1 });
		const double one = 1 / sqrt(1.5);
		given_equal(choir_rms_norm(t, scale, 0.5), 8,
				(const double[]){ r, 4 * r, 3 * r, -6 * r, -one, -2 * one, -one, one });
	}
	given_close(&g);
}

static choir_tensor *layer_norm(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_layer_norm(in[0], in[1], in[2], 1e-5);
}

static choir_tensor *rms_norm(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_rms_norm(in[0], in[1], 1e-5);
}

// Adds a part that is there each time, as another replica would.
static choir_tensor *add_more(choir_tensor *t, void *user)
{
	(void) user;
	return choir_scale(t, 2);
}

static choir_tensor *batch_norm(choir_tensor *const in[], void *user)
{
	return choir_batch_norm(in[0], in[1], in[2],
			CHOIR_OPTIONS(
					choir_batch_norm_options, .epsilon = 1e-5, .sum = user ? add_more : NULL));
}

TEST(gradients_of_norms)
{
	given g;

	given_open(&g, "cpu:0", 4);
	for (int round = 0; round < 2 * ROUNDS; round++) {
		choir_shape shape = given_shape(&g, 1, 3, 4);
		shape.dim[shape.rank++] = round % 2 ? given_size(&g, 3, 20) : 67;
		shape.dim[0] += 2;
		const choir_shape c = CHOIR_SHAPE(shape.dim[shape.rank - 1]);
		choir_tensor *const in[] = { given_normal(&g, shape), given_normal(&g, c),
			given_normal(&g, c) };
		if (choir_shape_elements(&shape) < 1000) {
			given_check(&g, 3, in, layer_norm, NULL);
			given_check(&g, 2, in, rms_norm, NULL);
			given_check(&g, 3, in, batch_norm, NULL);
			given_check(&g, 3, in, batch_norm, &g); // twice the same rows: the same result
		}
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

TEST(norms_of_channels)
{
	const double x[6] = { 1, 10, 2, 10, 6, 40 };
	given g;

	given_open(&g, "cpu:0", 5);
	choir_tensor *mean, *variance;
	choir_batch_norm_options o = {
		.size = sizeof o, .epsilon = CHOIR_ZERO, .mean = &mean, .variance = &variance
	};
	choir_tensor *t = f64(&g, CHOIR_SHAPE(3, 2), x);
	choir_tensor *scale = f64(&g, CHOIR_SHAPE(2), (const double[]){ 1, 2 });
	choir_tensor *offset = f64(&g, CHOIR_SHAPE(2), (const double[]){ 0, -1 });
	const double a = 1 / sqrt(14.0 / 3), b = 2 / sqrt(200);
	given_equal(choir_batch_norm(t, scale, offset, &o), 6,
			(const double[]){ -2 * a, -10 * b - 1, -a, -10 * b - 1, 3 * a, 20 * b - 1 });
	given_equal(mean, 2, (const double[]){ 3, 20 });
	given_equal(variance, 2, (const double[]){ 14.0 / 3, 200 });
	// Of nothing: no result, and moments of 0.
	t = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(0, 2), 1);
	assert_int_equal(choir_tensor_shape(choir_batch_norm(t, scale, offset, &o))->dim[0], 0);
	given_equal(mean, 2, (const double[]){ 0, 0 });
	given_equal(variance, 2, (const double[]){ 0, 0 });
	// A large mean costs no digits: sums are in f64.
	const float far[4] = { 10000, 10001, 10002, 10001 };
	t = choir_constant(g.frame, CHOIR_F32, CHOIR_SHAPE(4, 1), far);
	choir_tensor *one = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1), 1);
	given_equal(choir_batch_norm(t, one, choir_scale(one, 0), &o), 4,
			(const double[]){ -sqrt(2), 0, sqrt(2), 0 });
	given_equal(variance, 1, (const double[]){ 0.5 });
	given_close(&g);
}

static choir_tensor *square_error(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_mean_squared_error(in[1], in[0]);
}

static choir_tensor *huber(choir_tensor *const in[], void *user)
{
	return choir_huber(in[1], in[0], *(const double *) user);
}

static choir_tensor *binary(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_sigmoid_cross_entropy(in[1], in[0]);
}

static choir_tensor *hinge(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_hinge(in[1], in[0]);
}

static choir_tensor *divergence(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_kl_divergence(choir_softmax(in[1]), choir_softmax(in[0]));
}

static choir_tensor *smoothed(choir_tensor *const in[], void *user)
{
	return choir_sparse_softmax_cross_entropy_smoothed(in[1], in[0], *(const double *) user);
}

TEST(gradients_of_losses)
{
	double delta = 0.8, smoothing[] = { 0, 0.1, 1 };
	given g;

	given_open(&g, "cpu:0", 6);
	for (int round = 0; round < ROUNDS; round++) {
		const choir_shape shape = given_shape(&g, 1, 3, 4);
		choir_tensor *const in[] = { given_normal(&g, shape), given_normal(&g, shape) };
		given_check(&g, 2, in, square_error, NULL);
		given_check(&g, 2, in, huber, &delta);
		given_check(&g, 2, in, binary, NULL);
		given_check(&g, 2, in, hinge, NULL);
		const int64_t n = given_size(&g, 1, 4), classes = given_size(&g, 2, 5);
		choir_tensor *labels = given_labels(&g, 2 * n, classes);
		choir_tensor *const classed[] = { given_normal(&g, CHOIR_SHAPE(n, 2, classes)),
			choir_reshape(labels, CHOIR_SHAPE(n, 2)) };
		given_check(&g, 2, classed, smoothed, &smoothing[round % 3]);
		choir_tensor *const mixed[] = { classed[0], given_normal(&g, CHOIR_SHAPE(n, 2, classes)) };
		given_check(&g, 2, mixed, divergence, NULL);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

static choir_tensor *loss_of(int kind, choir_tensor *targets, choir_tensor *predictions)
{
	return kind == 0	? choir_mean_squared_error(targets, predictions)
			: kind == 1 ? choir_huber(targets, predictions, 1)
			: kind == 2 ? choir_sigmoid_cross_entropy(targets, predictions)
			: kind == 3 ? choir_hinge(targets, predictions)
						: choir_kl_divergence(targets, predictions);
}

// As in Keras, a last axis of 1 may be missing; other shapes are refused, not broadcast.
TEST(targets_and_predictions_have_one_shape)
{
	static const char *const names[] = {
		"mean_squared_error:", "huber:", "sigmoid_cross_entropy:", "hinge:", "kl_divergence:"
	};
	const choir_shape row = CHOIR_SHAPE(3), column = CHOIR_SHAPE(3, 1),
					  block = CHOIR_SHAPE(2, 3, 1);
	const double t[6] = { 1, 0, 1, 1, 0, 0 }, p[6] = { 2, 0.5, -1, 0.25, 3, 1 };
	for (int kind = 0; kind < 5; kind++) {
		given g;
		given_open(&g, "cpu:0", 1);
		choir_tensor *equal = loss_of(kind, f64(&g, column, t), f64(&g, column, p));
		const double *needed = choir_tensor_data(equal);
		given_equal(loss_of(kind, f64(&g, row, t), f64(&g, column, p)), 3, needed);
		if (kind < 4) // of a distribution
			given_equal(loss_of(kind, f64(&g, column, t), f64(&g, row, p)), 3, needed);
		choir_tensor *flat = loss_of(kind, f64(&g, CHOIR_SHAPE(2, 3), t), f64(&g, block, p));
		assert_int_equal(choir_tensor_shape(flat)->dim[0], 2);
		assert_int_equal(choir_tensor_shape(flat)->rank, 1);
		assert_non_null(loss_of(kind, f64(&g, CHOIR_SCALAR, t), f64(&g, block, p)));
		assert_null(loss_of(kind, f64(&g, row, t), f64(&g, CHOIR_SHAPE(2, 3), p)));
		given_failure(&g, CHOIR_INVALID, names[kind]);
		assert_null(loss_of(kind, f64(&g, CHOIR_SHAPE(1, 1), t), f64(&g, column, p)));
		given_failure(&g, CHOIR_INVALID, "targets are [1, 1] and predictions [3, 1]");
		assert_null(loss_of(kind, choir_cast(f64(&g, column, t), CHOIR_I64), f64(&g, column, p)));
		given_failure(&g, CHOIR_INVALID, names[kind]);
		assert_null(loss_of(kind, choir_cast(f64(&g, column, t), CHOIR_I64), f64(&g, column, p)));
		given_failure(&g, CHOIR_INVALID, "targets are i64 and predictions f64");
		given_close(&g);
	}
}

TEST(losses_are_their_formulas)
{
	const double x[4] = { 0.5, -3, 2, 0 }, target[4] = { 0, 0, 0, 1 };
	given g;

	given_open(&g, "cpu:0", 7);
	choir_tensor *a = f64(&g, CHOIR_SHAPE(2, 2), x), *b = f64(&g, CHOIR_SHAPE(2, 2), target);
	given_equal(choir_huber(b, a, 1), 2, (const double[]){ (0.125 + 2.5) / 2, (1.5 + 0.5) / 2 });
	given_equal(choir_sigmoid_cross_entropy(b, a), 2,
			(const double[]){
					(log(1 + exp(0.5)) + log(1 + exp(-3))) / 2, (log(1 + exp(2)) + log(2)) / 2 });
	const double sides[4] = { 1, -1, -1, 1 };
	given_equal(choir_hinge(f64(&g, CHOIR_SHAPE(2, 2), sides), a), 2,
			(const double[]){ (0.5 + 0) / 2, (3 + 1) / 2.0 });
	const double truth[4] = { 0.25, 0.75, 0, 1 }, guess[4] = { 0.5, 0.5, 0.5, 0.5 };
	given_equal(choir_kl_divergence(
						f64(&g, CHOIR_SHAPE(2, 2), truth), f64(&g, CHOIR_SHAPE(2, 2), guess)),
			2, (const double[]){ 0.25 * log(0.5) + 0.75 * log(1.5), log(2) + 1e-7 * log(2e-7) });
	// Far from the decision nothing overflows.
	const double far[2] = { 1000, -1000 }, sure[2] = { 1, 1 };
	given_equal(choir_sigmoid_cross_entropy(
						f64(&g, CHOIR_SHAPE(2), sure), f64(&g, CHOIR_SHAPE(2), far)),
			2, (const double[]){ 0, 1000 });
	const double p[3] = { 1 / (1 + exp(1) + exp(2)), exp(1) / (1 + exp(1) + exp(2)),
		exp(2) / (1 + exp(1) + exp(2)) };
	choir_tensor *logits = f64(&g, CHOIR_SHAPE(1, 3), (const double[]){ 0, 1, 2 });
	choir_tensor *label = choir_constant(g.frame, CHOIR_I32, CHOIR_SHAPE(1), (int32_t[]){ 1 });
	given_equal(choir_sparse_softmax_cross_entropy_smoothed(label, logits, 0.3), 1,
			(const double[]){ -0.1 * log(p[0]) - 0.8 * log(p[1]) - 0.1 * log(p[2]) });
	given_equal(choir_sparse_softmax_cross_entropy(
						choir_reshape(label, CHOIR_SHAPE(1, 1)), logits), // as in Keras
			1, (const double[]){ -log(p[1]) });
	// Classes that are as likely as each other, however large the numbers.
	choir_tensor *large = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 1000), 123456792);
	given_equal(
			choir_sparse_softmax_cross_entropy(label, large), 1, (const double[]){ log(1000) });
	given_equal(choir_sparse_softmax_cross_entropy_smoothed(label, large, 0.3), 1,
			(const double[]){ log(1000) });
	given_close(&g);
}

TEST(what_does_not_fit_is_refused)
{
	given g;

	given_open(&g, "cpu:0", 8);
	choir_frame *f = g.frame;
	choir_tensor *x, *c;
#define FRESH() \
	(x = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 3), 1), \
			c = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 1))
	FRESH();
	assert_null(choir_layer_norm(x, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1), c, 0));
	given_failure(&g, CHOIR_INVALID, "layer_norm:*[2, 3]*[2]*[channels]");
	FRESH();
	assert_null(choir_layer_norm(x, c, choir_fill(f, CHOIR_F64, CHOIR_SHAPE(3), 1), 0));
	given_failure(&g, CHOIR_INVALID, "layer_norm:*f32*f64");
	FRESH();
	assert_null(choir_rms_norm(x, c, (double) NAN));
	given_failure(&g, CHOIR_INVALID, "rms_norm:*0");
	FRESH();
	assert_null(choir_batch_norm(choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 1), c, c, NULL));
	given_failure(&g, CHOIR_INVALID, "batch_norm:*[]*[.., channels]");
	FRESH();
	assert_null(choir_batch_norm(x, c, c, &(choir_batch_norm_options){ .epsilon = 1 }));
	given_failure(&g, CHOIR_INVALID, "batch_norm:*0");
	choir_tensor *mean, *variance;
	choir_batch_norm_options o = { .size = sizeof o, .mean = &mean, .variance = &variance };
	static const char *const why[] = { "reshape", "batch_norm:*scale of [2, 3] is [2]",
		"batch_norm: epsilon*-3*0 or more" };
	for (int i = 0; i < 3; i++) { // outputs are NULL, whatever was wrong
		FRESH();
		mean = variance = x;
		o.epsilon = i == 2 ? -3 : 0;
		assert_null(choir_batch_norm(i == 0 ? choir_reshape(x, CHOIR_SHAPE(7)) : x,
				i == 1 ? choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1) : c, c, &o));
		assert_null(mean);
		assert_null(variance);
		assert_null(choir_square(mean));
		given_failure(&g, CHOIR_INVALID, why[i]);
	}
	FRESH();
	assert_null(choir_huber(x, x, 0));
	given_failure(&g, CHOIR_INVALID, "huber:*delta*0;");
	FRESH();
	assert_null(choir_kl_divergence(f64(&g, CHOIR_SHAPE(1), (const double[]){ 1 }),
			f64(&g, CHOIR_SHAPE(1), (const double[]){ 1 })));
	given_failure(&g, CHOIR_INVALID, "kl_divergence*1 axes");
	FRESH();
	assert_null(choir_sparse_softmax_cross_entropy_smoothed(given_labels(&g, 2, 3), x, 1.5));
	given_failure(&g, CHOIR_INVALID, "sparse_softmax_cross_entropy_smoothed:*1.5*0 to 1");
	FRESH();
	assert_null(choir_sigmoid_cross_entropy(
			choir_mean(x, CHOIR_ALL_AXES), choir_mean(x, CHOIR_ALL_AXES)));
	given_failure(&g, CHOIR_INVALID, "sigmoid_cross_entropy:*scalar");
	assert_null(choir_layer_norm(NULL, NULL, NULL, 0));
	given_close(&g);
}
