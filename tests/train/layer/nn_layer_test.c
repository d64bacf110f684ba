// Layers of convolution nets, transformers and recurrent nets: their variables, what they compute,
// training and evaluation, statistics over replicas, and what is refused.
#include "train/problem.h"

#include "base/status.h"
#include "test.h"

#include <math.h>
#include <string.h>

static void assert_layer(
		choir_layer *l, choir_tensor *x, choir_shape expected, int n, const char *const names[])
{
	if (l == NULL)
		fail_msg("%s", choir_error());
	assert_int_equal(choir_layer_variables(l), n);
	for (int i = 0; i < n; i++)
		assert_string_equal(choir_variable_name(choir_layer_variable(l, i)), names[i]);
	assert_shape(choir_layer_apply(l, x), expected);
}

#define NAMES(...) \
	(int) (sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)), (const char *[]) \
	{ \
		__VA_ARGS__ \
	}

TEST_WITHIN(shapes_and_variables, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_frame *f = g->frame;
	choir_tensor *image = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 8, 8, 4), 1);
	choir_tensor *text = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3, 5, 6), 1);
	choir_tensor *tokens = choir_fill(f, CHOIR_U8, CHOIR_SHAPE(3, 5), 2);
	assert_layer(choir_conv2d_new("c2", 4, 6, 3,
						 CHOIR_OPTIONS(choir_conv_options, .groups = 2, .dilation = 2,
								 .padding = 1, .bias = CHOIR_OFF)),
			image, CHOIR_SHAPE(2, 6, 6, 6), NAMES("c2/kernel"));
	assert_layer(
			choir_conv1d_new("c1", 6, 4, 3, CHOIR_OPTIONS(choir_conv_options, .pad_before[0] = 2)),
			text, CHOIR_SHAPE(3, 5, 4), NAMES("c1/kernel", "c1/bias"));
	assert_layer(choir_global_average_pool2d_new(), image, CHOIR_SHAPE(2, 4), 0, NULL);
	assert_layer(choir_layer_normalization_new("ln", 6, 0), text, CHOIR_SHAPE(3, 5, 6),
			NAMES("ln/gamma", "ln/beta"));
	assert_layer(choir_rms_normalization_new("rms", 6, 1e-5), text, CHOIR_SHAPE(3, 5, 6),
			NAMES("rms/gamma"));
	assert_layer(choir_batch_normalization_new("bn", 4, NULL), image, CHOIR_SHAPE(2, 8, 8, 4),
			NAMES("bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance"));
	choir_layer *e = choir_embedding_new("token", 9, 6);
	assert_layer(e, tokens, CHOIR_SHAPE(3, 5, 6), NAMES("token/embeddings"));
	assert_layer(choir_tied_embedding_new(e), text, CHOIR_SHAPE(3, 5, 9), 0, NULL);
	assert_layer(choir_position_embedding_new("place", 7, 6), text, CHOIR_SHAPE(3, 5, 6),
			NAMES("place/embeddings"));
	assert_layer(choir_self_attention_new("att", 6, 2, CHOIR_ON), text, CHOIR_SHAPE(3, 5, 6),
			NAMES("att/qkv/kernel", "att/qkv/bias", "att/output/kernel", "att/output/bias"));
	assert_layer(choir_lstm_new("lstm", 6, 3), text, CHOIR_SHAPE(3, 5, 3),
			NAMES("lstm/kernel", "lstm/recurrent_kernel", "lstm/bias"));
	assert_layer(choir_gru_new("gru", 6, 3), text, CHOIR_SHAPE(3, 5, 3),
			NAMES("gru/kernel", "gru/recurrent_kernel", "gru/bias", "gru/recurrent_bias"));
	assert_layer(choir_last_timestep_new(), text, CHOIR_SHAPE(3, 6), 0, NULL);
	assert_layer(choir_dense_no_bias_new("head", 6, 9), text, CHOIR_SHAPE(3, 5, 9),
			NAMES("head/kernel"));
	assert_layer(choir_dense_new("up", 6, 7, CHOIR_SILU), text, CHOIR_SHAPE(3, 5, 7),
			NAMES("up/kernel", "up/bias"));
	assert_layer(choir_residual_new(choir_dense_new("in", 6, 4, CHOIR_LINEAR),
						 choir_dense_no_bias_new("beside", 6, 4), CHOIR_GELU),
			text, CHOIR_SHAPE(3, 5, 4), NAMES("in/kernel", "in/bias", "beside/kernel"));
	float bias[12];
	fetch_variable(choir_layer_variable(choir_lstm_new("open", 2, 3), 2), bias, sizeof bias);
	for (int i = 0; i < 12; i++)
		assert_true(bias[i] == (i / 3 == 1 ? 1.0f : 0.0f));
}

