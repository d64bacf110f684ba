// Sequences of different lengths: against loops, LSTM and GRU against each sequence alone,
// gradients against finite differences and with zeros in the padding, and what is refused.
#include "base/alloc.h"
#include "op/given.h"
#include "short.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { MOST = 5, WIDTH = 3, STATE = 2, INPUTS = 6 };

static const char *const devices[] = { "cpu:0", "far:0" };
static const choir_dtype integers[] = { CHOIR_U8, CHOIR_I32, CHOIR_I64 };

typedef struct {
	given g;
	int64_t n, t, length[MOST];
	choir_tensor *lengths;
} batch;

static void batch_open(batch *b, int round)
{
	double all[MOST];

	given_open(&b->g, devices[round % 2], 70 + (uint64_t) round);
	b->n = given_size(&b->g, 1, MOST);
	b->t = given_size(&b->g, 1, MOST);
	for (int64_t i = 0; i < b->n; i++)
		all[i] = (double) (b->length[i] = given_size(&b->g, 0, b->t));
	b->lengths = choir_cast(
			choir_constant(b->g.frame, CHOIR_F64, CHOIR_SHAPE(b->n), all), integers[round % 3]);
	assert_non_null(b->lengths);
}

static void fetch(choir_tensor *t, double *to)
{
	if (!t)
		fail_msg("%s", choir_error());
	assert_int_equal(t->dtype, CHOIR_F64);
	assert_int_equal(choir_tensor_to_host(t, to, chi_tensor_bytes(t)), CHOIR_OK);
}

TEST(against_loops)
{
	double x[MOST * MOST * WIDTH], mask[MOST * MOST], cleared[MOST * MOST * WIDTH];
	double reversed[MOST * MOST * WIDTH], last[MOST * WIDTH];

	for (int round = 0; round < 12; round++) {
		batch b;
		batch_open(&b, round);
		const bool wide = round % 4 != 0; // [n, t, c], or [n, t]
		const int64_t c = wide ? WIDTH : 1, n = b.n, t = b.t;
		choir_tensor *in = given_normal(&b.g, wide ? CHOIR_SHAPE(n, t, c) : CHOIR_SHAPE(n, t));
		fetch(in, x);
		memset(last, 0, sizeof last);
		for (int64_t i = 0; i < n * t * c; i++) {
			const int64_t row = i / c / t, at = i / c % t, length = b.length[row];
			mask[i / c] = at < length;
			cleared[i] = at < length ? x[i] : 0;
			reversed[i] = x[at < length ? i + (length - 1 - 2 * at) * c : i];
			if (at == length - 1)
				last[row * c + i % c] = x[i];
		}
		given_equal(choir_sequence_mask(b.lengths, t), (size_t) (n * t), mask);
		given_equal(choir_zero_padding(in, b.lengths), (size_t) (n * t * c), cleared);
		given_equal(choir_reverse_sequence(in, b.lengths), (size_t) (n * t * c), reversed);
		given_equal(choir_last_timestep(in, b.lengths), (size_t) (n * c), last);
		assert_int_equal(choir_frame_status(b.g.frame), CHOIR_OK);
		given_close(&b.g);
	}
}

static choir_tensor *each_function(choir_tensor *const in[], void *user)
{
	choir_tensor *lengths = user;
	const int64_t n = in[0]->shape.dim[0];
	choir_tensor *parts[] = { choir_zero_padding(in[0], lengths),
		choir_reverse_sequence(in[0], lengths),
		choir_reshape(choir_last_timestep(in[0], lengths), CHOIR_SHAPE(n, 1, WIDTH)) };
	return choir_concat(3, parts, 1);
}

// The states of both directions, and their last ones.
static choir_tensor *both_ways(choir_tensor *const in[], choir_tensor *lengths)
{
	choir_tensor *y = choir_lstm(in[0], in[1], in[2], in[3], NULL);
	choir_tensor *back = choir_reverse_sequence(in[0], lengths);
	back = choir_lstm(back, in[1], in[2], in[3], NULL);
	choir_tensor *const both[] = { y, choir_reverse_sequence(back, lengths) };
	choir_tensor *joined = choir_zero_padding(choir_concat(2, both, 2), lengths);
	choir_tensor *last[] = { choir_last_timestep(y, lengths), choir_last_timestep(back, lengths) };
	choir_tensor *ends = choir_concat(2, last, 1);
	choir_tensor *const all[] = { joined,
		ends ? choir_reshape(ends, CHOIR_SHAPE(y->shape.dim[0], 1, 2 * STATE)) : NULL };
	return choir_concat(2, all, 1);
}

