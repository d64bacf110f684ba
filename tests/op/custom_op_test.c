// Custom operations on both kinds of memory, with gradients, shapes of their own and failures.
#include "op/given.h"
#include "test.h"

#include <string.h>

static const char *const devices[] = { "cpu:0", "far:0" };

// The outer product of two vectors.
static choir_status outer_shape(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) user;
	if (n != 2 || in[0].shape.rank != 1 || in[1].shape.rank != 1)
		return choir_fail(CHOIR_INVALID, "two vectors are needed");
	out->shape = CHOIR_SHAPE(in[0].shape.dim[0], in[1].shape.dim[0]);
	return CHOIR_OK;
}

static choir_status outer(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	const double *a = in[0].data, *b = in[1].data;
	double *y = out->data;
	int *calls = user;

	(void) n;
	++*calls;
	for (int64_t i = 0; i < out->shape.dim[0]; i++)
		for (int64_t k = 0; k < out->shape.dim[1]; k++)
			*y++ = a[i] * b[k];
	return CHOIR_OK;
}

static choir_status outer_back(size_t n, const choir_buffer in[], const choir_buffer *out,
		const choir_buffer *out_gradient, choir_buffer gradient[], void *user)
{
	const double *a = in[0].data, *b = in[1].data, *dy = out_gradient->data;
	double *da = gradient[0].data, *db = gradient[1].data;

	(void) n;
	(void) user;
	for (int64_t i = 0; i < out->shape.dim[0]; i++) {
		for (int64_t k = 0; k < out->shape.dim[1]; k++, dy++) {
			if (da)
				da[i] += *dy * b[k];
			if (db)
				db[k] += *dy * a[i];
		}
	}
	return CHOIR_OK;
}

static choir_tensor *call_outer(choir_tensor *const in[], void *user)
{
	return choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .name = "outer", .shape = outer_shape, .forward = outer,
					.backward = outer_back),
			user, 2, in);
}

TEST(gradients_are_right_on_all_memories)
{
	for (size_t i = 0; i < 2; i++) {
		given g;
		int calls = 0;
		given_open(&g, devices[i], 1);
		choir_tensor *const in[] = { given_normal(&g, CHOIR_SHAPE(3)),
			given_normal(&g, CHOIR_SHAPE(2)) };
		given_check(&g, 2, in, call_outer, &calls);
		assert_int_equal(calls, 11);
		choir_tensor *const far_in[] = { in[0], choir_number(g.frame, 1) };
		assert_null(call_outer(far_in, &calls));
		given_failure(&g, CHOIR_INVALID, "outer:*vectors");
		given_close(&g);
	}
}

TEST(only_wanted_gradients_are_made)
{
	given g;
	int calls = 0;

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *const in[] = { choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(3), 1),
		choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2), 2) };
	choir_tensor *y = call_outer(in, &calls), *gradient;
	assert_int_equal(choir_tape_gradient(tape, y, 1, &in[1], &gradient), CHOIR_OK);
	given_equal(gradient, 2, (const double[]){ 3, 3 });
	given_close(&g);
}

static choir_status silent(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) n;
	(void) in;
	(void) out;
	(void) user;
	return CHOIR_IO;
}

static choir_status harmless(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) n;
	(void) user;
	choir_fail(CHOIR_IO, "never mind");
	memcpy(out->data, in[0].data, sizeof(float));
	return CHOIR_OK;
}

static choir_status negative(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) n;
	(void) in;
	(void) user;
	out->shape = CHOIR_SHAPE(-4);
	return CHOIR_OK;
}

static choir_status talkative(size_t n, const choir_buffer in[], const choir_buffer *out,
		const choir_buffer *out_gradient, choir_buffer gradient[], void *user)
{
	(void) n;
	(void) in;
	(void) out;
	(void) out_gradient;
	(void) gradient;
	(void) user;
	return choir_fail(CHOIR_UNSUPPORTED, "no way back");
}