TEST_WITHIN(more_shapes_and_variables, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_frame *f = g->frame;
	choir_tensor *image = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 4, 6, 4), 1);
	choir_tensor *text = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3, 5, 6), 1);
	choir_tensor *volume = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 4, 5, 6, 2), 1);
	const choir_conv_options *same = CHOIR_OPTIONS(choir_conv_options, .stride = 2,
			.padding = CHOIR_PADDING_SAME, .activation = CHOIR_RELU);
	assert_layer(choir_conv3d_new("c3", 2, 3, 3, same), volume, CHOIR_SHAPE(2, 2, 3, 3, 3),
			NAMES("c3/kernel", "c3/bias"));
	assert_layer(choir_conv2d_transpose_new("t2", 4, 3, 3, same), image, CHOIR_SHAPE(2, 8, 12, 3),
			NAMES("t2/kernel", "t2/bias"));
	assert_layer(choir_conv1d_transpose_new("t1", 6, 4, 4,
						 CHOIR_OPTIONS(choir_conv_options, .groups = 2, .bias = CHOIR_OFF)),
			text, CHOIR_SHAPE(3, 8, 4), NAMES("t1/kernel"));
	assert_layer(choir_conv3d_transpose_new("t3", 2, 3, 3, same), volume,
			CHOIR_SHAPE(2, 8, 10, 12, 3), NAMES("t3/kernel", "t3/bias"));
	assert_layer(choir_max_pool2d_new(3, 2, 1), image, CHOIR_SHAPE(2, 2, 3, 4), 0, NULL);
	assert_layer(choir_average_pool1d_new(2, 2, CHOIR_PADDING_SAME), text, CHOIR_SHAPE(3, 3, 6), 0,
			NULL);
	assert_layer(choir_max_pool1d_new(2, 0, 0), text, CHOIR_SHAPE(3, 2, 6), 0, NULL);
	assert_layer(choir_average_pool1d_new(3, 1, 0), text, CHOIR_SHAPE(3, 3, 6), 0, NULL);
	assert_layer(choir_max_pool3d_new(2, 0, 0), volume, CHOIR_SHAPE(2, 2, 2, 3, 2), 0, NULL);
	assert_layer(choir_average_pool3d_new(3, 1, 0), volume, CHOIR_SHAPE(2, 2, 3, 4, 2), 0, NULL);
	assert_layer(choir_global_max_pool_new(), volume, CHOIR_SHAPE(2, 2), 0, NULL);
	assert_layer(choir_global_average_pool_new(), text, CHOIR_SHAPE(3, 6), 0, NULL);
	assert_layer(choir_upsample_new(2, CHOIR_BILINEAR), image, CHOIR_SHAPE(2, 8, 12, 4), 0, NULL);
	assert_layer(choir_group_normalization_new("gn", 4, 2, 0), image, CHOIR_SHAPE(2, 4, 6, 4),
			NAMES("gn/gamma", "gn/beta"));
	assert_layer(
			choir_bidirectional_new(choir_lstm_new("ahead", 6, 2), choir_gru_new("back", 6, 3)),
			text, CHOIR_SHAPE(3, 5, 5),
			NAMES("ahead/kernel", "ahead/recurrent_kernel", "ahead/bias", "back/kernel",
					"back/recurrent_kernel", "back/bias", "back/recurrent_bias"));
}

