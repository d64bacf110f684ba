// The precision tf32: its kernels run in frames of that precision only, and a backward pass and a
// recomputation run in the arithmetic of their operations. The kernel here rounds down.
#include "choir/precision.h"
#include "op/given.h"
#include "test.h"

#include <string.h>

enum { SIZE = 2 };

static float rounded(const choir_buffer *b, int64_t i)
{
	uint32_t bits;
	float x;
	memcpy(&bits, (const float *) b->data + i, sizeof bits);
	bits &= ~(uint32_t) 0x1fff;
	memcpy(&x, &bits, sizeof x);
	return x;
}

// Square matrices.
static choir_status multiply(const choir_kernel_call *call)
{
	const choir_matmul_attributes *a = call->attributes;
	const bool at = a->transposed == CHOIR_TRANSPOSED_A, bt = a->transposed == CHOIR_TRANSPOSED_B;
	float *out = call->out->data;
	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			out[i * SIZE + j] = 0;
			for (int k = 0; k < SIZE; k++)
				out[i * SIZE + j] += rounded(&call->in[0], at ? k * SIZE + i : i * SIZE + k) *
						rounded(&call->in[1], bt ? j * SIZE + k : k * SIZE + j);
		}
	return CHOIR_OK;
}

static int register_kernel(void **state)
{
	(void) state;
	return choir_register_kernel(&(choir_kernel_table){ .size = sizeof(choir_kernel_table),
				   .version = CHOIR_TABLE_VERSION,
				   .operation = "matmul",
				   .kind = "cpu",
				   .name = "in tf32",
				   .dtype = CHOIR_F32,
				   .run = multiply,
				   .arithmetic = CHOIR_ARITHMETIC_TF32 }) != CHOIR_OK;
}

TEST_GROUP(register_kernel, NULL)

// TF32 takes 1 for this number.
static const float above = 1 + 0x1p-12f;

static choir_tensor *square(choir_frame *f)
{
	const float x[SIZE * SIZE] = { above, 0, 0, above };
	return choir_constant(f, CHOIR_F32, CHOIR_SHAPE(SIZE, SIZE), x);
}

static choir_tensor *product(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_matmul(in[0], in[1], CHOIR_TRANSPOSED_NONE);
}

static float first_of(choir_tensor *t)
{
	float x[SIZE * SIZE] = { 0 };
	assert_int_equal(choir_tensor_to_host(t, x, sizeof x), CHOIR_OK);
	return x[0];
}

TEST(kernels_of_tf32_run_in_its_precision_only)
{
	given g;
	given_open(&g, "cpu:0", 1);
	choir_tensor *const in[] = { square(g.frame), square(g.frame) };
	assert_true(first_of(product(in, NULL)) == above * above);
	assert_int_equal(
			choir_frame_set_precision(g.frame, CHOIR_PRECISION_TF32), CHOIR_PRECISION_F32);
	assert_int_equal(choir_frame_precision(g.frame), CHOIR_PRECISION_TF32);
	choir_tensor *y = product(in, NULL);
	assert_int_equal(choir_tensor_dtype(y), CHOIR_F32);
	assert_true(first_of(y) == 1);
	assert_true(first_of(choir_multiply(in[0], in[1])) == above * above);
	assert_int_equal(
			choir_frame_set_precision(g.frame, CHOIR_PRECISION_MIXED_BF16), CHOIR_PRECISION_TF32);
	assert_int_equal(choir_tensor_dtype(product(in, NULL)), CHOIR_BF16);
	assert_int_equal(
			choir_frame_set_precision(g.frame, CHOIR_PRECISION_F32), CHOIR_PRECISION_MIXED_BF16);
	assert_true(first_of(product(in, NULL)) == above * above);
	given_close(&g);
	assert_string_equal(choir_precision_name(CHOIR_PRECISION_TF32), "tf32");
	assert_true(choir_precision_is_narrow(CHOIR_PRECISION_TF32, "matmul", NULL));
	assert_false(choir_precision_is_narrow(CHOIR_PRECISION_TF32, "dense", NULL));
	assert_false(choir_precision_is_narrow(CHOIR_PRECISION_F32, "matmul", NULL));
	assert_false(choir_precision_is_native(CHOIR_PRECISION_TF32));
}

// The frame's precision when the backward pass begins does not count.
static float gradient(choir_frame *f, choir_precision p, bool again, bool recorded)
{
	choir_frame_clear(f);
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *const in[] = { square(f), square(f) };
	choir_tensor *gradients[2];
	choir_frame_set_precision(f, p);
	choir_tensor *y = again ? choir_recompute(2, in, product, NULL) : product(in, NULL);
	choir_frame_set_precision(
			f, p == CHOIR_PRECISION_F32 ? CHOIR_PRECISION_TF32 : CHOIR_PRECISION_F32);
	const choir_precision other = choir_frame_precision(f);
	y = choir_sum(y, CHOIR_ALL_AXES);
	const choir_status status = recorded ? choir_tape_gradient_recorded(tape, y, 2, in, gradients)
										 : choir_tape_gradient(tape, y, 2, in, gradients);
	if (status != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(choir_frame_precision(f), other);
	return first_of(gradients[0]);
}

TEST(gradients_have_the_arithmetic_of_their_operations)
{
	given g;
	given_open(&g, "cpu:0", 1);
	for (int i = 0; i < 4; i++) {
		assert_true(gradient(g.frame, CHOIR_PRECISION_F32, i % 2 > 0, i > 1) == above);
		assert_true(gradient(g.frame, CHOIR_PRECISION_TF32, i % 2 > 0, i > 1) == 1);
	}
	given_close(&g);
}
