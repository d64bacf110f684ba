// Mixed precision: the table of rules, what operations round and what they keep, gradients beside
// those of f32, and wrong use.
#include "op/given.h"
#include "op/kernel/kernel.h"
#include "op/plain/half.h"
#include "op/precision/precision.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const choir_dtype halves[] = { CHOIR_F16, CHOIR_BF16 };

static choir_precision mixed(choir_dtype dtype)
{
	return dtype == CHOIR_F16 ? CHOIR_PRECISION_MIXED_F16 : CHOIR_PRECISION_MIXED_BF16;
}

static choir_tensor *normal(given *g, choir_shape shape)
{
	return choir_cast(given_normal(g, shape), CHOIR_F32);
}

static float rounded(choir_dtype dtype, float x)
{
	return dtype == CHOIR_F16 ? chi_f32_of_f16(chi_f16_of_f32(x))
							  : chi_f32_of_bf16(chi_bf16_of_f32(x));
}

TEST(the_rules_are_sorted_and_have_kernels)
{
	size_t n = 0;
	const choir_precision_row *row = choir_precision_rules(&n);
	assert_true(n > 50);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			assert_true(strcmp(row[i - 1].operation, row[i].operation) < 0);
		for (int k = 0; k < 2; k++)
			assert_int_equal(choir_precision_is_narrow(mixed(halves[k]), row[i].operation, NULL),
					row[i].rule != CHOIR_PRECISION_KEEP);
		assert_false(choir_precision_is_narrow(CHOIR_PRECISION_F32, row[i].operation, NULL));
	}
	assert_false(choir_precision_is_narrow(CHOIR_PRECISION_MIXED_BF16, "of a program", NULL));
	assert_string_equal(choir_precision_name(CHOIR_PRECISION_MIXED_F16), "mixed_f16");
	assert_string_equal(choir_precision_name((choir_precision) 9), "unknown");
}

TEST(frames_remember_their_precision)
{
	given g;
	given_open(&g, "cpu:0", 1);
	assert_int_equal(
			choir_frame_set_precision(g.frame, CHOIR_PRECISION_MIXED_BF16), CHOIR_PRECISION_F32);
	assert_int_equal(
			choir_frame_set_precision(g.frame, CHOIR_PRECISION_AUTO), CHOIR_PRECISION_MIXED_BF16);
	assert_int_equal(
			choir_frame_set_precision(g.frame, CHOIR_PRECISION_F32), CHOIR_PRECISION_MIXED_BF16);
	assert_int_equal(choir_frame_precision(g.frame), CHOIR_PRECISION_F32);
	assert_int_equal(choir_frame_precision(NULL), CHOIR_PRECISION_F32);
	given_close(&g);
}

// What elementwise operations give: f32 arithmetic, rounded once.
static void check_elementwise(given *g, choir_unary_op *op, int64_t n, choir_dtype dtype)
{
	choir_tensor *x = choir_cast(choir_scale(normal(g, CHOIR_SHAPE(n)), 3), dtype);
	choir_tensor *y = op(x), *expected = op(choir_cast(x, CHOIR_F32));
	float *got = malloc((size_t) n * sizeof *got), *wide = malloc((size_t) n * sizeof *wide);
	assert_non_null(y);
	assert_int_equal(choir_tensor_dtype(y), dtype);
	assert_int_equal(chi_tensor_to_host(choir_cast(y, CHOIR_F32), got), CHOIR_OK);
	assert_int_equal(chi_tensor_to_host(expected, wide), CHOIR_OK);
	for (int64_t i = 0; i < n; i++)
		assert_true(got[i] == rounded(dtype, wide[i]));
	free(got);
	free(wide);
}

TEST(elementwise_results_are_rounded_once)
{
	static choir_unary_op *const ops[] = { choir_relu, choir_tanh, choir_sigmoid, choir_gelu,
		choir_gelu_tanh, choir_silu, choir_abs, choir_negate };
	// One block, several blocks, and several chunks.
	static const int64_t sizes[] = { 1, 7, 2048, 5000, 200000 };
	given g;
	given_open(&g, "cpu:0", 2);
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
			check_elementwise(&g, ops[i], sizes[k], halves[(i + k) % 2]);
	given_close(&g);
}

