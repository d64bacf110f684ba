// What the public headers promise of operations and tapes and no other test looks at: random bits
// by the formulas written there, ties, what lives and what dies on the way back, and what
// functions of the user's see.
#include "op/given.h"

#include "tensor/dlpack.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static choir_tensor *f64(given *g, choir_shape shape, const double *values)
{
	return choir_constant(g->frame, CHOIR_F64, shape, values);
}

// Philox4x32-10 after the paper (SC 2011), and the counters and keys of extend/kernel_table.h:
// written down a second time, from the text.
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xBF58476D1CE4E5B9;
	x ^= x >> 27;
	x *= 0x94D049BB133111EB;
	return x ^ x >> 31;
}

static void block(uint64_t seed, uint32_t place, uint64_t index, uint32_t w[4])
{
	const uint64_t k = mix(mix(seed) + 0);
	uint32_t key[2] = { (uint32_t) k, (uint32_t) (k >> 32) };

	w[0] = (uint32_t) index, w[1] = (uint32_t) (index >> 32), w[2] = place, w[3] = 0;
	for (int round = 0; round < 10; round++) {
		const uint64_t p = (uint64_t) w[0] * 0xD2511F53, q = (uint64_t) w[2] * 0xCD9E8D57;
		const uint32_t next[4] = { (uint32_t) (q >> 32) ^ w[1] ^ key[0], (uint32_t) q,
			(uint32_t) (p >> 32) ^ w[3] ^ key[1], (uint32_t) p };
		memcpy(w, next, sizeof(next));
		key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
	}
}

static double upper(uint32_t a, uint32_t b)
{
	return (double) (((uint64_t) a << 32 | b) >> 11) / 0x1p53;
}

static double normal(uint64_t seed, uint32_t place, uint64_t i)
{
	uint32_t w[4];
	block(seed, place, i / 2, w);
	const double radius = sqrt(-2 * log(1 - upper(w[0], w[1])));
	const double angle = 2 * 3.14159265358979323846 * upper(w[2], w[3]);
	return radius * (i % 2 ? sin(angle) : cos(angle));
}

TEST(random_bits_are_those_of_the_header)
{
	enum { N = 9 };
	double drawn[N], kept[N];
	uint32_t w[4];
	given g;

	given_open(&g, "cpu:0", 1);
	const choir_shape n = CHOIR_SHAPE(N);
	choir_tensor *t = choir_random_normal(g.frame, CHOIR_F64, n, 77);
	assert_int_equal(choir_tensor_to_host(t, drawn, sizeof(drawn)), CHOIR_OK);
	for (uint64_t i = 0; i < N; i++)
		assert_true(drawn[i] == normal(77, 0, i));
	choir_tape_begin(g.frame);
	t = choir_dropout(choir_fill(g.frame, CHOIR_F64, n, 3), 0.4, 78);
	assert_int_equal(choir_tensor_to_host(t, kept, sizeof(kept)), CHOIR_OK);
	for (uint64_t i = 0; i < N; i++) {
		block(78, 1, i / 4, w);
		assert_true(kept[i] == (w[i % 4] >> 8 >= 0.4 * 0x1p24 ? 3 * (1 / (1 - 0.4)) : 0));
	}
	choir_frame_clear(g.frame); // the count of draws goes on
	t = choir_random_normal(g.frame, CHOIR_F64, n, 77);
	assert_int_equal(choir_tensor_to_host(t, drawn, sizeof(drawn)), CHOIR_OK);
	assert_true(drawn[0] == normal(77, 2, 0));
	assert_null(choir_random_normal(g.frame, CHOIR_I32, n, 77));
	given_failure(&g, CHOIR_UNSUPPORTED, "random_normal:*i32");
	given_close(&g);
}

TEST(ties_and_edges_have_gradients)
{
	const double a[3] = { 1, 2, (double) NAN }, b[3] = { 1, 3, 0 }, zeros[2] = { 0, -1 };
	choir_tensor *gradients[2], *x;
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *const sources[] = { f64(&g, CHOIR_SHAPE(3), a), f64(&g, CHOIR_SHAPE(3), b) };
	choir_tensor *y = choir_maximum(sources[0], sources[1]);
	assert_true(isnan(((const double *) choir_tensor_data(y))[2]));
	assert_true(
			isnan(((const double *) choir_tensor_data(choir_maximum(sources[1], sources[0])))[2]));
	assert_int_equal(choir_tape_gradient(tape, y, 2, sources, gradients), CHOIR_OK);
	given_equal(gradients[0], 3, (const double[]){ 1, 0, 1 });
	given_equal(gradients[1], 3, (const double[]){ 0, 1, 0 });
	choir_frame_clear(g.frame);
	tape = choir_tape_begin(g.frame);
	x = f64(&g, CHOIR_SHAPE(2), zeros);
	assert_int_equal(choir_tape_gradient(tape, choir_relu(x), 1, &x, gradients), CHOIR_OK);
	given_equal(gradients[0], 2, (const double[]){ 0, 0 });
	choir_frame_clear(g.frame);
	tape = choir_tape_begin(g.frame);
	x = f64(&g, CHOIR_SCALAR, zeros);
	assert_int_equal(choir_tape_gradient(tape, choir_sqrt(x), 1, &x, gradients), CHOIR_OK);
	assert_true(isinf(choir_tensor_number(gradients[0])));
	given_close(&g);
}