// A scope's initializer is that of kernels, not of biases or scales.
TEST_WITHIN(initializers_of_scopes, scoped_open, scoped_close)
{
	choir_scope scope;
	float kernel[6], bias[3], gamma[3];
	(void) state;
	assert_int_equal(choir_scope_initializer(&scope, CHOIR_INITIALIZER_CONSTANT, 0.25), CHOIR_OK);
	choir_layer *l = choir_dense_new("constant", 2, 3, CHOIR_LINEAR);
	choir_layer *n = choir_layer_normalization_new("norm", 3, 0);
	assert_int_equal(choir_scope_exit(&scope), CHOIR_OK);
	choir_layer *random = choir_dense_new("random", 2, 3, CHOIR_LINEAR);
	fetch_variable(choir_layer_variable(l, 0), kernel, sizeof kernel);
	fetch_variable(choir_layer_variable(l, 1), bias, sizeof bias);
	fetch_variable(choir_layer_variable(n, 0), gamma, sizeof gamma);
	for (int i = 0; i < 6; i++)
		assert_true(kernel[i] == 0.25f && bias[i / 2] == 0 && gamma[i / 2] == 1);
	fetch_variable(choir_layer_variable(random, 0), kernel, sizeof kernel);
	assert_true(kernel[0] != 0.25f && kernel[0] != kernel[1]);
	assert_failed(choir_scope_initializer(&scope, (choir_initializer) 77, 1), CHOIR_INVALID,
			"initializer 77");
}

// The backward layer sees the sequence from its end: its last result is that of the last step.
TEST_WITHIN(bidirectional_reverses, scoped_open, scoped_close)
{
	scoped *g = *state;
	float x[4] = { 1, 2, 3, 4 }, y[8], last[1];
	choir_layer *back = choir_lstm_new("back", 1, 1);
	choir_layer *both = choir_bidirectional_new(choir_lstm_new("ahead", 1, 1), back);
	choir_tensor *t = choir_constant(g->frame, CHOIR_F32, CHOIR_SHAPE(1, 4, 1), x);
	assert_int_equal(choir_tensor_to_host(choir_layer_apply(both, t), y, sizeof y), CHOIR_OK);
	choir_tensor *one = choir_constant(g->frame, CHOIR_F32, CHOIR_SHAPE(1, 1, 1), &x[3]);
	assert_int_equal(
			choir_tensor_to_host(choir_layer_apply(back, one), last, sizeof last), CHOIR_OK);
	assert_true(y[7] == last[0]);
	assert_true(y[1] != last[0]);
}

TEST_WITHIN(residual_adds, scoped_open, scoped_close)
{
	scoped *g = *state;
	const float x[3] = { -2, 0, 3 };
	choir_tensor *t = choir_borrow(g->frame, CHOIR_F32, CHOIR_SHAPE(1, 3), x);
	choir_layer *l = choir_residual_new(choir_activation_new(CHOIR_RELU), NULL, CHOIR_RELU);
	const float *y = choir_tensor_data(choir_layer_apply(l, t));
	assert_non_null(y);
	assert_true(y[0] == 0 && y[1] == 0 && y[2] == 6);
	l = choir_residual_new(
			choir_activation_new(CHOIR_LINEAR), choir_activation_new(CHOIR_RELU), CHOIR_LINEAR);
	y = choir_tensor_data(choir_layer_apply(l, t));
	assert_true(y[0] == -2 && y[2] == 6);
}