static choir_tensor *lstm(choir_tensor *const in[], void *user)
{
	return both_ways(in, user);
}

static choir_tensor *gru(choir_tensor *const in[], void *user)
{
	choir_tensor *y = choir_gru(in[0], in[1], in[2], in[3], in[4], NULL);
	return choir_zero_padding(y, user);
}

static void weights(batch *b, int64_t parts, choir_tensor *in[INPUTS])
{
	in[0] = given_normal(&b->g, CHOIR_SHAPE(b->n, b->t, WIDTH));
	in[1] = given_normal(&b->g, CHOIR_SHAPE(WIDTH, parts * STATE));
	in[2] = given_normal(&b->g, CHOIR_SHAPE(STATE, parts * STATE));
	in[3] = given_normal(&b->g, CHOIR_SHAPE(parts * STATE));
	in[4] = given_normal(&b->g, CHOIR_SHAPE(parts * STATE));
}

TEST(gradients)
{
	for (int round = 0; round < 8; round++) {
		batch b;
		choir_tensor *in[INPUTS];
		batch_open(&b, round);
		weights(&b, 4, in);
		given_check(&b.g, 1, in, each_function, b.lengths);
		given_check(&b.g, 4, in, lstm, b.lengths);
		weights(&b, 3, in);
		given_check(&b.g, 5, in, gru, b.lengths);
		given_close(&b.g);
	}
}

// The result of a formula, and the gradients of x and of the weights.
static void results(choir_tensor *const in[], size_t n, choir_formula_fn *fn,
		choir_tensor *lengths, choir_tensor **y, choir_tensor *gradients[])
{
	choir_tape *tape = in[0]->frame->tape;
	choir_tensor *sources[INPUTS];
	memcpy(sources, in, n * sizeof *in);
	*y = fn(in, lengths);
	if (choir_tape_gradient_recorded(tape, choir_sum(choir_square(*y), CHOIR_ALL_AXES), n, sources,
				gradients) != CHOIR_OK)
		fail_msg("%s", choir_error());
}

// Sequence i of the batch alone: with a length of 0, one cleared time step.
static choir_tensor *alone(choir_tensor *x, int64_t i, int64_t length)
{
	return choir_slice(choir_slice(x, 0, i, 1), 1, 0, length);
}

static void compare(choir_tensor *got, choir_tensor *expected, double tolerance)
{
	double a[256], b[256];

	if (!got || !expected)
		fail_msg("%s", choir_error());
	assert_true(chi_shape_equal(&got->shape, &expected->shape));
	fetch(got, a);
	fetch(expected, b);
	for (int64_t i = 0; i < choir_shape_elements(&got->shape); i++)
		assert_true(fabs(a[i] - b[i]) <= tolerance);
}

// A padded batch gives each sequence's own results, and the sum of their gradients. The padding's
// gradient is 0.
static void assert_each_alone(batch *b, size_t inputs, int64_t parts, choir_formula_fn *fn)
{
	choir_tensor *in[INPUTS], *y, *gradients[INPUTS], *sums[INPUTS] = { NULL };
	weights(b, parts, in);
	assert_non_null(choir_tape_begin(b->g.frame));
	results(in, inputs, fn, b->lengths, &y, gradients);
	compare(gradients[0], choir_zero_padding(gradients[0], b->lengths), 0);
	for (int64_t i = 0; i < b->n; i++) {
		choir_tensor *own[INPUTS], *own_y, *own_gradients[INPUTS];
		const int64_t length = b->length[i];
		if (length == 0) {
			choir_tensor *none = alone(y, i, y->shape.dim[1]);
			compare(none, choir_scale(none, 0), 0);
			continue;
		}
		memcpy(own, in, sizeof own);
		own[0] = alone(in[0], i, length);
		results(own, inputs, fn, choir_constant(b->g.frame, CHOIR_I64, CHOIR_SHAPE(1), &length),
				&own_y, own_gradients);
		compare(alone(y, i, length), alone(own_y, 0, length), 1e-14);
		if (y->shape.dim[1] > b->t) // last states
			compare(choir_slice(choir_slice(y, 0, i, 1), 1, b->t, 1),
					choir_slice(own_y, 1, length, 1), 1e-14);
		compare(alone(gradients[0], i, length), own_gradients[0], 1e-13);
		for (size_t k = 1; k < inputs; k++)
			sums[k] = sums[k] ? choir_add(sums[k], own_gradients[k]) : own_gradients[k];
	}
	for (size_t k = 1; k < inputs; k++)
		if (sums[k])
			compare(gradients[k], sums[k], 1e-12);
}

