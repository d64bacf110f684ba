// The gradient check finds what is wrong and names it, and leaves the frame as it was.
#include "base/alloc.h"
#include "op/given.h"
#include "test.h"

#include <math.h>
#include <string.h>

static double error_at_five;

static choir_status identity(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) n;
	(void) user;
	memcpy(out->data, in[0].data, (size_t) choir_shape_elements(&out->shape) * sizeof(double));
	return CHOIR_OK;
}

// Wrong in one element by error_at_five.
static choir_status identity_back(size_t n, const choir_buffer in[], const choir_buffer *out,
		const choir_buffer *out_gradient, choir_buffer gradient[], void *user)
{
	double *dx = gradient[0].data;

	identity(n, out_gradient, &gradient[0], user);
	(void) in;
	(void) out;
	dx[5] *= 1 + error_at_five;
	return CHOIR_OK;
}

static choir_tensor *formula(choir_tensor *const in[], void *user)
{
	return choir_custom_op_apply(CHOIR_OPTIONS(choir_custom_op, .name = "identity",
										 .forward = identity, .backward = identity_back),
			user, 1, in);
}

TEST(a_wrong_element_is_named)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 2, 2));
	error_at_five = 0;
	assert_int_equal(choir_check_gradient(1, &x, 0, formula, NULL), CHOIR_OK);
	error_at_five = 1e-4;
	assert_int_equal(choir_check_gradient(1, &x, 0, formula, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "check_gradient:*input 0*[1, 0, 1]");
	assert_int_equal(choir_check_gradient(1, &x, 1e-3, formula, NULL), CHOIR_OK);
	error_at_five = (double) NAN;
	assert_int_equal(choir_check_gradient(1, &x, 0, formula, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "tape*nan");
	assert_int_equal(choir_frame_status(g.frame), CHOIR_OK);
	given_close(&g);
}

static choir_tensor *softmax_missing(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_stop_gradient(choir_softmax(in[0])); // whose plain sum has no gradient anyway
}

TEST(a_missing_gradient_is_found)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 3));
	const size_t mark = choir_frame_mark(g.frame);
	const chi_random_key random = g.frame->random;
	assert_int_equal(choir_check_gradient(1, &x, 0, softmax_missing, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "check_gradient:*input 0*[0, 0]*the tape gives 0*1e-06");
	assert_int_equal(choir_frame_mark(g.frame), mark);
	assert_memory_equal(&g.frame->random, &random, sizeof(random));
	assert_false(choir_frame_is_training(g.frame));
	given_close(&g);
}

static choir_tensor *broken(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_matmul(in[0], in[0], CHOIR_TRANSPOSED_NONE);
}

static choir_tensor *single(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_cast(in[0], CHOIR_F32);
}

TEST(wrong_use)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 3));
	assert_int_equal(choir_check_gradient(1, &x, 0, broken, NULL), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "matmul:*[2, 3]");
	x = given_normal(&g, CHOIR_SHAPE(2, 3));
	assert_int_equal(choir_check_gradient(1, &x, 0, single, NULL), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "f32*f64");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
	assert_int_equal(choir_check_gradient(1, &x, 0, single, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "check_gradient:*input 0*f32*f64");
	x = choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(2), 1);
	assert_int_equal(choir_check_gradient(1, &x, 0, single, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "check_gradient:*f64");
	assert_int_equal(choir_check_gradient(0, NULL, 0, single, NULL), CHOIR_INVALID);
	choir_tape_begin(g.frame);
	assert_int_equal(choir_check_gradient(1, &x, 0, single, NULL), CHOIR_STATE);
	given_failure(&g, CHOIR_STATE, "recording");
	given_close(&g);
}

TEST(every_allocation_may_fail)
{
	bool failed = true;

	error_at_five = 0;
	for (uint64_t n = 1; failed; n++) {
		given g;
		given_open(&g, "cpu:0", 1);
		choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 2, 2));
		chi_alloc_fail(n, false);
		const choir_status status = choir_check_gradient(1, &x, 0, formula, NULL);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		given_close(&g);
		chi_buffer_trim();
	}
}