// Replica i of four has i rows of two channels: their values, the batch's moments, and the bits
// of weights, statistics and gradients must not depend on devices.
typedef struct {
	choir_layer *norm;
	choir_optimizer *optimizer;
	bool recompute;
} normed;

static choir_tensor *apply_norm(choir_tensor *const in[], void *user)
{
	return choir_layer_apply(((const normed *) user)->norm, in[0]);
}

static choir_status train_norm(choir_replica *r, void *user)
{
	normed *n = user;
	const int64_t rows = choir_replica_id(r);
	float x[8];
	for (int i = 0; i < 8; i++)
		x[i] = (float) ((i * 7 + (int) rows * 3) % 11);
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *t = choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(rows, 2), x);
	choir_tensor *y = n->recompute ? choir_recompute(1, &t, apply_norm, n) : apply_norm(&t, n);
	choir_tensor *loss = choir_sum(choir_multiply(choir_square(y), y), CHOIR_ALL_AXES);
	return choir_optimizer_minimize(n->optimizer, loss, tape);
}

static uint64_t norm_after(
		const char *devices, bool over_replicas, bool recompute, float mean[2], float variance[2])
{
	choir_strategy *s = mirrored(devices, 4);
	normed n = { .recompute = recompute };
	CHOIR_SCOPE (s) {
		n.norm = choir_batch_normalization_new("bn", 2,
				CHOIR_OPTIONS(choir_batch_normalization_options, .momentum = 0.5,
						.over_replicas = over_replicas ? CHOIR_ON : CHOIR_OFF));
		n.optimizer = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	for (int i = 0; i < 3; i++)
		if (choir_strategy_run(s, train_norm, &n, NULL, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
	choir_frame *f = choir_frame_new(NULL);
	CHOIR_SCOPE (s) {
		fetch_variable(choir_layer_variable(n.norm, 2), mean, 2 * sizeof(float));
		fetch_variable(choir_layer_variable(n.norm, 3), variance, 2 * sizeof(float));
	}
	choir_frame_free(f);
	const uint64_t hash = choir_strategy_hash(s);
	choir_strategy_free(s);
	return hash;
}

TEST(statistics_over_replicas)
{
	float mean[2], variance[2], m[2], v[2];
	double sum[2] = { 0 }, square[2] = { 0 };
	for (int r = 1; r < 4; r++)
		for (int i = 0; i < 2 * r; i++) {
			const double x = (i * 7 + r * 3) % 11;
			sum[i % 2] += x / 6;
			square[i % 2] += x * x / 6;
		}
	const uint64_t one = norm_after("cpu:0", true, false, mean, variance);
	for (int i = 0; i < 2; i++) {
		assert_true(fabs((double) mean[i] - 0.875 * sum[i]) < 1e-5);
		assert_true(
				fabs((double) variance[i] - 0.125 - 0.875 * (square[i] - sum[i] * sum[i])) < 1e-5);
	}
	static const char *const layouts[] = { "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2,cpu:3",
		"far:0,far:1" };
	for (int i = 0; i < 3; i++) {
		assert_int_equal(norm_after(layouts[i], true, false, m, v), one);
		assert_memory_equal(m, mean, sizeof m);
		assert_memory_equal(v, variance, sizeof v);
	}
	// Made again on the way back, with meetings of its own, and nothing moves twice.
	assert_int_equal(norm_after("cpu:0,cpu:1", true, true, m, v), one);
	assert_memory_equal(m, mean, sizeof m);
	// By replica: other numbers, and again the same on all devices.
	const uint64_t apart = norm_after("cpu:0", false, false, mean, variance);
	assert_int_not_equal(apart, one);
	assert_int_equal(norm_after("cpu:0,cpu:1", false, false, m, v), apart);
	assert_memory_equal(m, mean, sizeof m);
}

// A batch of five examples, dealt to any number of replicas: to one alone, unequally, and to some
// none at all. What a step computes is that of one replica with the whole batch, up to rounding.
enum { BATCH = 5 };
typedef struct {
	float y[BATCH][2], mean[2], variance[2], gamma[2], beta[2];
} norm_outcome;

static choir_status train_dealt(choir_replica *r, void *user)
{
	const normed *n = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *y = choir_layer_apply(n->norm, choir_replica_arg(r, "x"));
	CHOIR_TRY(choir_replica_return(r, "y", y));
	choir_tensor *loss = choir_sum(choir_multiply(choir_square(y), y), CHOIR_ALL_AXES);
	return choir_optimizer_minimize(n->optimizer, loss, tape);
}

static void train_on(choir_strategy *s, norm_outcome *out)
{
	static const float x[BATCH][2] = { { 1, -7 }, { 4, 2 }, { -2, 3 }, { 0, 3.5f }, { 6, 1 } };
	normed n = { 0 };
	CHOIR_SCOPE (s) {
		n.norm = choir_batch_normalization_new("bn", 2,
				CHOIR_OPTIONS(choir_batch_normalization_options, .over_replicas = CHOIR_ON));
		n.optimizer = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	choir_values *batch = choir_values_new(s), *results = NULL;
	choir_status status = choir_values_split(batch, "x",
			choir_borrow(choir_values_frame(batch), CHOIR_F32, CHOIR_SHAPE(BATCH, 2), x));
	for (int i = 0; i < 3 && status == CHOIR_OK; i++)
		status = choir_strategy_run(s, train_dealt, &n, batch, &results);
	if (status != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_value *y = choir_values_find(results, "y");
	char *to = (char *) out->y;
	for (int i = 0; i < choir_value_local_count(y); i++) {
		choir_tensor *part = choir_value_local(y, i);
		const size_t bytes = (size_t) choir_shape_elements(choir_tensor_shape(part)) * 4;
		assert_int_equal(choir_tensor_to_host(part, to, bytes), CHOIR_OK);
		to += bytes;
	}
	assert_ptr_equal(to, out->mean);
	float *const state[] = { out->gamma, out->beta, out->mean, out->variance };
	CHOIR_SCOPE (s)
		for (int i = 0; i < 4; i++)
			fetch_variable(choir_layer_variable(n.norm, i), state[i], 2 * sizeof(float));
	choir_values_free(results);
	choir_values_free(batch);
	choir_strategy_free(s);
}

// spec: A31, C29
TEST(replicas_are_one_batch)
{
	static const char *const layouts[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	norm_outcome whole, dealt;
	train_on(mirrored("cpu:0", 1), &whole);
	assert_true(fabsf(whole.gamma[0] - 1) > 1e-3f && fabsf(whole.mean[1]) > 1e-3f); // it moved
	for (int replicas = 2; replicas <= 8; replicas++)
		for (int i = 0; i < 3; i++) {
			train_on(mirrored(layouts[i], replicas), &dealt);
			const float *a = &whole.y[0][0], *b = &dealt.y[0][0];
			for (size_t k = 0; k < sizeof whole / sizeof(float); k++)
				if (!(fabsf(a[k] - b[k]) <= 2e-5f * (1 + fabsf(a[k]))))
					fail_msg("%d replicas on %s: number %d is %g, needed %g", replicas, layouts[i],
							(int) k, (double) b[k], (double) a[k]);
		}
}

// A table of many rows, of which a step reads few: the gradient is slices, and gives the bits of
// one that is as large as the table.
typedef struct {
	choir_layer *embedding, *tied;
	choir_optimizer *optimizer;
	bool whole;
} table;

static choir_status train_table(choir_replica *r, void *user)
{
	table *t = user;
	const int id = choir_replica_id(r);
	const uint8_t bytes[6] = { (uint8_t) id, 7, 7, 250, 3, 7 };
	const int32_t far[6] = { 4999, 17 + id, 4999, 0, 4096, 17 };
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *read = choir_variable_read(choir_layer_variable(t->embedding, 0), r->frame);
	choir_tensor *a = choir_constant(r->frame, CHOIR_U8, CHOIR_SHAPE(2, 3), bytes);
	choir_tensor *b = choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(2, 3), far), *y;
	if (t->whole) // seen through an operation, the table is no variable's
		y = choir_add(
				choir_gather(choir_scale(read, 1), a), choir_gather(choir_scale(read, 1), b));
	else
		y = choir_add(choir_layer_apply(t->embedding, a), choir_layer_apply(t->embedding, b));
	if (t->tied != NULL)
		y = choir_layer_apply(t->tied, y);
	choir_tensor *loss =
			choir_sum(choir_square(choir_add(y, choir_number(r->frame, 0.5))), CHOIR_ALL_AXES);
	return choir_optimizer_minimize(t->optimizer, loss, tape);
}

static uint64_t table_after(const char *devices, int replicas, bool whole, bool tied)
{
	choir_strategy *s = mirrored(devices, replicas);
	table t = { .whole = whole };
	CHOIR_SCOPE (s) {
		t.embedding = choir_embedding_new("token", 5000, 3);
		t.tied = tied ? choir_tied_embedding_new(t.embedding) : NULL;
		t.optimizer = choir_optimizer_new(CHOIR_ADAM, NULL);
	}
	for (int i = 0; i < 3; i++)
		if (choir_strategy_run(s, train_table, &t, NULL, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
	const uint64_t hash = choir_strategy_hash(s);
	choir_strategy_free(s);
	return hash;
}

TEST(large_tables)
{
	for (int replicas = 1; replicas <= 4; replicas += 3)
		for (int tied = 0; tied < 2; tied++) {
			const uint64_t first = table_after("cpu:0", replicas, false, tied);
			assert_int_equal(table_after("cpu:0", replicas, true, tied), first);
			if (replicas == 1)
				continue;
			assert_int_equal(table_after("cpu:0,cpu:1", replicas, false, tied), first);
			assert_int_equal(table_after("far:0,far:1", replicas, false, tied), first);
		}
	choir_frame *f = choir_frame_new(NULL);
	choir_strategy *s = mirrored("cpu:0", 1);
	choir_layer *l = NULL;
	CHOIR_SCOPE (s) {
		l = choir_embedding_new("token", 5000, 3);
		choir_tensor *gradient, *x = choir_fill(f, CHOIR_U8, CHOIR_SHAPE(2), 9);
		choir_tape *tape = choir_tape_begin(f);
		choir_tensor *y = choir_layer_apply(l, x);
		choir_tensor *read = choir_variable_read(choir_layer_variable(l, 0), f);
		assert_int_equal(choir_tape_gradient(tape, y, 1, &read, &gradient), CHOIR_OK);
		assert_true(choir_tensor_is_slices(gradient));
		assert_int_equal(choir_tensor_shape(choir_slices_values(gradient))->dim[0], 2);
	}
	choir_frame_free(f);
	choir_strategy_free(s);
}

TEST_WITHIN(evaluation_takes_what_moved, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_frame *f = g->frame;
	choir_layer *l = choir_batch_normalization_new("bn", 1,
			CHOIR_OPTIONS(choir_batch_normalization_options, .epsilon = 0.5, .momentum = 0.9));
	const float x[2] = { 1, 5 };
	choir_tensor *t = choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(2, 1), x);
	const float *y = choir_tensor_data(choir_layer_apply(l, t));
	assert_non_null(y);
	assert_true(fabs((double) y[0] - 1 / sqrt(1.5)) < 1e-6);
	choir_tape_begin(f);
	y = choir_tensor_data(choir_layer_apply(l, t)); // mean 3, variance 4
	assert_true(fabs((double) y[1] - 2 / sqrt(4.5)) < 1e-6);
	choir_frame_clear(f);
	t = choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(2, 1), x);
	y = choir_tensor_data(choir_layer_apply(l, t)); // mean 0.3, variance 1.3
	assert_true(fabs((double) y[0] - 0.7 / sqrt(1.8)) < 1e-6);
}

#define REFUSED(expression, status, text) \
	do { \
		assert_null(expression); \
		assert_failed(choir_error_status(), status, text); \
	} while (0)

TEST_WITHIN(refused_when_made, scoped_open, scoped_close)
{
	REFUSED(choir_conv2d_new("c", 4, 6, 3, CHOIR_OPTIONS(choir_conv_options, .groups = 4)),
			CHOIR_INVALID, "layer \"c\": 4 groups*4*6");
	REFUSED(choir_conv2d_new("c", 4, 6, 3, CHOIR_OPTIONS(choir_conv_options, .dilation = -1)),
			CHOIR_INVALID, "dilation*-1");
	REFUSED(choir_conv1d_new("c", 4, 6, 3,
					CHOIR_OPTIONS(choir_conv_options, .padding = CHOIR_PADDING_SAME,
							.pad_before[0] = 1)),
			CHOIR_INVALID, "layer \"c\":*pad_before[0]*1*SAME");
	REFUSED(choir_conv1d_new(
					"c", 4, 6, 3, CHOIR_OPTIONS(choir_conv_options, .bias = (choir_toggle) 5)),
			CHOIR_INVALID, "bias*5");
	REFUSED(choir_group_normalization_new("g", 6, 4, 0), CHOIR_INVALID, "layer \"g\":*4*6");
	REFUSED(choir_upsample_new(0, CHOIR_NEAREST), CHOIR_INVALID, "upsample by 0");
	REFUSED(choir_max_pool3d_new(0, 1, 0), CHOIR_INVALID, "max_pool3d of size 0");
	REFUSED(choir_max_pool2d_new(2, 1, 2), CHOIR_INVALID, "max_pool2d*padding 2");
	REFUSED(choir_bidirectional_new(NULL, NULL), CHOIR_INVALID, "bidirectional");
	REFUSED(choir_conv3d_new("v", 2, 3, 0, NULL), CHOIR_INVALID, "layer \"v\": conv3d");
	REFUSED(choir_conv1d_new("c", 4, 6, 3, CHOIR_OPTIONS(choir_conv_options, .pad_after[1] = 2)),
			CHOIR_INVALID, "layer \"c\":*pad_after[1]*2");
	REFUSED(choir_conv2d_new("c", 4, 6, 3,
					CHOIR_OPTIONS(choir_conv_options, .activation = (choir_activation) 9)),
			CHOIR_INVALID, "layer \"c\": activation 9");
	REFUSED(choir_layer_normalization_new(NULL, 3, 0), CHOIR_INVALID,
			"a layer_normalization layer*name");
	REFUSED(choir_layer_normalization_new("n", 0, 0), CHOIR_INVALID, "of 0 channels");
	REFUSED(choir_rms_normalization_new("n", 3, -2), CHOIR_INVALID, "epsilon -2");
	REFUSED(choir_batch_normalization_new(
					"n", 3, CHOIR_OPTIONS(choir_batch_normalization_options, .momentum = 1)),
			CHOIR_INVALID, "momentum 1");
	REFUSED(choir_batch_normalization_new("n", 3,
					CHOIR_OPTIONS(
							choir_batch_normalization_options, .over_replicas = (choir_toggle) 9)),
			CHOIR_INVALID, "over_replicas*9");
	REFUSED(choir_batch_normalization_new(
					"n", 3, &(choir_batch_normalization_options){ .size = 1000 }),
			CHOIR_INVALID, "size is 1000");
	REFUSED(choir_embedding_new("e", 0, 4), CHOIR_INVALID, "embedding of 0 rows of 4");
	REFUSED(choir_tied_embedding_new(choir_flatten_new()), CHOIR_INVALID,
			"tied_embedding:*flatten*an embedding");
	REFUSED(choir_tied_embedding_new(NULL), CHOIR_INVALID, "tied_embedding:*NULL");
	REFUSED(choir_self_attention_new("a", 6, 4, CHOIR_ON), CHOIR_INVALID, "width 6 with 4 heads");
	REFUSED(choir_lstm_new("l", 0, 4), CHOIR_INVALID, "layer \"l\": lstm from 0 to 4");
	REFUSED(choir_gru_new("l", 4, INT64_MAX), CHOIR_INVALID, "gru from 4");
	chi_error_clear();
	REFUSED(choir_residual_new(NULL, NULL, CHOIR_RELU), CHOIR_INVALID,
			"residual: layer 0 is NULL");
	REFUSED(choir_activation_new((choir_activation) 55), CHOIR_INVALID, "activation 55");
	// Nothing is left of a layer of which one variable could not be made.
	assert_non_null(choir_variable_new("half/output/bias", CHOIR_SHAPE(1), NULL));
	REFUSED(choir_self_attention_new("half", 4, 2, CHOIR_ON), CHOIR_INVALID,
			"\"half/output/bias\"");
	assert_non_null(choir_variable_new("half/qkv/kernel", CHOIR_SHAPE(1), NULL));
}

TEST_WITHIN(refused_when_applied, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_frame *f = g->frame;
	choir_layer *e = choir_embedding_new("token", 9, 6);
	const struct {
		choir_layer *layer;
		choir_dtype dtype;
		choir_shape shape;
		const char *text;
	} cases[] = {
		{ e, CHOIR_F32, CHOIR_SHAPE(2, 3), "layer \"token\": embedding needs u8, i32 or i64" },
		{ choir_tied_embedding_new(e), CHOIR_F32, CHOIR_SHAPE(2, 3),
				"tied_embedding needs f32 [.., 6]*f32 [2, 3]" },
		{ choir_position_embedding_new("p", 4, 6), CHOIR_F32, CHOIR_SHAPE(2, 5, 6),
				"up to 4 positions, 6]*f32 [2, 5, 6]" },
		{ choir_batch_normalization_new("b", 3, NULL), CHOIR_F32, CHOIR_SHAPE(2, 4),
				"batch_normalization needs [.., 3]*[2, 4]" },
		{ choir_self_attention_new("a", 6, 2, CHOIR_OFF), CHOIR_F32, CHOIR_SHAPE(2, 6),
				"self_attention needs [n, positions, 6]*[2, 6]" },
		{ choir_lstm_new("l", 6, 2), CHOIR_F32, CHOIR_SHAPE(2, 6),
				"lstm needs [n, timesteps, 6]" },
		{ choir_conv1d_new("c", 6, 2, 1, NULL), CHOIR_F32, CHOIR_SHAPE(2, 6),
				"conv1d needs [n, w, 6]*[2, 6]" },
		{ choir_last_timestep_new(), CHOIR_F32, CHOIR_SHAPE(2, 0, 3), "1 timestep or more" },
		{ choir_global_average_pool2d_new(), CHOIR_F32, CHOIR_SHAPE(2, 3), "needs images" },
		{ choir_activation_new(CHOIR_RELU), CHOIR_U8, CHOIR_SHAPE(2), "activation needs f32" },
		{ choir_residual_new(choir_flatten_new(), NULL, CHOIR_RELU), CHOIR_F32,
				CHOIR_SHAPE(2, 3, 4), "layers*[2, 12]*shortcut*[2, 3, 4]" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		choir_tensor *x = choir_fill(f, cases[i].dtype, cases[i].shape, 0);
		chi_error_clear();
		assert_null(choir_layer_apply(cases[i].layer, x));
		assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
		assert_failed(choir_error_status(), CHOIR_INVALID, cases[i].text);
		choir_frame_clear(f);
	}
}