TEST(failures_of_functions)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4);
	choir_fail(CHOIR_NOT_FOUND, "older");
	assert_null(choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .name = "mute", .forward = silent), NULL, 1, &x));
	given_failure(&g, CHOIR_IO, "mute:*CHOIR_IO");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4);
	choir_fail(CHOIR_NOT_FOUND, "older");
	choir_tensor *y = choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .forward = harmless), NULL, 1, &x);
	given_equal(y, 1, (const double[]){ 4 });
	assert_text_holds(choir_error(), "older");
	assert_null(choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .name = "odd", .shape = negative, .forward = harmless),
			NULL, 1, &x));
	given_failure(&g, CHOIR_INVALID, "odd:*f32*[-4]");
	choir_tape *tape = choir_tape_begin(g.frame);
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4);
	y = choir_custom_op_apply(CHOIR_OPTIONS(choir_custom_op, .name = "one_way",
									  .forward = harmless, .backward = talkative),
			NULL, 1, &x);
	choir_tensor *gradient;
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_UNSUPPORTED);
	given_failure(&g, CHOIR_UNSUPPORTED, "one_way:");
	given_close(&g);
}

static choir_status ends(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) n;
	(void) in;
	(void) out;
	(void) user;
	return CHOIR_END;
}

static choir_status ends_back(size_t n, const choir_buffer in[], const choir_buffer *out,
		const choir_buffer *out_gradient, choir_buffer gradient[], void *user)
{
	(void) n;
	(void) in;
	(void) out;
	(void) out_gradient;
	(void) gradient;
	(void) user;
	return CHOIR_END;
}

// CHOIR_END has no text, so nothing else may be taken for its reason, and no failure get lost.
TEST(an_end_is_a_failure)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4), *gradient;
	choir_fail(CHOIR_NOT_FOUND, "older");
	assert_null(choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .name = "end", .forward = ends), NULL, 1, &x));
	given_failure(&g, CHOIR_INVALID, "end:*CHOIR_END");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4);
	chi_error_clear();
	assert_null(choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .name = "end", .shape = ends, .forward = harmless),
			NULL, 1, &x));
	given_failure(&g, CHOIR_INVALID, "end:*CHOIR_END");
	for (int older = 0; older < 2; older++) {
		choir_tape *tape = choir_tape_begin(g.frame);
		x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4);
		choir_tensor *y =
				choir_custom_op_apply(CHOIR_OPTIONS(choir_custom_op, .name = "end",
											  .forward = harmless, .backward = ends_back),
						NULL, 1, &x);
		chi_error_clear();
		if (older)
			choir_fail(CHOIR_NOT_FOUND, "older");
		assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_INVALID);
		given_failure(&g, CHOIR_INVALID, "end:*CHOIR_END");
	}
	given_close(&g);
}

// Its functions get memory, not tensors, so who calls them looks whether the memory is still what
// was read.
TEST(what_changed_since_has_no_way_back)
{
	chi_source source = { .name = "w" };

	for (size_t i = 0; i < 2; i++) {
		given g;
		int calls = 0;
		given_open(&g, devices[i], 1);
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *const in[] = { choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(3), 1),
			choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2), 2) };
		in[1]->source = &source;
		in[1]->version = chi_atomic64_load(&source.version);
		choir_tensor *y = call_outer(in, &calls), *gradient;
		chi_atomic64_add(&source.version, 1);
		assert_int_equal(choir_tape_gradient(tape, y, 1, &in[0], &gradient), CHOIR_STATE);
		given_failure(&g, CHOIR_STATE, "w:*changed");
		given_close(&g);
	}
}

TEST(wrong_use)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4),
				 *const nine[9] = { x, x, x, x, x, x, x, x, x };
	assert_null(choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .forward = harmless), NULL, 9, nine));
	given_failure(&g, CHOIR_INVALID, "custom_op_apply:*9*1*8");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4);
	assert_null(choir_custom_op_apply(NULL, NULL, 1, &x));
	given_failure(&g, CHOIR_INVALID, "custom_op_apply:");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4);
	assert_null(
			choir_custom_op_apply(CHOIR_OPTIONS(choir_custom_op, .name = "empty"), NULL, 1, &x));
	given_failure(&g, CHOIR_INVALID, "empty:*operation");
	chi_error_clear();
	assert_null(choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .forward = harmless), NULL, 0, NULL));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	given_close(&g);
}

TEST(without_backward_no_gradient_flows)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SCALAR, 4), *gradient;
	choir_tensor *y = choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .forward = harmless), NULL, 1, &x);
	assert_int_equal(choir_tape_gradient(tape, choir_square(y), 1, &x, &gradient), CHOIR_OK);
	given_equal(gradient, 1, (const double[]){ 0 });
	given_close(&g);
}