TEST(padded_sequences_are_as_alone)
{
	for (int round = 0; round < 8; round++) {
		batch b;
		batch_open(&b, round);
		assert_each_alone(&b, 4, 4, lstm);
		given_close(&b.g);
		batch_open(&b, round);
		assert_each_alone(&b, 5, 3, gru);
		given_close(&b.g);
	}
}

// States, and last cells behind them.
static choir_tensor *lstm_ends(choir_tensor *const in[], void *user)
{
	choir_tensor *lengths = user, *cell;
	choir_tensor *y = choir_lstm(in[0], in[1], in[2], in[3],
			CHOIR_OPTIONS(choir_recurrent_options, .cell = in[4], .last_cell = &cell,
					.lengths = lengths));
	choir_tensor *const ends[] = { y,
		cell ? choir_reshape(cell, CHOIR_SHAPE(in[0]->shape.dim[0], 1, STATE)) : NULL };
	return choir_concat(2, ends, 1);
}

TEST(gradients_of_last_cells)
{
	for (int round = 0; round < 8; round++) {
		batch b;
		choir_tensor *in[INPUTS];
		batch_open(&b, round);
		weights(&b, 4, in);
		in[4] = given_normal(&b.g, CHOIR_SHAPE(b.n, STATE));
		given_check(&b.g, 5, in, lstm_ends, b.lengths);
		given_close(&b.g);
	}
}

TEST(last_cells)
{
	for (int round = 0; round < 6; round++) {
		batch b;
		choir_tensor *in[INPUTS], *cell, *own;
		batch_open(&b, round);
		weights(&b, 4, in);
		choir_tensor *first = given_normal(&b.g, CHOIR_SHAPE(b.n, STATE));
		choir_tensor *y = choir_lstm(in[0], in[1], in[2], in[3],
				CHOIR_OPTIONS(choir_recurrent_options, .cell = first, .last_cell = &cell,
						.lengths = b.lengths));
		assert_non_null(y);
		for (int64_t i = 0; i < b.n; i++) {
			y = choir_lstm(alone(in[0], i, b.length[i]), in[1], in[2], in[3],
					CHOIR_OPTIONS(choir_recurrent_options, .cell = choir_slice(first, 0, i, 1),
							.last_cell = &own));
			assert_non_null(y);
			compare(choir_slice(cell, 0, i, 1), own, 1e-14);
		}
		given_close(&b.g);
	}
}

TEST(refused)
{
	given g;
	const int32_t three[] = { 1, 4, -1 };

	given_open(&g, "cpu:0", 9);
#define REFUSED(call, facts) \
	do { \
		choir_tensor *x = given_normal(&g, CHOIR_SHAPE(3, 3, 2)); \
		choir_tensor *lengths = choir_constant(g.frame, CHOIR_I32, CHOIR_SHAPE(3), three); \
		assert_null(call); \
		given_failure(&g, CHOIR_INVALID, facts); \
		(void) x; \
	} while (0)
	REFUSED(choir_zero_padding(x, lengths), "lengths*4*position 1*0 to 3");
	REFUSED(choir_last_timestep(x, choir_slice(lengths, 0, 0, 2)), "[3, 3, 2]*[2]*[n]");
	REFUSED(choir_reverse_sequence(choir_slice(x, 0, 1, 2), choir_slice(lengths, 0, 1, 2)),
			"lengths*4*position 0");
	REFUSED(choir_sequence_mask(choir_slice(lengths, 0, 2, 1), 3), "lengths*-1*position 0");
	REFUSED(choir_zero_padding(x, choir_cast(lengths, CHOIR_F32)), "lengths*f32 [3]*i32");
	REFUSED(choir_sequence_mask(lengths, -2), "sequence_mask:*-2");
	REFUSED(choir_sequence_mask(choir_reshape(lengths, CHOIR_SHAPE(3, 1)), 4), "[3, 1]*[n]");
	REFUSED(choir_last_timestep(choir_slice(x, 1, 0, 0), lengths), "last_timestep:*no time steps");
#undef REFUSED
	given_close(&g);
}

TEST(memory_runs_out)
{
	bool failed = true;

	for (uint64_t n = 1; failed; n += SERIAL_STRIDE) {
		batch b;
		choir_tensor *in[INPUTS], *gradients[INPUTS];
		chi_buffer_trim();
		batch_open(&b, 2);
		weights(&b, 4, in);
		chi_alloc_fail(n, true);
		choir_tape *tape = choir_tape_begin(b.g.frame);
		choir_tensor *sum = choir_sum(lstm(in, b.lengths), CHOIR_ALL_AXES);
		const choir_status status = choir_tape_gradient(tape, sum, 4, in, gradients);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		given_close(&b.g);
	}
}
