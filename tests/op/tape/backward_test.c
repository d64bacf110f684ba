// The way back: what is handed on when, what dies and what stays, wrong use, both kinds of
// memory, and every allocation failing in turn.
#include "base/alloc.h"
#include "base/thread.h"
#include "op/given.h"
#include "test.h"

#include <string.h>

typedef struct {
	size_t n, order[8];
	double number[8]; // of the gradient's first element, by source
	size_t in_use[8]; // bytes of the pool at each call
	size_t fail_at; // 1 + the call that fails
} log;

static choir_status note(void *user, size_t index, choir_tensor *gradient)
{
	log *l = user;
	choir_tensor *flat = chi_tensor_reshape(
			gradient, &CHOIR_SHAPE(choir_shape_elements(choir_tensor_shape(gradient))));

	l->in_use[l->n] = chi_buffer_in_use(choir_tensor_device(gradient));
	l->number[index] = choir_tensor_number(chi_tensor_rows(gradient->frame, flat, 0, 1));
	l->order[l->n++] = index;
	return l->n == l->fail_at ? choir_fail(CHOIR_IO, "no place for it") : CHOIR_OK;
}

static choir_tensor *fill(given *g, double value)
{
	return choir_fill(g->frame, CHOIR_F64, CHOIR_SHAPE(1000), value);
}

// y = exp(a b) + c, with a source that plays no part.
TEST(gradients_come_as_soon_as_they_are_final)
{
	given g;
	log l = { 0 };

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *a = fill(&g, 2), *b = fill(&g, 0), *c = fill(&g, 1), *none = fill(&g, 1);
	choir_tensor *product = choir_multiply(a, b), *y = choir_add(choir_exp(product), c);
	choir_tensor *const sources[] = { a, b, c, none, product, y };
	assert_int_equal(chi_tape_backward(tape, y, 6, sources, note, &l), CHOIR_OK);
	assert_int_equal(l.n, 6);
	// What y does not depend on, and y itself; then from the end of the formula to its beginning.
	const size_t order[] = { 3, 5, 2, 4, 0, 1 };
	assert_memory_equal(l.order, order, sizeof(order));
	const double numbers[] = { 0, 2, 1, 0, 1, 1 };
	assert_memory_equal(l.number, numbers, sizeof(numbers));
	given_close(&g);
}

TEST(one_source_twice)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x = choir_number(g.frame, 3), *y, *gradients[3];
	x = choir_add(x, x);
	y = choir_multiply(x, x);
	choir_tensor *const sources[] = { x, y, x };
	assert_int_equal(choir_tape_gradient(tape, y, 3, sources, gradients), CHOIR_OK);
	assert_true(choir_tensor_number(gradients[0]) == 12);
	assert_true(choir_tensor_number(gradients[1]) == 1);
	assert_true(choir_tensor_number(gradients[2]) == 12);
	given_close(&g);
}

// Gradients of halves are halves, and come from several sides as others do.
TEST(one_half_twice)
{
	static const char *const devices[] = { "cpu:0", "far:0" };

	for (int i = 0; i < 4; i++) {
		given g;
		given_open(&g, devices[i % 2], 1);
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 3), *gradient;
		choir_tensor *half = choir_cast(x, i < 2 ? CHOIR_F16 : CHOIR_BF16);
		choir_tensor *y = choir_multiply(choir_cast(half, CHOIR_F32), choir_cast(half, CHOIR_F32));
		assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_OK);
		given_equal(gradient, 2, (const double[]){ 6, 6 });
		given_close(&g);
	}
}

// A chain of activations: on the way back one goes with each step, and little comes.
TEST(activations_die_on_the_way)
{
	enum { DEPTH = 20, BYTES = 8192 };
	given g;
	log l = { 0 };

	given_open(&g, "cpu:0", 1);
	choir_device *d = choir_tensor_device(fill(&g, 1));
	choir_frame_clear(g.frame);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x = fill(&g, 1), *y = x, *middle = NULL, *aside = NULL;
	for (int i = 0; i < DEPTH; i++) {
		y = choir_tanh(y);
		if (i == DEPTH / 2) {
			middle = y;
			aside = choir_exp(choir_scale(choir_reshape(y, CHOIR_SHAPE(10, 100)), 0));
		}
	}
	chi_buffer_reset_peak(d);
	const size_t before = chi_buffer_in_use(d);
	assert_true(before >= (DEPTH + 1) * BYTES);
	assert_int_equal(chi_tape_backward(tape, y, 1, &x, note, &l), CHOIR_OK);
	assert_true(chi_buffer_peak(d) <= before + 3 * BYTES);
	// x, y, what was made aside (a view of the middle among it) and the two gradients of the last
	// step.
	assert_true(l.in_use[0] <= 8 * BYTES);
	assert_true(chi_buffer_in_use(d) <= 6 * BYTES);
	assert_int_equal(chi_tensor_check(x), CHOIR_OK);
	assert_int_equal(chi_tensor_check(y), CHOIR_OK);
	given_equal(chi_tensor_rows(g.frame, aside, 0, 0), 0, NULL);
	assert_int_equal(choir_frame_status(g.frame), CHOIR_OK);
	assert_null(choir_square(middle));
	given_failure(&g, CHOIR_STATE, "dropped");
	given_close(&g);
}

