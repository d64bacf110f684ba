// Attention, LSTM and GRU: against the same formulas made of small operations, gradients against
// finite differences, oneDNN's products against plain ones, and what is refused.
#include "base/alloc.h"
#include "base/thread.h"
#include "choir/nn.h"
#include "op/given.h"
#include "op/kernel_calls.h"
#include "op/onednn/onednn.h"
#include "short.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const devices[] = { "cpu:0", "far:0" };

static void assert_same(choir_tensor *got, choir_tensor *expected, double tolerance)
{
	if (!got || !expected)
		fail_msg("%s", choir_error());
	const int64_t n = choir_shape_elements(&expected->shape);
	assert_true(chi_shape_equal(&got->shape, &expected->shape));
	double *a = calloc((size_t) n + 1, 8), *b = calloc((size_t) n + 1, 8);
	assert_non_null(a);
	assert_non_null(b);
	choir_tensor *x = choir_cast(got, CHOIR_F64), *y = choir_cast(expected, CHOIR_F64);
	assert_int_equal(choir_tensor_to_host(x, a, (size_t) n * 8), CHOIR_OK);
	assert_int_equal(choir_tensor_to_host(y, b, (size_t) n * 8), CHOIR_OK);
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(a[i] - b[i]) <= tolerance))
			fail_msg("element %lld is %.17g, expected %.17g", (long long) i, a[i], b[i]);
	free(a);
	free(b);
}

// One head after the other, with the whole matrix of scores.
static choir_tensor *attention_by_parts(
		choir_tensor *q, choir_tensor *k, choir_tensor *v, int64_t heads, bool causal)
{
	const int64_t t = q->shape.dim[1], s = k->shape.dim[1], width = q->shape.dim[2] / heads;
	choir_tensor *all[8];
	double *hidden = calloc((size_t) (t * s), 8);

	assert_non_null(hidden);
	for (int64_t i = 0; i < t * s && causal; i++)
		hidden[i] = i % s > i / s + s - t ? -1e30 : 0;
	choir_tensor *mask =
			choir_cast(choir_constant(q->frame, CHOIR_F64, CHOIR_SHAPE(t, s), hidden), q->dtype);
	free(hidden);
	for (int64_t h = 0; h < heads; h++) {
		choir_tensor *scores =
				choir_scale(choir_matmul(choir_slice(q, 2, h * width, width),
									choir_slice(k, 2, h * width, width), CHOIR_TRANSPOSED_B),
						1 / sqrt((double) width));
		all[h] = choir_matmul(choir_softmax(choir_add(scores, mask)),
				choir_slice(v, 2, h * width, width), CHOIR_TRANSPOSED_NONE);
	}
	return choir_concat((size_t) heads, all, 2);
}

TEST(attention_is_its_formula)
{
	static const int64_t sizes[][5] = { { 2, 5, 5, 6, 3 }, { 1, 64, 64, 4, 1 },
		{ 2, 65, 70, 4, 2 }, { 1, 1, 9, 2, 2 }, { 1, 150, 150, 8, 2 }, { 1, 3, 3, 1, 1 } };
	given g;

	for (int d = 0; d < 2; d++)
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
			for (int causal = 0; causal < 4; causal++) {
				given_open(&g, devices[d], i);
				const int64_t *z = sizes[i];
				const choir_dtype dtype = causal / 2 ? CHOIR_F32 : CHOIR_F64;
				choir_tensor *q =
						choir_cast(given_normal(&g, CHOIR_SHAPE(z[0], z[1], z[3])), dtype);
				choir_tensor *k =
						choir_cast(given_normal(&g, CHOIR_SHAPE(z[0], z[2], z[3])), dtype);
				choir_tensor *v =
						choir_cast(given_normal(&g, CHOIR_SHAPE(z[0], z[2], z[3])), dtype);
				const choir_attention_options o = {
					.size = sizeof o, .heads = z[4], .causal = causal % 2 ? CHOIR_ON : CHOIR_OFF
				};
				choir_tensor *expected = attention_by_parts(q, k, v, z[4], causal % 2);
				const double tolerance = dtype == CHOIR_F32 ? 2e-6 : 1e-13;
				assert_same(choir_attention(q, k, v, &o), expected, tolerance);
				if (z[1] == z[2])
					assert_same(choir_self_attention(
										choir_concat(3, (choir_tensor *[]){ q, k, v }, 2), &o),
							expected, tolerance);
				given_close(&g);
			}
}

static choir_tensor *attend(choir_tensor *const in[], void *user)
{
	return choir_attention(in[0], in[1], in[2], user);
}

