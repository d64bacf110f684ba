// How operations are called: failures flow and stick, frames do not mix, numbers take their
// partner's dtype, empty tensors need no kernel, and a warm frame allocates nothing.
#include "base/alloc.h"
#include "op/given.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };

static choir_tensor *constant(given *g, choir_shape shape)
{
	return choir_constant(g->frame, CHOIR_F32, shape, numbers);
}

TEST(the_first_cause_flows)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = constant(&g, CHOIR_SHAPE(2, 3)), *b = constant(&g, CHOIR_SHAPE(2, 2));
	choir_tensor *bad = choir_add(a, b);
	assert_null(bad);
	assert_null(choir_relu(choir_matmul(choir_scale(bad, 2), a, CHOIR_TRANSPOSED_NONE)));
	assert_null(choir_matmul(a, b, CHOIR_TRANSPOSED_NONE)); // another failure, later
	assert_text_holds(choir_error(), "matmul:*[2, 3]*[2, 2]");
	assert_int_equal(chi_frame_status(g.frame), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "add:*[2, 3]*[2, 2]");
	given_close(&g);
}

TEST(a_cause_without_a_frame_comes_in)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = constant(&g, CHOIR_SHAPE(6));
	assert_null(choir_device_find("cpu:x"));
	const choir_status status = choir_error_status();
	assert_null(choir_add(NULL, NULL));
	assert_int_equal(choir_error_status(), status);
	assert_int_equal(choir_frame_status(g.frame), CHOIR_OK);
	assert_null(choir_add(NULL, a));
	assert_int_equal(choir_frame_status(g.frame), status);
	assert_text_holds(choir_error(), "cpu:x");
	choir_frame_clear(g.frame);
	chi_error_clear();
	a = constant(&g, CHOIR_SHAPE(6));
	assert_null(choir_multiply(a, NULL));
	given_failure(&g, CHOIR_INVALID, "multiply:*NULL");
	given_close(&g);
}

TEST(two_frames_do_not_mix)
{
	given g, other;

	given_open(&g, "cpu:0", 1);
	given_open(&other, "cpu:0", 1);
	snprintf(g.frame->prefix, sizeof(g.frame->prefix), "replica 0: ");
	snprintf(other.frame->prefix, sizeof(other.frame->prefix), "replica 1: ");
	choir_tensor *a = constant(&g, CHOIR_SHAPE(6)), *b = constant(&other, CHOIR_SHAPE(6));
	assert_null(choir_add(a, b));
	assert_int_equal(choir_frame_status(other.frame), CHOIR_OK);
	given_failure(&g, CHOIR_INVALID, "replica 0: add:*operand 1*replica 1");
	assert_non_null(choir_add(choir_copy(b, g.frame), constant(&g, CHOIR_SHAPE(6))));
	given_close(&g);
	given_close(&other);
}

TEST(what_changed_is_not_used)
{
	chi_source source = { .name = "hidden/w" };
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = constant(&g, CHOIR_SHAPE(6));
	a->source = &source;
	choir_tensor *view = choir_reshape(a, CHOIR_SHAPE(2, 3));
	assert_non_null(choir_square(view));
	chi_atomic64_add(&source.version, 1);
	assert_null(choir_square(view));
	given_failure(&g, CHOIR_STATE, "hidden/w:*changed");
	a = constant(&g, CHOIR_SHAPE(6));
	chi_tensor_drop(a);
	assert_null(choir_square(a));
	given_failure(&g, CHOIR_STATE, "dropped");
	given_close(&g);
}

TEST(numbers_take_the_others_dtype)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = constant(&g, CHOIR_SHAPE(2)), *half = choir_number(g.frame, 0.5);
	choir_tensor *sum = choir_add(half, a);
	assert_int_equal(choir_tensor_dtype(sum), CHOIR_F32);
	given_equal(sum, 2, (const double[]){ 1.5, 2.5 });
	choir_tensor *both = choir_multiply(half, choir_number(g.frame, 3));
	assert_int_equal(choir_tensor_dtype(both), CHOIR_F64);
	given_equal(both, 1, (const double[]){ 1.5 });
	const int32_t seven = 7;
	choir_tensor *whole = choir_constant(g.frame, CHOIR_I32, CHOIR_SCALAR, &seven);
	given_equal(choir_subtract(whole, choir_number(g.frame, 2)), 1, (const double[]){ 5 });
	assert_null(choir_multiply(whole, half));
	given_failure(&g, CHOIR_INVALID, "multiply:*0.5*i32");
	given_close(&g);
}