TEST(what_others_hold_lives_on)
{
	given g, other;

	given_open(&g, "cpu:0", 1);
	given_open(&other, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x = fill(&g, 3), *square = choir_square(x),
				 *y = choir_exp(choir_scale(square, 0));
	choir_tensor *kept = chi_tensor_retain(other.frame, square), *gradient;
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_OK);
	choir_frame_free(g.frame);
	given_equal(chi_tensor_rows(other.frame, kept, 0, 1), 1, (const double[]){ 9 });
	given_close(&other);
}

TEST(wrong_use)
{
	given g, other;

	given_open(&g, "cpu:0", 1);
	given_open(&other, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x = fill(&g, 1), *y = choir_square(x), *gradient = x;
	assert_null(choir_tape_begin(g.frame));
	given_failure(&g, CHOIR_STATE, "tape:*already");

	tape = choir_tape_begin(g.frame);
	x = fill(&g, 1), y = choir_square(x);
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_OK);
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_STATE);
	assert_null(gradient);
	given_failure(&g, CHOIR_STATE, "already*choir_tape_gradient_recorded");

	tape = choir_tape_begin(g.frame);
	x = choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(2), 1), y = fill(&g, 1);
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "gradient:*source 0*i32");

	tape = choir_tape_begin(g.frame);
	y = fill(&other, 1);
	assert_int_equal(choir_tape_gradient(tape, y, 0, NULL, NULL), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "gradient:*frame");

	tape = choir_tape_begin(g.frame);
	x = fill(&g, 1), y = choir_matmul(x, x, CHOIR_TRANSPOSED_NONE);
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "matmul:*[1000]");
	chi_error_clear();
	assert_int_equal(choir_tape_gradient(NULL, NULL, 1, &x, &gradient), CHOIR_INVALID);
	assert_string_not_equal(choir_error(), "");
	assert_null(choir_tape_begin(NULL));
	given_close(&g);
	given_close(&other);
}

TEST(a_change_between_there_and_back)
{
	chi_source source = { .name = "w" };
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *w = fill(&g, 1), *y = choir_exp(choir_square(w)), *gradient;
	w->source = &source;
	chi_atomic64_add(&source.version, 1);
	assert_int_equal(choir_tape_gradient(tape, y, 1, &w, &gradient), CHOIR_STATE);
	given_failure(&g, CHOIR_STATE, "w:*changed");
	given_close(&g);
}

TEST(a_receiver_that_fails_ends_it)
{
	given g;
	log l = { .fail_at = 2 };

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *a = fill(&g, 2), *b = fill(&g, 3), *y = choir_square(choir_multiply(a, b));
	choir_tensor *const sources[] = { a, b, y };
	assert_int_equal(chi_tape_backward(tape, y, 3, sources, note, &l), CHOIR_IO);
	assert_text_holds(choir_error(), "place");
	assert_int_equal(l.n, 2);
	choir_frame_clear(g.frame);
	assert_int_equal(chi_buffer_in_use(choir_device_find("cpu:0")), 0);
	given_close(&g);
}

typedef struct {
	float loss, w[2 * 2 * 1 * 3], v[12 * 4], b[4];
	int64_t argmax[2];
} result;

// A small network with an operation of every kind.
static choir_status network(choir_frame *f, result *out)
{
	static const uint8_t labels[2] = { 3, 1 };
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *x = choir_random_normal(f, CHOIR_F32, CHOIR_SHAPE(2, 5, 5, 1), 1), *gradients[3];
	choir_tensor *w = choir_random_normal(f, CHOIR_F32, CHOIR_SHAPE(2, 2, 1, 3), 2);
	choir_tensor *v = choir_random_normal(f, CHOIR_F32, CHOIR_SHAPE(12, 4), 3);
	choir_tensor *b = choir_random_normal(f, CHOIR_F32, CHOIR_SHAPE(4), 4);
	choir_tensor *h = choir_max_pool2d(
			choir_relu(choir_conv2d(
					x, w, CHOIR_OPTIONS(choir_conv_options, .padding = CHOIR_PADDING_SAME))),
			2, 2, 0);
	h = choir_dropout(choir_reshape(h, CHOIR_SHAPE(2, CHOIR_UNKNOWN)), 0.25, 5);
	h = choir_maximum(choir_gelu(h), choir_number(f, -0.1));
	choir_tensor *logits = chi_dense(h, v, b, CHOIR_TANH);
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(
			choir_constant(f, CHOIR_U8, CHOIR_SHAPE(2), labels), logits);
	choir_tensor *loss = choir_add(choir_mean(losses, CHOIR_ALL_AXES),
			choir_scale(choir_sum(choir_square(v), CHOIR_ALL_AXES), 0.01));
	choir_tensor *best = choir_argmax(logits, -1), *const sources[] = { w, v, b };
	CHOIR_TRY(choir_tape_gradient(tape, loss, 3, sources, gradients));
	CHOIR_TRY(choir_tensor_to_host(gradients[0], out->w, sizeof(out->w)));
	CHOIR_TRY(choir_tensor_to_host(gradients[1], out->v, sizeof(out->v)));
	CHOIR_TRY(choir_tensor_to_host(gradients[2], out->b, sizeof(out->b)));
	CHOIR_TRY(choir_tensor_to_host(best, out->argmax, sizeof(out->argmax)));
	return choir_tensor_to_host(loss, &out->loss, sizeof(out->loss));
}