static choir_tensor *attend_self(choir_tensor *const in[], void *user)
{
	return choir_self_attention(in[0], user);
}

TEST(gradients_of_attention)
{
	given g;

	for (int round = 0; round < 8; round++) {
		given_open(&g, devices[round == 7], (uint64_t) round);
		const int64_t heads = given_size(&g, 1, 3), width = heads * given_size(&g, 1, 2);
		const int64_t n = given_size(&g, 1, 2), t = round == 6 ? 67 : given_size(&g, 1, 5);
		const int64_t s = t + given_size(&g, 0, 3);
		choir_attention_options o = { .size = sizeof o,
			.heads = heads,
			.causal = round % 2 ? CHOIR_ON : CHOIR_OFF,
			.scale = round == 4 ? 0.3 : 0 };
		choir_tensor *const in[] = { given_normal(&g, CHOIR_SHAPE(n, t, width)),
			given_normal(&g, CHOIR_SHAPE(n, s, width)),
			given_normal(&g, CHOIR_SHAPE(n, s, width)) };
		if (round != 6)
			given_check(&g, 3, in, attend, &o);
		choir_tensor *qkv = given_normal(&g, CHOIR_SHAPE(round == 6 ? 1 : n, t, 3 * heads));
		given_check(&g, 1, &qkv, attend_self, &o);
		given_close(&g);
	}
}

// All places one after the other; parts of the gates by slices.
static choir_tensor *part(choir_tensor *z, int64_t index, int64_t h)
{
	return choir_slice(z, 1, index * h, h);
}

static choir_tensor *place(choir_tensor *x, int64_t k)
{
	return choir_reshape(choir_slice(x, 1, k, 1), CHOIR_SHAPE(x->shape.dim[0], x->shape.dim[2]));
}

static choir_tensor *lstm_by_parts(choir_tensor *const in[], choir_tensor **cell)
{
	const int64_t h = in[2]->shape.dim[0], n = in[0]->shape.dim[0], t = in[0]->shape.dim[1];
	choir_tensor *state = in[4], *c = in[5], *all[16];

	for (int64_t k = 0; k < t; k++) {
		choir_tensor *z = choir_bias_add(
				choir_add(choir_matmul(place(in[0], k), in[1], CHOIR_TRANSPOSED_NONE),
						choir_matmul(state, in[2], CHOIR_TRANSPOSED_NONE)),
				in[3]);
		choir_tensor *i = choir_sigmoid(part(z, 0, h)), *f = choir_sigmoid(part(z, 1, h));
		choir_tensor *g = choir_tanh(part(z, 2, h)), *o = choir_sigmoid(part(z, 3, h));
		c = choir_add(choir_multiply(f, c), choir_multiply(i, g));
		state = choir_multiply(o, choir_tanh(c));
		all[k] = choir_reshape(state, CHOIR_SHAPE(n, 1, h));
	}
	*cell = c;
	return choir_concat((size_t) t, all, 1);
}

static choir_tensor *gru_by_parts(choir_tensor *const in[])
{
	const int64_t h = in[2]->shape.dim[0], n = in[0]->shape.dim[0], t = in[0]->shape.dim[1];
	choir_tensor *state = in[5], *all[16];

	for (int64_t k = 0; k < t; k++) {
		choir_tensor *a =
				choir_bias_add(choir_matmul(place(in[0], k), in[1], CHOIR_TRANSPOSED_NONE), in[3]);
		choir_tensor *q = choir_bias_add(choir_matmul(state, in[2], CHOIR_TRANSPOSED_NONE), in[4]);
		choir_tensor *z = choir_sigmoid(choir_add(part(a, 0, h), part(q, 0, h)));
		choir_tensor *r = choir_sigmoid(choir_add(part(a, 1, h), part(q, 1, h)));
		choir_tensor *m = choir_tanh(choir_add(part(a, 2, h), choir_multiply(r, part(q, 2, h))));
		state = choir_add(choir_multiply(z, state), choir_subtract(m, choir_multiply(z, m)));
		all[k] = choir_reshape(state, CHOIR_SHAPE(n, 1, h));
	}
	return choir_concat((size_t) t, all, 1);
}