TEST(dtypes_that_differ_or_have_no_kernel)
{
	given g;

	given_open(&g, "cpu:0", 1);
	assert_null(choir_add(
			constant(&g, CHOIR_SHAPE(2)), choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(2), 1)));
	given_failure(&g, CHOIR_INVALID, "add:*f32*i32");
	assert_null(choir_exp(choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(2), 1)));
	given_failure(&g, CHOIR_UNSUPPORTED, "exp:*i32*f32*f64");
	choir_tensor *half = choir_cast(constant(&g, CHOIR_SHAPE(2)), CHOIR_F16);
	assert_int_equal(choir_tensor_dtype(half), CHOIR_F16);
	given_equal(choir_cast(half, CHOIR_F32), 2, (const double[]){ 1, 2 });
	given_equal(choir_cast(choir_multiply(half, half), CHOIR_F32), 2, (const double[]){ 1, 4 });
	given_close(&g);
}

TEST(empty_tensors)
{
	static const char *const devices[] = { "cpu:0", "far:0" };
	given g;

	for (size_t i = 0; i < 2; i++) {
		given_open(&g, devices[i], 1);
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *x = choir_constant(g.frame, CHOIR_F32, CHOIR_SHAPE(0, 3), NULL);
		choir_tensor *w = constant(&g, CHOIR_SHAPE(3, 2)), *b = constant(&g, CHOIR_SHAPE(2));
		choir_tensor *y = chi_dense(x, w, b, CHOIR_RELU);
		choir_tensor *labels = choir_constant(g.frame, CHOIR_U8, CHOIR_SHAPE(0), NULL);
		choir_tensor *losses = choir_sparse_softmax_cross_entropy(labels, y);
		assert_int_equal(choir_tensor_shape(losses)->dim[0], 0);
		choir_tensor *loss = choir_sum(losses, CHOIR_ALL_AXES);
		given_equal(loss, 1, (const double[]){ 0 });
		choir_tensor *const sources[] = { w, b };
		choir_tensor *gradients[2];
		assert_int_equal(choir_tape_gradient(tape, loss, 2, sources, gradients), CHOIR_OK);
		given_equal(gradients[0], 6, (const double[6]){ 0 });
		given_equal(gradients[1], 2, (const double[2]){ 0 });
		assert_true(isnan(choir_tensor_number(choir_mean(x, CHOIR_ALL_AXES))));
		given_close(&g);
	}
}

static void step(given *g)
{
	choir_tape *tape = choir_tape_begin(g->frame);
	choir_tensor *x = constant(g, CHOIR_SHAPE(2, 3)), *w = constant(g, CHOIR_SHAPE(3, 2));
	choir_tensor *y = choir_square(choir_bias_add(
			choir_matmul(x, w, CHOIR_TRANSPOSED_NONE), constant(g, CHOIR_SHAPE(2))));
	y = choir_mean(choir_dropout(choir_add(choir_number(g->frame, 1), y), 0.5, 3), CHOIR_ALL_AXES);
	choir_tensor *gradient;
	assert_int_equal(choir_tape_gradient(tape, y, 1, &w, &gradient), CHOIR_OK);
	choir_frame_clear(g->frame);
}

TEST(a_warm_frame_allocates_nothing)
{
	given g;

	given_open(&g, "cpu:0", 1);
	for (int i = 0; i < 3; i++)
		step(&g);
	const uint64_t before = chi_alloc_count();
	for (int i = 0; i < 10; i++)
		step(&g);
	assert_int_equal(chi_alloc_count(), before);
	given_close(&g);
}