TEST(sums_have_the_bits_of_f32)
{
	const choir_axes axes[] = { CHOIR_ALL_AXES, CHOIR_AXIS(0), CHOIR_AXIS(1), CHOIR_AXES(0, 1),
		CHOIR_AXES(1, 2) };
	given g;
	given_open(&g, "cpu:0", 4);
	for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
		const choir_shape shape = CHOIR_SHAPE(1 + (int64_t) i * 70, 37, 90);
		choir_tensor *x = choir_cast(normal(&g, shape), halves[i % 2]);
		choir_tensor *sum = choir_sum(x, axes[i]);
		choir_tensor *expected = choir_sum(choir_cast(x, CHOIR_F32), axes[i]);
		assert_int_equal(choir_tensor_dtype(sum), CHOIR_F32);
		assert_int_equal(chi_tensor_bytes(sum), chi_tensor_bytes(expected));
		assert_memory_equal(sum->data, expected->data, chi_tensor_bytes(sum));
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

// Rows are computed in blocks: one, several, and several in each of several chunks.
TEST(norms_are_rounded_once)
{
	static const int64_t sizes[] = { 3, 170, 2100 };
	enum { WIDTH = 45 };
	given g;
	given_open(&g, "cpu:0", 3);
	for (int i = 0; i < 6; i++) {
		const choir_dtype dtype = halves[i / 3];
		choir_tensor *x = choir_cast(normal(&g, CHOIR_SHAPE(sizes[i % 3], WIDTH)), dtype);
		choir_tensor *scale = normal(&g, CHOIR_SHAPE(WIDTH)),
					 *offset = normal(&g, CHOIR_SHAPE(WIDTH));
		choir_tensor *by = choir_cast(choir_flip(x, 0), CHOIR_F32);
		choir_tensor *wide = choir_cast(x, CHOIR_F32), *dx[2], *y[2], *const in[2] = { x, wide };
		choir_tensor *loss[2];
		choir_tape *tape = choir_tape_begin(g.frame);
		for (int k = 0; k < 2; k++) {
			choir_tensor *made = choir_layer_norm(in[k], scale, offset, 1e-5);
			y[k] = choir_stop_gradient(made);
			loss[k] = choir_sum(choir_multiply(choir_cast(made, CHOIR_F32), by), CHOIR_ALL_AXES);
		}
		if (choir_tape_gradient(tape, choir_add(loss[0], loss[1]), 2, in, dx) != CHOIR_OK)
			fail_msg("%s", choir_error());
		choir_tensor *const rounded[] = { choir_cast(y[1], dtype), choir_cast(dx[1], dtype) };
		assert_memory_equal(y[0]->data, rounded[0]->data, chi_tensor_bytes(y[0]));
		assert_memory_equal(dx[0]->data, rounded[1]->data, chi_tensor_bytes(dx[0]));
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

// ReLU is computed by bits; here are all numbers.
TEST(relu_of_every_number)
{
	enum { N = 1 << 16 };
	static uint16_t all[N];
	given g;
	given_open(&g, "cpu:0", 4);
	for (int i = 0; i < N; i++)
		all[i] = (uint16_t) i;
	for (int k = 0; k < 2; k++) {
		choir_tensor *x = choir_borrow(g.frame, halves[k], CHOIR_SHAPE(N), all);
		choir_tensor *dy = choir_fill(g.frame, halves[k], CHOIR_SHAPE(N), 3), *dx;
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *y = choir_relu(x), *kept = choir_stop_gradient(y);
		choir_tensor *loss = choir_sum(choir_multiply(y, dy), CHOIR_ALL_AXES);
		assert_int_equal(choir_tape_gradient(tape, loss, 1, &x, &dx), CHOIR_OK);
		for (int i = 0; i < N; i++) {
			const double from = chi_dtype_load(halves[k], all, i);
			const double to = chi_dtype_load(halves[k], kept->data, i);
			assert_true(isnan(from) ? isnan(to) : to == (from > 0 ? from : 0));
			assert_true(chi_dtype_load(halves[k], dx->data, i) == (from > 0 ? 3 : 0));
		}
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

// The largest difference from expected, relative to the largest element.
static double distance(choir_tensor *got, choir_tensor *expected)
{
	const int64_t n = choir_shape_elements(choir_tensor_shape(expected));
	float *a = malloc((size_t) n * sizeof *a), *b = malloc((size_t) n * sizeof *b);
	double most = 0, size = 1e-30;
	assert_non_null(got);
	assert_int_equal(chi_tensor_to_host(choir_cast(got, CHOIR_F32), a), CHOIR_OK);
	assert_int_equal(chi_tensor_to_host(choir_cast(expected, CHOIR_F32), b), CHOIR_OK);
	for (int64_t i = 0; i < n; i++) {
		most = fmax(most, fabs((double) a[i] - (double) b[i]));
		size = fmax(size, fabs((double) b[i]));
	}
	free(a);
	free(b);
	return most / size;
}

enum { IMAGES = 4, SOURCES = 8 };
typedef enum { X, FILTER, SCALE, OFFSET, QKV, BIAS, W, PLACES } source;

typedef struct {
	choir_tensor *in[SOURCES], *labels;
	bool recomputed;
} net;

// Norm, attention, a residual sum that broadcasts, dropout and activations.
static choir_tensor *middle(choir_tensor *const in[], void *user)
{
	const net *m = user;
	choir_tensor *y = choir_layer_norm(in[0], m->in[SCALE], m->in[OFFSET], 1e-5);
	choir_tensor *seen = choir_self_attention(chi_dense(y, m->in[QKV], m->in[BIAS], CHOIR_TANH),
			CHOIR_OPTIONS(choir_attention_options, .heads = 3, .causal = CHOIR_ON));
	return choir_dropout(choir_add(choir_gelu(y), choir_add(seen, m->in[PLACES])), 0.25, 3);
}

// Convolution, pool, the layers above, a product and a loss.
static choir_tensor *run_net(net *m)
{
	choir_tensor *y = choir_relu(choir_conv2d(m->in[X], m->in[FILTER], NULL));
	y = choir_reshape(choir_max_pool2d(y, 2, 2, 0), CHOIR_SHAPE(IMAGES, 9, 12));
	y = m->recomputed ? choir_recompute(1, &y, middle, m) : middle(&y, m);
	y = choir_reshape(y, CHOIR_SHAPE(IMAGES, 108));
	y = choir_matmul(y, m->in[W], CHOIR_TRANSPOSED_NONE);
	return choir_mean(choir_sparse_softmax_cross_entropy(m->labels, y), CHOIR_ALL_AXES);
}

static void make_net(given *g, net *m)
{
	const choir_shape shapes[SOURCES] = { CHOIR_SHAPE(IMAGES, 8, 8, 3), CHOIR_SHAPE(3, 3, 3, 12),
		CHOIR_SHAPE(12), CHOIR_SHAPE(12), CHOIR_SHAPE(12, 36), CHOIR_SHAPE(36),
		CHOIR_SHAPE(108, 10), CHOIR_SHAPE(9, 12) };
	const double sizes[SOURCES] = { 1, 0.3, 1, 1, 0.3, 0.3, 0.2, 1 };
	for (int i = 0; i < SOURCES; i++)
		m->in[i] = choir_scale(normal(g, shapes[i]), sizes[i]);
	m->labels = given_labels(g, IMAGES, 10);
}

// The same inputs each time. gradients[SOURCES] is the loss.
static void gradients_of(
		given *g, choir_dtype dtype, bool recomputed, choir_tensor *gradients[SOURCES + 1])
{
	net m = { .recomputed = recomputed };
	g->drawn = 0;
	g->frame->random.place = 0;
	make_net(g, &m);
	choir_tape *tape = choir_tape_begin(g->frame);
	if (dtype != CHOIR_F32)
		choir_frame_set_precision(g->frame, mixed(dtype));
	choir_tensor *loss = run_net(&m);
	gradients[SOURCES] = choir_stop_gradient(loss);
	assert_int_equal(choir_tape_gradient(tape, loss, SOURCES, m.in, gradients), CHOIR_OK);
	choir_frame_set_precision(g->frame, CHOIR_PRECISION_F32);
}

TEST(gradients_are_close_to_those_of_f32)
{
	choir_tensor *in_f32[SOURCES + 1], *narrow[SOURCES + 1], *again[SOURCES + 1];
	given f32, half, segments;
	given_open(&f32, "cpu:0", 5);
	gradients_of(&f32, CHOIR_F32, false, in_f32);
	for (int k = 0; k < 2; k++) {
		given_open(&half, "cpu:0", 5);
		given_open(&segments, "cpu:0", 5);
		gradients_of(&half, halves[k], false, narrow);
		gradients_of(&segments, halves[k], true, again);
		for (int i = 0; i <= SOURCES; i++) {
			assert_int_equal(choir_tensor_dtype(narrow[i]), CHOIR_F32);
			const double away = distance(narrow[i], in_f32[i]);
			assert_true(away > 0 && away < (halves[k] == CHOIR_F16 ? 0.01 : 0.06));
			assert_true(distance(again[i], narrow[i]) == 0);
		}
		given_close(&half);
		given_close(&segments);
	}
	given_close(&f32);
}

// Both operands, the result and its gradients by op: rounded operands in f32, and 16 bits.
typedef choir_tensor *bilinear(choir_tensor *a, choir_tensor *b, const void *how);

static void run_bilinear(given *g, bilinear *op, const void *how, choir_precision p,
		choir_tensor *const in[2], choir_tensor *out[3])
{
	choir_frame_set_precision(g->frame, p);
	choir_tape *tape = choir_tape_begin(g->frame);
	choir_tensor *y = op(in[0], in[1], how), *loss = choir_sum(choir_tanh(y), CHOIR_ALL_AXES);
	out[2] = y == NULL ? NULL : choir_stop_gradient(y);
	if (choir_tape_gradient(tape, loss, 2, in, out) != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_frame_set_precision(g->frame, CHOIR_PRECISION_F32);
}

static void check_bilinear(bilinear *op, const void *how, choir_shape a, choir_shape b,
		choir_dtype dtype, uint64_t seed)
{
	given wide, half;
	choir_tensor *in[2], *expected[3], *got[3];
	const choir_shape *const shapes[] = { &a, &b };
	given_open(&wide, "cpu:0", seed);
	given_open(&half, "cpu:0", seed);
	for (int i = 0; i < 2; i++)
		in[i] = choir_cast(
				choir_cast(choir_scale(normal(&wide, *shapes[i]), 0.2), dtype), CHOIR_F32);
	run_bilinear(&wide, op, how, CHOIR_PRECISION_F32, in, expected);
	for (int i = 0; i < 2; i++)
		in[i] = choir_cast(
				choir_cast(choir_scale(normal(&half, *shapes[i]), 0.2), dtype), CHOIR_F32);
	run_bilinear(&half, op, how, mixed(dtype), in, got);
	assert_int_equal(choir_tensor_dtype(got[2]), dtype);
	for (int i = 0; i < 3; i++)
		assert_true(distance(got[i], expected[i]) < (dtype == CHOIR_F16 ? 2e-3 : 0.016));
	given_close(&wide);
	given_close(&half);
}

static choir_tensor *product(choir_tensor *a, choir_tensor *b, const void *how)
{
	return choir_matmul(a, b, *(const choir_transposed *) how);
}

TEST(products_round_operands_and_results)
{
	uint64_t seed = 1;
	given g;
	given_open(&g, "cpu:0", 7);
	for (int i = 0; i < 24; i++, seed++) {
		const choir_transposed how = (choir_transposed) (i % 3);
		const int64_t m = given_size(&g, 1, 80), n = given_size(&g, 1, 300);
		const int64_t k = given_size(&g, 1, 300), batch = given_size(&g, 1, 3);
		choir_shape a =
				how == CHOIR_TRANSPOSED_A ? CHOIR_SHAPE(batch, k, m) : CHOIR_SHAPE(batch, m, k);
		choir_shape b = how == CHOIR_TRANSPOSED_B ? CHOIR_SHAPE(n, k) : CHOIR_SHAPE(k, n);
		if (i % 4 == 1)
			b = (choir_shape){ 3, { batch, b.dim[0], b.dim[1] } };
		check_bilinear(product, &how, a, b, halves[i % 5 != 0], seed);
	}
	const choir_transposed first = CHOIR_TRANSPOSED_A; // in several chunks
	check_bilinear(product, &first, CHOIR_SHAPE(70, 600), CHOIR_SHAPE(70, 300), CHOIR_BF16, 3);
	given_close(&g);
}

static choir_tensor *convolution(choir_tensor *a, choir_tensor *b, const void *how)
{
	return choir_conv2d(a, b, how);
}

TEST(convolutions_round_operands_and_results)
{
	given g;
	given_open(&g, "cpu:0", 8);
	for (int i = 0; i < 12; i++) {
		const choir_conv_options how = { .size = sizeof how,
			.stride = 1 + i % 2,
			.dilation = 1 + i % 3 / 2,
			.groups = 1 + i % 4 / 3,
			.padding = i % 3 };
		const int64_t c = 2 * given_size(&g, 1, 9), out = 2 * given_size(&g, 1, 9);
		check_bilinear(convolution, &how, CHOIR_SHAPE(2, 9, given_size(&g, 7, 12), c),
				CHOIR_SHAPE(3, given_size(&g, 1, 3), c / how.groups, out), halves[i % 5 != 0],
				(uint64_t) i + 1);
	}
	given_close(&g);
}

enum { RECURRENT = 6 };

// x, kernel, recurrent, bias, and the state and cell of an LSTM or the bias and state of a GRU.
static void recurrent_inputs(given *g, int parts, int64_t n, int64_t t, int64_t h,
		choir_dtype dtype, choir_tensor *in[RECURRENT])
{
	const choir_shape shapes[RECURRENT] = { CHOIR_SHAPE(n, t, 7), CHOIR_SHAPE(7, parts * h),
		CHOIR_SHAPE(h, parts * h), CHOIR_SHAPE(parts * h),
		parts == 4 ? CHOIR_SHAPE(n, h) : CHOIR_SHAPE(parts * h), CHOIR_SHAPE(n, h) };
	for (int i = 0; i < RECURRENT; i++)
		in[i] = choir_cast(choir_cast(choir_scale(normal(g, shapes[i]), 0.3), dtype), CHOIR_F32);
}

// Gradients, and the result.
static void run_recurrent(given *g, int parts, choir_precision p, choir_tensor *const in[],
		choir_tensor *out[RECURRENT + 1])
{
	choir_frame_set_precision(g->frame, p);
	choir_tape *tape = choir_tape_begin(g->frame);
	choir_tensor *cell = NULL;
	choir_tensor *y = parts == 4 ? choir_lstm(in[0], in[1], in[2], in[3],
										   CHOIR_OPTIONS(choir_recurrent_options, .state = in[4],
												   .cell = in[5], .last_cell = &cell))
								 : choir_gru(in[0], in[1], in[2], in[3], in[4], in[5]);
	choir_tensor *loss = choir_sum(choir_tanh(y), CHOIR_ALL_AXES);
	if (parts == 4)
		loss = choir_add(loss, choir_sum(choir_square(cell), CHOIR_ALL_AXES));
	out[RECURRENT] = choir_stop_gradient(y);
	assert_true(parts != 4 || cell->dtype == y->dtype);
	if (choir_tape_gradient(tape, loss, RECURRENT, in, out) != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_frame_set_precision(g->frame, CHOIR_PRECISION_F32);
}

TEST(recurrent_layers_round_operands_and_results)
{
	static const int64_t sizes[][3] = { { 1, 3, 6 }, { 3, 5, 17 }, { 16, 12, 64 } };
	for (int i = 0; i < 12; i++) {
		const int parts = 3 + i % 2;
		const choir_dtype dtype = halves[i / 2 % 2];
		const int64_t *size = sizes[i / 4];
		choir_tensor *in[RECURRENT], *expected[RECURRENT + 1], *got[RECURRENT + 1];
		given wide, half;
		given_open(&wide, "cpu:0", (uint64_t) i);
		given_open(&half, "cpu:0", (uint64_t) i);
		recurrent_inputs(&wide, parts, size[0], size[1], size[2], dtype, in);
		run_recurrent(&wide, parts, CHOIR_PRECISION_F32, in, expected);
		recurrent_inputs(&half, parts, size[0], size[1], size[2], dtype, in);
		run_recurrent(&half, parts, mixed(dtype), in, got);
		assert_int_equal(choir_tensor_dtype(got[RECURRENT]), dtype);
		for (int k = 0; k <= RECURRENT; k++) {
			assert_true(k == RECURRENT || choir_tensor_dtype(got[k]) == CHOIR_F32);
			assert_true(distance(got[k], expected[k]) < (dtype == CHOIR_F16 ? 4e-3 : 0.03));
		}
		given_close(&wide);
		given_close(&half);
	}
}

#ifdef CHI_HAS_ONEDNN
static double memory_of_lstm(choir_precision p)
{
	enum { N = 16, T = 64, H = 32 };
	const choir_device *d = choir_device_find("cpu:0");
	given g;
	choir_tensor *in[RECURRENT], *out[RECURRENT + 1];
	given_open(&g, "cpu:0", 14);
	recurrent_inputs(&g, 4, N, T, H, CHOIR_F16, in);
	const size_t before = chi_buffer_in_use(d);
	chi_buffer_reset_peak(d);
	run_recurrent(&g, 4, p, in, out);
	const double bytes = (double) (chi_buffer_peak(d) - before);
	given_close(&g);
	return bytes;
}

// Only one time step is widened at a time, beside the weights.
TEST(an_lstm_of_f16_needs_less_memory_than_one_of_f32)
{
	const char *which = getenv("CHOIR_KERNELS");
	if (which != NULL && strcmp(which, "plain") == 0)
		skip();
	assert_true(memory_of_lstm(CHOIR_PRECISION_MIXED_F16) <
			0.75 * memory_of_lstm(CHOIR_PRECISION_F32));
}
#endif

TEST(what_each_rule_gives)
{
	given g;
	given_open(&g, "cpu:0", 9);
	choir_tensor *x = normal(&g, CHOIR_SHAPE(4, 6)), *whole = choir_cast(x, CHOIR_I32);
	choir_tensor *half = choir_cast(x, CHOIR_BF16), *other = choir_cast(x, CHOIR_F16);
	choir_tensor *double_ = choir_cast(x, CHOIR_F64);
	choir_frame_set_precision(g.frame, CHOIR_PRECISION_MIXED_BF16);
	assert_int_equal(choir_tensor_dtype(choir_softmax(half)), CHOIR_F32);
	assert_int_equal(choir_tensor_dtype(choir_exp(half)), CHOIR_F32);
	assert_int_equal(choir_tensor_dtype(choir_sum(half, CHOIR_ALL_AXES)), CHOIR_F32);
	assert_int_equal(choir_tensor_dtype(choir_relu(x)), CHOIR_F32);
	assert_int_equal(choir_tensor_dtype(choir_relu(half)), CHOIR_BF16);
	assert_int_equal(choir_tensor_dtype(choir_add(half, x)), CHOIR_F32);
	assert_int_equal(choir_tensor_dtype(choir_add(half, half)), CHOIR_BF16);
	assert_int_equal(choir_tensor_dtype(choir_add(half, other)), CHOIR_F32);
	assert_int_equal(choir_tensor_dtype(choir_add(half, choir_number(g.frame, 0.1))), CHOIR_BF16);
	assert_int_equal(choir_tensor_dtype(choir_multiply(whole, whole)), CHOIR_I32);
	assert_int_equal(choir_tensor_dtype(choir_relu(double_)), CHOIR_F64);
	assert_int_equal(
			choir_tensor_dtype(choir_matmul(double_, double_, CHOIR_TRANSPOSED_B)), CHOIR_F64);
	assert_int_equal(choir_tensor_dtype(choir_mean_squared_error(half, x)), CHOIR_F32);
	assert_int_equal(choir_tensor_dtype(choir_huber(x, half, 1)), CHOIR_F32);
	assert_int_equal(choir_frame_status(g.frame), CHOIR_OK);
	choir_frame_set_precision(g.frame, CHOIR_PRECISION_F32);
	assert_null(choir_add(half, x));
	given_failure(&g, CHOIR_INVALID, "add:*bf16*f32*cast");
	given_close(&g);
}

TEST(the_cost_is_measured)
{
	double cost = 0;
	assert_int_equal(choir_precision_measure(CHOIR_PRECISION_MIXED_BF16, NULL, &cost), CHOIR_OK);
	assert_true(cost > 0 && cost < 1000);
	assert_int_equal(choir_precision_measure(CHOIR_PRECISION_AUTO, NULL, &cost), CHOIR_INVALID);
	assert_text_holds(choir_error(), "precision:*auto*MIXED_BF16");
	assert_false(choir_precision_is_native(CHOIR_PRECISION_F32));
}

// Bytes that a forward pass of dense layers and norms keeps for the backward pass.
static double kept(choir_precision p)
{
	enum { ROWS = 2048, WIDTH = 64, LAYERS = 4 };
	const choir_device *d = choir_device_find("cpu:0");
	given g;
	given_open(&g, "cpu:0", 13);
	choir_tensor *x = normal(&g, CHOIR_SHAPE(ROWS, WIDTH)),
				 *w = normal(&g, CHOIR_SHAPE(WIDTH, WIDTH));
	choir_tensor *scale = normal(&g, CHOIR_SHAPE(WIDTH)), *bias = normal(&g, CHOIR_SHAPE(WIDTH));
	const size_t before = chi_buffer_in_use(d);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_frame_set_precision(g.frame, p);
	choir_tensor *y = x, *gradient;
	for (int i = 0; i < LAYERS; i++)
		y = choir_layer_norm(chi_dense(y, w, bias, CHOIR_GELU), scale, bias, 1e-5);
	const double bytes = (double) (chi_buffer_in_use(d) - before);
	if (choir_tape_gradient(tape, choir_sum(y, CHOIR_ALL_AXES), 1, &w, &gradient) != CHOIR_OK)
		fail_msg("%s", choir_error());
	given_close(&g);
	return bytes;
}

TEST(half_of_the_activations_is_kept)
{
	const double f32 = kept(CHOIR_PRECISION_F32);
	assert_true(f32 >= 4.0 * 2 * 2048 * 64 * sizeof(float));
	assert_true(kept(CHOIR_PRECISION_MIXED_BF16) < 0.6 * f32);
	assert_true(kept(CHOIR_PRECISION_MIXED_F16) < 0.6 * f32);
}

static choir_status copy(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	choir_dtype *seen = user;
	assert_int_equal(n, 1);
	*seen = in[0].dtype;
	memcpy(out->data, in[0].data, (size_t) choir_shape_elements(&out->shape) * sizeof(float));
	return CHOIR_OK;
}

// Whatever its name is.
TEST(operations_of_programs_get_f32)
{
	const choir_custom_op op = { .size = sizeof op, .name = "relu", .forward = copy };
	choir_dtype seen = CHOIR_BF16;
	given g;
	given_open(&g, "cpu:0", 11);
	choir_tensor *x = choir_cast(normal(&g, CHOIR_SHAPE(5)), CHOIR_BF16);
	choir_frame_set_precision(g.frame, CHOIR_PRECISION_MIXED_BF16);
	assert_int_equal(choir_tensor_dtype(choir_custom_op_apply(&op, &seen, 1, &x)), CHOIR_F32);
	assert_int_equal(seen, CHOIR_F32);
	given_close(&g);
}

TEST(a_source_of_16_bits_has_a_gradient_of_16_bits)
{
	given g;
	given_open(&g, "cpu:0", 12);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x = normal(&g, CHOIR_SHAPE(5, 4)), *w = normal(&g, CHOIR_SHAPE(4, 3));
	choir_frame_set_precision(g.frame, CHOIR_PRECISION_MIXED_BF16);
	choir_tensor *sources[] = { choir_cast(x, CHOIR_BF16), w }, *gradients[2];
	choir_tensor *y = choir_matmul(sources[0], w, CHOIR_TRANSPOSED_NONE);
	choir_tensor *loss = choir_sum(y, CHOIR_ALL_AXES);
	assert_int_equal(choir_tape_gradient(tape, loss, 2, sources, gradients), CHOIR_OK);
	assert_int_equal(choir_tensor_dtype(gradients[0]), CHOIR_BF16);
	assert_int_equal(choir_tensor_dtype(gradients[1]), CHOIR_F32);
	given_close(&g);
}