// x, kernel, recurrent, and what else a layer with so many parts takes.
static void recurrent_inputs(given *g, int64_t parts, choir_tensor *in[6])
{
	const int64_t n = given_size(g, 1, 3), t = given_size(g, 1, 4), size = given_size(g, 1, 3);
	const int64_t h = given_size(g, 1, 4);

	in[0] = given_normal(g, CHOIR_SHAPE(n, t, size));
	in[1] = given_normal(g, CHOIR_SHAPE(size, parts * h));
	in[2] = given_normal(g, CHOIR_SHAPE(h, parts * h));
	in[3] = given_normal(g, CHOIR_SHAPE(parts * h));
	in[4] = parts == 4 ? given_normal(g, CHOIR_SHAPE(n, h)) : given_normal(g, in[3]->shape);
	in[5] = given_normal(g, CHOIR_SHAPE(n, h));
}

static choir_tensor *lstm(choir_tensor *const in[], void *user)
{
	choir_tensor **cell = user;
	return choir_lstm(in[0], in[1], in[2], in[3],
			CHOIR_OPTIONS(
					choir_recurrent_options, .state = in[4], .cell = in[5], .last_cell = cell));
}

// The states, and the last cell behind them.
static choir_tensor *lstm_ends(choir_tensor *const in[], void *user)
{
	choir_tensor *cell, *y = lstm(in, &cell);
	const int64_t n = in[4]->shape.dim[0], h = in[4]->shape.dim[1];
	choir_tensor *const ends[] = { y, cell ? choir_reshape(cell, CHOIR_SHAPE(n, 1, h)) : NULL };
	(void) user;
	return choir_concat(2, ends, 1);
}

static choir_tensor *last_cell(choir_tensor *const in[], void *user)
{
	choir_tensor *cell;
	(void) user;
	return lstm(in, &cell) ? cell : NULL;
}

static choir_tensor *gru(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_gru(in[0], in[1], in[2], in[3], in[4], in[5]);
}

TEST(recurrent_layers)
{
	given g;

	for (int round = 0; round < 10; round++) {
		given_open(&g, devices[round % 2], 50 + (uint64_t) round);
		choir_tensor *in[6], *cell, *expected_cell;
		recurrent_inputs(&g, 4, in);
		choir_tensor *y = lstm(in, &cell);
		assert_same(y, lstm_by_parts(in, &expected_cell), 1e-13);
		assert_same(cell, expected_cell, 1e-13);
		given_check(&g, 6, in, lstm, NULL);
		given_check(&g, 6, in, lstm_ends, NULL);
		given_check(&g, 6, in, last_cell, NULL);
		recurrent_inputs(&g, 3, in);
		assert_same(gru(in, NULL), gru_by_parts(in), 1e-13);
		given_check(&g, 6, in, gru, NULL);
		// Without a state there are zeros.
		choir_tensor *zeros = choir_scale(in[5], 0);
		assert_same(choir_gru(in[0], in[1], in[2], in[3], in[4], NULL),
				choir_gru(in[0], in[1], in[2], in[3], in[4], zeros), 0);
		given_close(&g);
	}
}

// Every kernel that is made of products, by oneDNN's and by plain ones.
static void compare(const char *operation, size_t n, choir_buffer in[], choir_shape shape,
		const void *attributes)
{
	choir_buffer a = kernels_buffer(CHOIR_F32, shape), b = kernels_buffer(CHOIR_F32, shape);
	kernels_plain(operation, n, in, &a, attributes);
	if (kernels_run(chi_onednn_list, operation, n, in, &b, attributes) == CHOIR_OK)
		for (int64_t i = 0; i < choir_shape_elements(&shape); i++)
			kernels_assert_near(operation, &b, i, kernels_get(&a, i), 2e-5);
	kernels_free(1, &a);
	kernels_free(1, &b);
}

TEST(onednn_gives_the_same)
{
	uint64_t seed = 3;

	for (int round = 0; round < 12; round++) {
		const int64_t n = kernels_integer(&seed, 1, 3), t = kernels_integer(&seed, 1, 130);
		const int64_t heads = kernels_integer(&seed, 1, 3);
		const int64_t width = heads * kernels_integer(&seed, 1, 17);
		const choir_attention_attributes a = { heads, round % 2, 0.2 };
		choir_buffer in[2] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(n, t, 3 * width)),
			kernels_buffer(CHOIR_F32, CHOIR_SHAPE(n, t, width)) };
		for (int i = 0; i < 2; i++)
			kernels_fill(&in[i], &seed, -1, 1);
		compare("attention", 1, in, in[1].shape, &a);
		compare("attention_gradient", 2, in, in[0].shape, &a);
		kernels_free(2, in);
		const int64_t h = kernels_integer(&seed, 1, 20), k = kernels_integer(&seed, 1, 5);
		choir_buffer r[4] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(n, k, 4 * h)),
			kernels_buffer(CHOIR_F32, CHOIR_SHAPE(h, 4 * h)),
			kernels_buffer(CHOIR_F32, CHOIR_SHAPE(n, h)),
			kernels_buffer(CHOIR_F32, CHOIR_SHAPE(n, h)) };
		for (int i = 0; i < 4; i++)
			kernels_fill(&r[i], &seed, -1, 1);
		compare("lstm", 4, r, CHOIR_SHAPE(n, k, 6 * h), NULL);
		kernels_free(4, r);
	}
}

