// Segments that are made again on the way back: the same gradients to the bit, less memory,
// dropout and nested segments, and what is refused.
#include "op/given.h"

#include "base/alloc.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 6, DEPTH = 5 };

typedef struct {
	choir_tensor *w; // used from outside the segment
	choir_tensor *scale, *offset;
	bool again; // segments; else plain calls
	bool nested;
	int calls;
} model;

static choir_tensor *inner(choir_tensor *const in[], void *user)
{
	const model *m = user;
	return choir_gelu(choir_matmul(in[0], m->w, CHOIR_TRANSPOSED_NONE));
}

// Norm, product, activation, dropout, and a result that nothing uses.
static choir_tensor *block(choir_tensor *const in[], void *user)
{
	model *m = user;
	m->calls++;
	choir_tensor *x = choir_layer_norm(in[0], m->scale, m->offset, 1e-5);
	(void) choir_exp(choir_tanh(x));
	x = m->nested ? choir_recompute(1, &x, inner, m) : inner(&x, m);
	return choir_add(in[0], choir_dropout(x, 0.25, 7));
}

static choir_tensor *run_model(choir_tensor *const in[], void *user)
{
	model *m = user;
	choir_tensor *x = in[0];
	m->w = in[1];
	m->scale = in[2];
	m->offset = in[3];
	for (int i = 0; i < DEPTH; i++)
		x = m->again ? choir_recompute(1, &x, block, m) : block(&x, m);
	return x;
}

static void make_inputs(given *g, choir_tensor *in[4])
{
	in[0] = given_normal(g, CHOIR_SHAPE(3, WIDTH));
	in[1] = choir_scale(given_normal(g, CHOIR_SHAPE(WIDTH, WIDTH)), 0.3);
	in[2] = given_normal(g, CHOIR_SHAPE(WIDTH));
	in[3] = given_normal(g, CHOIR_SHAPE(WIDTH));
}