TEST(what_lives_after_the_way_back)
{
	given g;

	given_open(&g, "cpu:0", 1);
	const size_t start = choir_frame_mark(g.frame);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2), 3), *gradients[2];
	choir_tensor *h = choir_square(x), *logits = choir_scale(h, 2);
	choir_tensor *aside = choir_reshape(h, CHOIR_SHAPE(2, 1)), *stopped = choir_stop_gradient(h);
	struct DLManagedTensorVersioned *exported = choir_tensor_to_dlpack(logits);
	choir_tensor *loss = choir_sum(logits, CHOIR_ALL_AXES);
	choir_tensor *const sources[] = { x, logits };
	assert_int_equal(choir_tape_gradient(tape, loss, 2, sources, gradients), CHOIR_OK);
	given_equal(gradients[0], 2, (const double[]){ 12, 12 });
	given_equal(gradients[1], 2, (const double[]){ 1, 1 });
	given_equal(loss, 1, (const double[]){ 36 });
	given_equal(logits, 2, (const double[]){ 18, 18 }); // a source
	given_equal(aside, 2, (const double[]){ 9, 9 });
	given_equal(stopped, 2, (const double[]){ 9, 9 });
	assert_true(((const double *) exported->tensor.data)[1] == 18);
	exported->deleter(exported);
	assert_true(choir_frame_is_training(g.frame));
	assert_ptr_not_equal(choir_dropout(x, 0.5, 1), x);
	assert_int_equal(choir_frame_status(g.frame), CHOIR_OK);

	choir_frame_rewind(g.frame, start);
	assert_false(choir_frame_is_training(g.frame));
	tape = choir_tape_begin(g.frame); // a new one
	x = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2), 3);
	h = choir_square(x), loss = choir_scale(h, 2);
	assert_int_equal(choir_tape_gradient(tape, loss, 1, &x, gradients), CHOIR_OK);
	assert_null(choir_tensor_data(h));
	given_failure(&g, CHOIR_STATE, "dropped");
	tape = choir_tape_begin(g.frame);
	x = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2), 3);
	assert_int_equal(choir_tape_gradient(tape, choir_exp(x), 1, &x, gradients), CHOIR_OK);
	assert_null(choir_tape_begin(g.frame)); // not while the old one is there
	given_failure(&g, CHOIR_STATE, "empty the frame");
	given_close(&g);
}

TEST(what_gradients_flow_through)
{
	choir_tensor *gradient;
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2), 3);
	choir_tensor *counted = choir_with_count(x, 7), *moved = choir_copy(counted, g.frame);
	assert_int_equal(moved->count, 7);
	assert_int_equal(choir_square(counted)->count, CHOIR_NONE);
	choir_tensor *y = choir_add(choir_scale(counted, 5), choir_square(moved));
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_OK);
	given_equal(gradient, 2, (const double[]){ 5, 5 });
	given_close(&g);
}

TEST(axes_numbers_and_dtypes)
{
	const int64_t whole[2] = { 5, 6 };
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *i = choir_constant(g.frame, CHOIR_I64, CHOIR_SHAPE(2), whole);
	assert_ptr_equal(choir_sum(i, CHOIR_NO_AXIS), i);
	assert_int_equal(choir_tensor_dtype(choir_mean(i, CHOIR_ALL_AXES)), CHOIR_F64);
	assert_true(choir_tensor_number(choir_mean(i, CHOIR_AXIS(-1))) == 5.5);
	choir_tensor *truth = choir_cast(i, CHOIR_BOOL);
	assert_int_equal(choir_tensor_dtype(choir_mean(truth, CHOIR_ALL_AXES)), CHOIR_F32);
	given_equal(
			choir_bias_add(choir_reshape(i, CHOIR_SHAPE(1, 2)), i), 2, (const double[]){ 10, 12 });
	assert_null(choir_scale(i, 2));
	given_failure(&g, CHOIR_UNSUPPORTED, "scale:*i64*f32*f64");
	// A number that was cast has a dtype of its own.
	choir_tensor *one = choir_cast(choir_number(g.frame, 1), CHOIR_F64);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 3);
	assert_null(choir_add(x, one));
	given_failure(&g, CHOIR_INVALID, "add:*f32*f64");
	given_close(&g);
}