// A call in a thread of its own.
typedef struct {
	const choir_buffer *in;
	choir_buffer out;
	choir_attention_attributes attributes;
	choir_status status;
} job;

static void run_job(void *arg)
{
	job *j = arg;
	choir_buffer in[2] = { j->in[0], j->in[1] };
	j->status = kernels_run(chi_onednn_list, "attention_gradient", 2, in, &j->out, &j->attributes);
}

TEST(bits_do_not_depend_on_threads)
{
	enum { THREADS = 4 };
	const choir_shape shape = CHOIR_SHAPE(2, 130, 3 * 64);
	choir_buffer in[2] = { kernels_buffer(CHOIR_F32, shape),
		kernels_buffer(CHOIR_F32, CHOIR_SHAPE(2, 130, 64)) };
	chi_thread threads[THREADS] = { 0 };
	job jobs[THREADS];
	uint64_t seed = 5;

	for (int i = 0; i < 2; i++)
		kernels_fill(&in[i], &seed, -1, 1);
	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (job){
			.in = in, .out = kernels_buffer(CHOIR_F32, shape), .attributes = { 4, true, 0.25 }
		};
		assert_int_equal(chi_thread_start(&threads[i], "attention", run_job, &jobs[i]), CHOIR_OK);
	}
	for (int i = 0; i < THREADS; i++)
		chi_thread_join(&threads[i]);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(jobs[i].status, jobs[0].status);
		assert_memory_equal(jobs[i].out.data, jobs[0].out.data,
				(size_t) choir_shape_elements(&shape) * sizeof(float));
	}
	for (int i = 0; i < THREADS; i++)
		kernels_free(1, &jobs[i].out);
	kernels_free(2, in);
}

// All that makes more than one tensor, there and back.
static choir_status everything(choir_frame *f)
{
	choir_tensor *x = choir_random_normal(f, CHOIR_F64, CHOIR_SHAPE(2, 3, 6), 1), *cell = NULL;
	choir_tensor *w = choir_random_normal(f, CHOIR_F64, CHOIR_SHAPE(6, 8), 2);
	choir_tensor *u = choir_random_normal(f, CHOIR_F64, CHOIR_SHAPE(2, 8), 3);
	choir_tensor *b = choir_fill(f, CHOIR_F64, CHOIR_SHAPE(8), 0.5);
	choir_tensor *scale = choir_fill(f, CHOIR_F64, CHOIR_SHAPE(6), 2), *parts[3], *gradients[5];
	choir_tensor *const sources[] = { x, w, u, b, scale };
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *y = choir_batch_norm(x, scale, scale, NULL);
	y = choir_layer_norm(choir_add(y, x), scale, scale, 1e-5);
	if (choir_split(y, 2, 3, parts) == CHOIR_OK)
		y = choir_concat(3, (choir_tensor *[]){ parts[2], parts[0], parts[1] }, 2);
	y = choir_lstm(y, w, u, b, CHOIR_OPTIONS(choir_recurrent_options, .last_cell = &cell));
	y = choir_concat(3, (choir_tensor *[]){ y, y, choir_square(y) }, 2);
	y = choir_self_attention(y, CHOIR_OPTIONS(choir_attention_options, .causal = CHOIR_ON));
	y = choir_attention(y, y, choir_transpose(choir_transpose(y, NULL), NULL), NULL);
	choir_tensor *loss = choir_sum(choir_square(y), CHOIR_ALL_AXES);
	loss = choir_add(loss, choir_sum(cell, CHOIR_ALL_AXES));
	return choir_tape_gradient(tape, loss, 5, sources, gradients);
}

TEST(memory_runs_out)
{
	for (int d = 0; d < 2; d++) {
		bool failed = true;
		for (uint64_t n = 1; failed; n += SERIAL_STRIDE) {
			given g;
			chi_buffer_trim(); // so that there is something to allocate
			given_open(&g, devices[d], 10);
			chi_alloc_fail(n, true); // one failure alone is tried again
			const choir_status status = everything(g.frame);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			if (status != (failed ? CHOIR_NO_MEMORY : CHOIR_OK))
				fail_msg("allocation %d: %s", (int) n, choir_error());
			given_close(&g);
			assert_int_equal(chi_buffer_in_use(choir_device_find(devices[d])), 0);
		}
	}
}

