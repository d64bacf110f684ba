// Layers on sequences of different lengths: a padded batch against each sequence alone, gradients
// of the padding, and layers that refuse.
#include "tensor/tensor.h"
#include "train/problem.h"

#include "test.h"

#include <math.h>
#include <stdio.h>

enum { N = 4, T = 6, WIDTH = 4 };

static const int32_t lengths[N] = { 6, 1, 4, 2 };
static const uint8_t tokens[N][T] = { { 1, 2, 3, 4, 5, 6 }, { 7, 0, 0, 3, 0, 0 },
	{ 2, 2, 5, 1, 0, 0 }, { 6, 3, 0, 0, 0, 8 } };

// A layer of every kind that takes such sequences, ending in states of all time steps.
static choir_layer *all_steps(const char *name)
{
	char names[8][32];
	for (int i = 0; i < 8; i++)
		snprintf(names[i], sizeof names[i], "%s%d", name, i);
	choir_layer *both = choir_bidirectional_new(
			choir_lstm_new(names[0], WIDTH, 2), choir_gru_new(names[1], WIDTH, 2));
	choir_layer *all[] = { both, choir_layer_normalization_new(names[2], WIDTH, 0),
		choir_position_embedding_new(names[3], T, WIDTH),
		choir_residual_new(
				choir_self_attention_new(names[4], WIDTH, 2, CHOIR_OFF), NULL, CHOIR_LINEAR),
		choir_self_attention_new(names[5], WIDTH, 1, CHOIR_ON),
		choir_dense_new(names[6], WIDTH, WIDTH, CHOIR_TANH), choir_dropout_new(names[7], 0),
		choir_gru_new(name, WIDTH, WIDTH) };
	return choir_sequential_new(sizeof all / sizeof all[0], all);
}

static choir_layer *classifier(const char *name, choir_layer *pool)
{
	char token[32], head[32];
	snprintf(token, sizeof token, "%stoken", name);
	snprintf(head, sizeof head, "%shead", name);
	choir_layer *all[] = { choir_embedding_new(token, 9, WIDTH), all_steps(name), pool,
		choir_dense_new(head, WIDTH, 3, CHOIR_LINEAR) };
	return choir_sequential_new(4, all);
}

static void assert_rows(choir_tensor *got, int64_t row, choir_tensor *expected)
{
	float a[T * WIDTH], b[T * WIDTH];
	choir_tensor *own = choir_slice(got, 0, row, 1);
	if (own == NULL || expected == NULL)
		fail_msg("%s", choir_error());
	if (own->shape.rank == 3)
		own = choir_slice(own, 1, 0, expected->shape.dim[1]);
	assert_true(chi_shape_equal(&own->shape, &expected->shape));
	assert_int_equal(choir_tensor_to_host(own, a, chi_tensor_bytes(own)), CHOIR_OK);
	assert_int_equal(choir_tensor_to_host(expected, b, chi_tensor_bytes(expected)), CHOIR_OK);
	for (int64_t i = 0; i < choir_shape_elements(&expected->shape); i++)
		assert_true(fabsf(a[i] - b[i]) < 2e-6f);
}

TEST_WITHIN(padded_sequences_are_as_alone, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_frame *f = g->frame;
	choir_layer *const nets[] = { classifier("last", choir_last_timestep_new()),
		classifier("mean", choir_global_average_pool_new()) };
	choir_layer *steps = choir_sequential_new(
			2, (choir_layer *[]){ choir_embedding_new("token", 9, WIDTH), all_steps("steps") });
	choir_tensor *x = choir_constant(f, CHOIR_U8, CHOIR_SHAPE(N, T), tokens);
	choir_tensor *n = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(N), lengths);
	for (int k = 0; k < 3; k++) {
		choir_layer *net = k < 2 ? nets[k] : steps;
		choir_tensor *y = choir_layer_apply_sequences(net, x, n);
		for (int64_t i = 0; i < N; i++)
			assert_rows(y, i,
					choir_layer_apply(
							net, choir_slice(choir_slice(x, 0, i, 1), 1, 0, lengths[i])));
		if (k == 2) // zeros behind the time steps
			assert_rows(
					y, 1, choir_zero_padding(choir_slice(y, 0, 1, 1), choir_slice(n, 0, 1, 1)));
		choir_tensor *plain = choir_layer_apply(net, x); // the lengths are gone
		assert_non_null(plain);
		assert_rows(plain, 0, choir_layer_apply(net, choir_slice(x, 0, 0, 1)));
	}
}