// The four gradients behind each other; how often blocks were called, and draws were made.
static void gradients_of(const char *device, model m, double out[], int *calls)
{
	static const size_t sizes[] = { 3 * WIDTH, WIDTH * WIDTH, WIDTH, WIDTH };
	choir_tensor *in[4], *gradients[4];
	given g;

	given_open(&g, device, 5);
	make_inputs(&g, in);
	g.frame->random.place = 0;
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *y = run_model(in, &m);
	const uint32_t drawn = g.frame->random.place;
	assert_int_equal(drawn, DEPTH);
	if (choir_tape_gradient(tape, y, 4, in, gradients) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(g.frame->random.place, drawn);
	for (int i = 0; i < 4; out += sizes[i], i++)
		assert_int_equal(choir_tensor_to_host(gradients[i], out, sizes[i] * 8), CHOIR_OK);
	*calls = m.calls;
	given_close(&g);
}

TEST(the_same_bits)
{
	enum { ALL = 3 * WIDTH + WIDTH * WIDTH + 2 * WIDTH };
	static const char *const devices[] = { "cpu:0", "far:0" };
	double expected[ALL], got[ALL];
	int calls;

	for (int d = 0; d < 2; d++) {
		gradients_of(devices[d], (model){ 0 }, expected, &calls);
		assert_int_equal(calls, DEPTH);
		gradients_of(devices[d], (model){ .again = true }, got, &calls);
		assert_int_equal(calls, 2 * DEPTH);
		assert_memory_equal(got, expected, sizeof got);
		gradients_of(devices[d], (model){ .again = true, .nested = true }, got, &calls);
		assert_memory_equal(got, expected, sizeof got);
	}
}

TEST(gradients_are_right)
{
	choir_tensor *in[4];
	given g;

	given_open(&g, "cpu:0", 6);
	for (int nested = 0; nested < 2; nested++) {
		model m = { .again = true, .nested = nested };
		make_inputs(&g, in);
		given_check(&g, 4, in, run_model, &m);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

// A segment within another that uses nothing but what the outer one does: its inputs have
// gradients on the way already when it is made again.
static choir_tensor *nested_product(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_tanh(choir_multiply(in[0], in[1]));
}

static choir_tensor *nested_only(choir_tensor *const in[], void *user)
{
	const model *m = user;
	return choir_square(
			m->again ? choir_recompute(2, in, nested_product, NULL) : nested_product(in, NULL));
}

TEST(a_segment_of_the_same_inputs)
{
	double got[2][2][3];
	given g;

	for (int again = 0; again < 2; again++) {
		given_open(&g, "cpu:0", 12);
		model m = { .again = again };
		choir_tensor *in[2], *gradients[2];
		for (int i = 0; i < 2; i++)
			in[i] = given_normal(&g, CHOIR_SHAPE(3));
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *y = again ? choir_recompute(2, in, nested_only, &m) : nested_only(in, &m);
		assert_int_equal(choir_tape_gradient(tape, y, 2, in, gradients), CHOIR_OK);
		for (int i = 0; i < 2; i++)
			assert_int_equal(
					choir_tensor_to_host(gradients[i], got[again][i], sizeof got[again][i]),
					CHOIR_OK);
		given_close(&g);
	}
	assert_memory_equal(got[1], got[0], sizeof got[0]);
	assert_true(got[0][0][0] != 0);
}

// Tensors of the frame that still have memory, of results of so many elements.
static int alive(const choir_frame *f, int64_t elements)
{
	int n = 0;
	for (const choir_tensor *t = f->tensors; t; t = t->next)
		n += t->buffer != NULL && choir_shape_elements(&t->shape) == elements;
	return n;
}

TEST(only_results_stay)
{
	choir_tensor *in[4], *gradients[4];
	given g;

	given_open(&g, "cpu:0", 8);
	model m = { .again = true };
	make_inputs(&g, in);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *y = run_model(in, &m);
	assert_int_equal(alive(g.frame, 3 * WIDTH), 1 + DEPTH);
	assert_int_equal(alive(g.frame, 3 * 2), 2); // scale and offset, and no moments of norms
	assert_int_equal(choir_tape_gradient(tape, y, 4, in, gradients), CHOIR_OK);
	assert_int_equal(alive(g.frame, 3 * WIDTH), 3); // x, y and the gradient by x
	choir_frame_clear(g.frame);
	// Without a tape it is a call.
	make_inputs(&g, in);
	m.calls = 0;
	assert_non_null(run_model(in, &m));
	assert_int_equal(m.calls, DEPTH);
	given_close(&g);
}

// The inner function uses in[1] without a gradient, so y is not made from it.
static choir_tensor *product_of_one(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_multiply(in[0], choir_stop_gradient(in[1]));
}

static choir_tensor *gives_an_unreached(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *of_x[2] = { choir_sigmoid(in[0]), choir_tanh(in[0]) };
	return choir_square(choir_recompute(2, of_x, product_of_one, NULL));
}

TEST(what_a_nested_segment_uses_stays)
{
	choir_tensor *gradient;
	given g;

	given_open(&g, "cpu:0", 13);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2));
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *y = choir_recompute(1, &x, gives_an_unreached, NULL);
	if (choir_tape_gradient(tape, y, 1, &x, &gradient) != CHOIR_OK)
		fail_msg("%s", choir_error());
	double at[2], got[2];
	assert_int_equal(choir_tensor_to_host(x, at, sizeof at), CHOIR_OK);
	assert_int_equal(choir_tensor_to_host(gradient, got, sizeof got), CHOIR_OK);
	for (int i = 0; i < 2; i++) {
		const double s = 1 / (1 + exp(-at[i])), t = tanh(at[i]);
		assert_true(fabs(got[i] - 2 * s * t * t * s * (1 - s)) < 1e-12);
	}
	given_close(&g);
}

static choir_tensor *itself(choir_tensor *const in[], void *user)
{
	(void) user;
	return in[0];
}

static choir_tensor *changes(choir_tensor *const in[], void *user)
{
	int *calls = user;
	choir_tensor *y = choir_square(in[0]);
	return (*calls)++ ? choir_sum(y, CHOIR_AXIS(0)) : y;
}

static choir_tensor *fails(choir_tensor *const in[], void *user)
{
	int *calls = user;
	return (*calls)++ ? choir_reshape(in[0], CHOIR_SHAPE(77)) : choir_square(in[0]);
}

TEST(refused)
{
	choir_tensor *gradient;
	int calls = 0;
	given g;

	given_open(&g, "cpu:0", 9);
	assert_null(choir_recompute(0, NULL, itself, NULL));
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 3));
	choir_tape *tape = choir_tape_begin(g.frame);
	assert_ptr_equal(choir_recompute(1, &x, itself, NULL), x);
	choir_tensor *y = choir_recompute(1, &x, changes, &calls);
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "recompute:*f64*[3]*[2, 3]");
	calls = 0;
	x = given_normal(&g, CHOIR_SHAPE(2, 3));
	tape = choir_tape_begin(g.frame);
	y = choir_recompute(1, &x, fails, &calls);
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "reshape:*[2, 3]*[77]");
	given_close(&g);
}

// A rewind takes a segment back like any other operation.
TEST(rewinding)
{
	double expected[3 * WIDTH], got[3 * WIDTH];
	given g;

	for (int rewind = 0; rewind < 2; rewind++) {
		choir_tensor *in[4], *gradient;
		given_open(&g, "cpu:0", 11);
		model m = { .again = true };
		make_inputs(&g, in);
		choir_tape *tape = choir_tape_begin(g.frame);
		m.w = in[1];
		m.scale = in[2];
		m.offset = in[3];
		choir_tensor *y = choir_recompute(1, in, block, &m);
		const size_t mark = choir_frame_mark(g.frame);
		for (int i = 0; i < 2 * rewind; i++) {
			assert_non_null(choir_recompute(1, &y, block, &m));
			choir_frame_rewind(g.frame, mark);
		}
		assert_int_equal(choir_tape_gradient(tape, y, 1, in, &gradient), CHOIR_OK);
		assert_int_equal(
				choir_tensor_to_host(gradient, rewind ? got : expected, sizeof got), CHOIR_OK);
		given_close(&g);
	}
	assert_memory_equal(got, expected, sizeof got);
}

// Every allocation of a way there and back fails in turn.
TEST(memory_runs_out)
{
	choir_tensor *in[4], *gradients[4];
	bool failed = true;

	for (uint64_t n = 1; failed; n++) {
		given g;
		chi_buffer_trim(); // so that there is something to allocate
		given_open(&g, "cpu:0", 10);
		make_inputs(&g, in);
		model m = { .again = true, .nested = true };
		chi_alloc_fail(n, false);
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *y = run_model(in, &m);
		const choir_status status = choir_tape_gradient(tape, y, 4, in, gradients);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		given_close(&g);
		assert_int_equal(chi_buffer_in_use(choir_device_find("cpu:0")), 0);
	}
}