// Bytes that attention needs beside its input, there and back.
static double memory_of_attention(choir_dtype dtype, int64_t places)
{
	const choir_attention_options o = { .size = sizeof o, .heads = 4 };
	const choir_device *d = choir_device_find("cpu:0");
	choir_tensor *gradient;
	given g;

	given_open(&g, "cpu:0", 12);
	choir_tensor *x = choir_cast(given_normal(&g, CHOIR_SHAPE(1, places, 3 * 16)), dtype);
	const size_t before = chi_buffer_in_use(d);
	chi_buffer_reset_peak(d);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *y = choir_sum(choir_self_attention(x, &o), CHOIR_ALL_AXES);
	if (choir_tape_gradient(tape, y, 1, &x, &gradient) != CHOIR_OK)
		fail_msg("%s", choir_error());
	const double bytes = (double) (chi_buffer_peak(d) - before);
	given_close(&g);
	return bytes;
}

// Twice as many places: twice the memory, where all scores would be four times as much.
TEST(memory_grows_with_the_places)
{
	for (int dtype = CHOIR_F32; dtype <= CHOIR_F64; dtype++) {
		const double once = memory_of_attention((choir_dtype) dtype, 192);
		const double twice = memory_of_attention((choir_dtype) dtype, 384);
		if (!(once > 0 && twice < 2.5 * once))
			fail_msg("192 places: %g bytes, 384 places: %g bytes", once, twice);
	}
}

TEST(refused)
{
	given g;
	choir_tensor *x, *w;

	given_open(&g, "cpu:0", 4);
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 8));
	assert_null(choir_self_attention(x, NULL));
	given_failure(&g, CHOIR_INVALID, "attention:*[2, 3, 8]*[n, positions, 3 width]");
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 6));
	assert_null(choir_self_attention(x, CHOIR_OPTIONS(choir_attention_options, .heads = 4)));
	given_failure(&g, CHOIR_INVALID, "attention:*4*2");
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 6));
	w = given_normal(&g, CHOIR_SHAPE(2, 2, 6));
	assert_null(
			choir_attention(x, w, w, CHOIR_OPTIONS(choir_attention_options, .causal = CHOIR_ON)));
	given_failure(&g, CHOIR_INVALID, "attention:*3 queries*2 keys");
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 6));
	assert_null(choir_attention(x, x, given_normal(&g, CHOIR_SHAPE(2, 2, 6)), NULL));
	given_failure(&g, CHOIR_INVALID, "[2, 3, 6]*[2, 2, 6]");
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 6));
	assert_null(choir_self_attention(x, CHOIR_OPTIONS(choir_attention_options, .heads = -1)));
	given_failure(&g, CHOIR_INVALID, "attention:*-1*causal 0*scale 0");
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 6));
	w = given_normal(&g, CHOIR_SHAPE(6, 8));
	assert_null(choir_lstm(x, w, w, given_normal(&g, CHOIR_SHAPE(8)), NULL));
	given_failure(&g, CHOIR_INVALID, "lstm:*[2, 3, 6]*[6, 8]*[8]");
	x = w = given_normal(&g, CHOIR_SHAPE(2, 3));
	choir_tensor *cell = x; // NULL after a failure, also one of an operand
	choir_recurrent_options o = { .size = sizeof o, .last_cell = &cell };
	assert_null(choir_lstm(choir_reshape(x, CHOIR_SHAPE(7)), w, w, w, &o));
	assert_null(cell);
	given_failure(&g, CHOIR_INVALID, "reshape");
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 1));
	w = given_normal(&g, CHOIR_SHAPE(1, 3));
	choir_tensor *b = given_normal(&g, CHOIR_SHAPE(3));
	assert_null(choir_gru(x, w, w, b, b, given_normal(&g, CHOIR_SHAPE(1, 1))));
	given_failure(&g, CHOIR_INVALID, "gru:*f64*[1, 1]*[2, 1]");
	// A state that the host may not touch, which is asked before it is looked at.
	given far;
	given_open(&far, "far:0", 4);
	choir_tensor *state_there = given_normal(&far, CHOIR_SHAPE(2, 1));
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 1));
	w = given_normal(&g, CHOIR_SHAPE(1, 3));
	b = given_normal(&g, CHOIR_SHAPE(3));
	assert_null(choir_gru(x, w, w, b, b, state_there));
	given_failure(&g, CHOIR_INVALID, "gru:*operand 2");
	given_close(&far);
	given_close(&g);
}