TEST_WITHIN(padding_has_no_gradient, scoped_open, scoped_close)
{
	scoped *g = *state;
	float gradient[N][T][WIDTH];
	choir_tensor *from;
	choir_layer *net = all_steps("g");
	choir_tape *tape = choir_tape_begin(g->frame);
	choir_tensor *x = choir_random_normal(g->frame, CHOIR_F32, CHOIR_SHAPE(N, T, WIDTH), 3);
	choir_tensor *n = choir_constant(g->frame, CHOIR_I32, CHOIR_SHAPE(N), lengths);
	choir_tensor *y = choir_layer_apply_sequences(net, x, n);
	assert_int_equal(
			choir_tape_gradient(tape, choir_sum(choir_square(y), CHOIR_ALL_AXES), 1, &x, &from),
			CHOIR_OK);
	assert_int_equal(choir_tensor_to_host(from, gradient, sizeof gradient), CHOIR_OK);
	for (int i = 0; i < N; i++)
		for (int t = 0; t < T; t++) {
			float all = 0;
			for (int k = 0; k < WIDTH; k++)
				all += fabsf(gradient[i][t][k]);
			assert_true(t < lengths[i] ? all > 0 : all == 0);
		}
}

static void assert_refused(scoped *g, choir_layer *l, choir_shape shape, const char *facts)
{
	choir_tensor *x = choir_fill(g->frame, CHOIR_F32, shape, 1);
	choir_tensor *n = choir_constant(g->frame, CHOIR_I32, CHOIR_SHAPE(N), lengths);
	if (l == NULL)
		fail_msg("%s", choir_error());
	assert_null(choir_layer_apply_sequences(l, x, n));
	assert_int_equal(choir_frame_status(g->frame), CHOIR_INVALID);
	assert_text_holds(choir_error(), facts);
	choir_frame_clear(g->frame);
	assert_null(g->frame->lengths);
}

TEST_WITHIN(refused, scoped_open, scoped_close)
{
	scoped *g = *state;
	const choir_shape text = CHOIR_SHAPE(N, T, WIDTH);
	assert_refused(g, choir_conv1d_new("c", WIDTH, 2, 3, NULL), text,
			"layer \"c\": conv1d*different lengths");
	assert_refused(g, choir_batch_normalization_new("b", WIDTH, NULL), text, "layer \"b\": batch");
	assert_refused(g,
			choir_sequential_new(2,
					(choir_layer *[]){
							choir_dense_new("d", WIDTH, WIDTH, CHOIR_RELU), choir_flatten_new() }),
			text, "flatten*different lengths");
	assert_refused(g, choir_dense_new("table", T, 2, CHOIR_LINEAR), CHOIR_SHAPE(N, T),
			"layer \"table\"*[n, timesteps, ..]*[4, 6]");
	assert_refused(g, choir_lstm_new("short", WIDTH, 2), CHOIR_SHAPE(N, T - 1, WIDTH),
			"lengths*6*0 to 5");
	assert_refused(g, choir_global_average_pool_new(), CHOIR_SHAPE(N, 2, T, 1), "[4, 2, 6, 1]");
	choir_layer *last = choir_sequential_new(
			2, (choir_layer *[]){ choir_lstm_new("end", WIDTH, 2), choir_last_timestep_new() });
	choir_layer *mixed = choir_bidirectional_new(choir_gru_new("all", WIDTH, 2), last);
	assert_refused(g, mixed, text, "bidirectional*[4, 6, 2] and [4, 2]*time steps");
	assert_null(choir_layer_apply(mixed, choir_fill(g->frame, CHOIR_F32, text, 1)));
	assert_text_holds(choir_error(), "bidirectional*[4, 6, 2] and [4, 2]*time steps");
	choir_frame_clear(g->frame); // fewer time steps in both directions are right
	choir_layer *half = choir_bidirectional_new(
			choir_conv1d_new("one", WIDTH, 2, 3, CHOIR_OPTIONS(choir_conv_options, .stride = 2)),
			choir_conv1d_new("two", WIDTH, 2, 3, CHOIR_OPTIONS(choir_conv_options, .stride = 2)));
	choir_tensor *y = choir_layer_apply(half, choir_fill(g->frame, CHOIR_F32, text, 1));
	assert_non_null(y);
	assert_int_equal(choir_tensor_shape(y)->dim[1], (T - 3) / 2 + 1);
}