// A device that works asynchronously reports where something waits.
TEST(a_label_that_is_no_class)
{
	float loss;
	given g;

	given_open(&g, "far:0", 1);
	choir_tensor *logits = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(1, 2), 0);
	choir_tensor *label = choir_fill(g.frame, CHOIR_U8, CHOIR_SHAPE(1), 2);
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(label, logits);
	assert_non_null(losses);
	assert_int_equal(choir_tensor_to_host(losses, &loss, sizeof(loss)), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "label 2*example 0*1");
	given_close(&g);
}

enum { INPUTS = 8, ELEMENTS = 100 };

typedef struct {
	bool refuse;
	int shapes;
	unsigned wanted; // a bit for each input
} seen;

static choir_status sum_shape(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	seen *s = user;
	s->shapes++;
	assert_null(out->data);
	for (size_t i = 0; i < n; i++)
		assert_null(in[i].data);
	assert_int_equal(out->dtype, in[0].dtype); // as in[0] unless it says otherwise
	assert_int_equal(out->shape.dim[0], in[0].shape.dim[0]);
	return CHOIR_OK;
}

static choir_status sum(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	float *y = out->data;

	(void) user;
	for (int k = 0; k < ELEMENTS; k++) {
		y[k] = 0;
		for (size_t i = 0; i < n; i++)
			y[k] += ((const float *) in[i].data)[k];
	}
	return CHOIR_OK;
}

// Adds to what is there.
static choir_status sum_back(size_t n, const choir_buffer in[], const choir_buffer *out,
		const choir_buffer *out_gradient, choir_buffer gradient[], void *user)
{
	const float *dy = out_gradient->data;
	seen *s = user;

	(void) in, (void) out;
	if (s->refuse)
		return choir_fail(CHOIR_IO, "refused");
	for (size_t i = 0; i < n; i++) {
		float *dx = gradient[i].data;
		assert_int_equal(gradient[i].shape.dim[0], ELEMENTS);
		if (!dx)
			continue;
		s->wanted |= 1u << i;
		for (int k = 0; k < ELEMENTS; k++)
			dx[k] += dy[k];
	}
	return CHOIR_OK;
}

// The result of an operation whose description is gone when this returns.
static choir_tensor *sum_of(choir_tensor *const inputs[], seen *s)
{
	char name[] = "eight";
	choir_custom_op op = {
		.size = sizeof(op), .name = name, .shape = sum_shape, .forward = sum, .backward = sum_back
	};
	choir_tensor *y = choir_custom_op_apply(&op, s, INPUTS, inputs);
	memset(&op, 0, sizeof(op));
	memset(name, '-', sizeof(name) - 1);
	return y;
}

TEST(what_functions_of_the_users_see)
{
	choir_tensor *inputs[INPUTS], *gradients[2];
	seen s = { 0 };
	given g;

	given_open(&g, "cpu:0", 1);
	for (int round = 0; round < 2; round++) {
		const size_t mark = choir_frame_mark(g.frame);
		for (int i = 0; i < 20; i++) // memory that is anything but zero
			choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(ELEMENTS), 1e30);
		choir_frame_rewind(g.frame, mark);
		choir_tape *tape = choir_tape_begin(g.frame);
		for (int i = 0; i < INPUTS; i++)
			inputs[i] = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(ELEMENTS), i);
		choir_tensor *y = choir_scale(sum_of(inputs, &s), 2);
		choir_tensor *const sources[] = { inputs[1], inputs[6] };
		assert_int_equal(s.shapes, round + 1);
		s.refuse = round == 1;
		const choir_status status = choir_tape_gradient(tape, y, 2, sources, gradients);
		assert_int_equal(status, round == 0 ? CHOIR_OK : CHOIR_IO);
		if (round == 1)
			continue;
		assert_int_equal(s.wanted, 1u << 1 | 1u << 6);
		for (int i = 0; i < 2; i++)
			for (int k = 0; k < ELEMENTS; k++)
				assert_true(((const float *) choir_tensor_data(gradients[i]))[k] == 2);
		choir_frame_clear(g.frame);
	}
	assert_null(gradients[0]);
	assert_null(gradients[1]);
	given_failure(&g, CHOIR_IO, "eight:*refused");
	given_close(&g);
}