TEST(far_memory_gives_the_same_bits)
{
	given g;
	result r[2];

	for (int i = 0; i < 2; i++) {
		given_open(&g, i ? "far:0" : "cpu:0", 1);
		memset(&r[i], 0, sizeof(r[i]));
		if (network(g.frame, &r[i]) != CHOIR_OK)
			fail_msg("%s", choir_error());
		given_close(&g);
	}
	assert_true(r[0].loss > 0);
	assert_memory_equal(&r[0].loss, &r[1].loss, sizeof(r[0].loss));
	assert_memory_equal(r[0].w, r[1].w, sizeof(r[0].w));
	assert_memory_equal(r[0].v, r[1].v, sizeof(r[0].v));
	assert_memory_equal(r[0].b, r[1].b, sizeof(r[0].b));
	assert_memory_equal(r[0].argmax, r[1].argmax, sizeof(r[0].argmax));
}

TEST(a_warm_frame_allocates_nothing)
{
	uint64_t before = 0;
	given g;
	result r;

	given_open(&g, "cpu:0", 1);
	for (int i = 0; i < 6; i++) {
		if (i == 3)
			before = chi_alloc_count();
		assert_int_equal(network(g.frame, &r), CHOIR_OK);
		choir_frame_clear(g.frame);
	}
	assert_int_equal(chi_alloc_count(), before);
	given_close(&g);
}

typedef struct {
	chi_thread thread;
	choir_frame *frame;
	result result;
	choir_status status;
} worker;

static void work(void *arg)
{
	worker *w = arg;
	const chi_random_key random = w->frame->random;

	for (int i = 0; i < 20 && w->status == CHOIR_OK; i++) {
		choir_frame_clear(w->frame);
		w->frame->random = random;
		w->status = network(w->frame, &w->result);
	}
}

// Three frames on one device, each with a thread.
TEST(threads_do_not_disturb_each_other)
{
	static const char *const devices[] = { "cpu:0", "far:0" };

	for (int k = 0; k < 2; k++) {
		worker workers[3];
		memset(workers, 0, sizeof(workers));
		for (int i = 0; i < 3; i++) {
			workers[i].frame = choir_frame_new(choir_device_find(devices[k]));
			assert_int_equal(
					chi_thread_start(&workers[i].thread, "replica", work, &workers[i]), CHOIR_OK);
		}
		for (int i = 0; i < 3; i++) {
			chi_thread_join(&workers[i].thread);
			assert_int_equal(workers[i].status, CHOIR_OK);
			assert_memory_equal(&workers[i].result, &workers[0].result, sizeof(result));
			choir_frame_free(workers[i].frame);
		}
	}
}

TEST(every_allocation_may_fail)
{
	static const char *const devices[] = { "cpu:0", "far:0" };
	given g;
	result expected, r;

	for (int i = 0; i < 2; i++) {
		given_open(&g, devices[i], 1);
		const chi_random_key random = g.frame->random;
		memset(&expected, 0, sizeof(expected));
		assert_int_equal(network(g.frame, &expected), CHOIR_OK);
		bool failed = true;
		for (uint64_t n = 1; failed; n++) {
			choir_frame_free(g.frame);
			chi_buffer_trim(); // so that there is something to allocate
			g.frame = choir_frame_new(choir_device_find(devices[i]));
			chi_error_clear();
			chi_alloc_fail(n, true); // one failure alone is tried again
			const choir_status status = network(g.frame, &r);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
			assert_int_equal(choir_frame_status(g.frame), status);
			assert_true(!failed || *choir_error());
			choir_frame_clear(g.frame);
			assert_int_equal(chi_buffer_in_use(choir_device_find(devices[i])), 0);
			g.frame->random = random;
			memset(&r, 0, sizeof(r));
			assert_int_equal(network(g.frame, &r), CHOIR_OK);
			assert_memory_equal(&r, &expected, sizeof(r));
		}
		given_close(&g);
	}
}
