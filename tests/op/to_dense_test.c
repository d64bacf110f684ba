// Slices in operations: the larger tensor, and gradients that are slices on a tape's way back.
#include "op/given.h"

#include "choir/op.h"
#include "test.h"

#include <string.h>

static choir_tensor *slices(choir_frame *f, choir_dtype dtype)
{
	static const double values[] = { 1, 2, 3, 4, 5, 6 };
	static const int32_t rows[] = { 2, 0, 2 };
	choir_tensor *t = choir_constant(f, CHOIR_F64, CHOIR_SHAPE(3, 2), values);
	if (dtype != CHOIR_F64)
		t = choir_cast(t, dtype);
	return choir_indexed_slices(t, choir_constant(f, CHOIR_I32, CHOIR_SHAPE(3), rows), 4);
}

static const double whole[] = { 3, 4, 0, 0, 6, 8, 0, 0 };

TEST(to_dense)
{
	static const char *const devices[] = { "cpu:0", "far:0" };
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8 };
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 5; k++) {
			choir_frame *f = choir_frame_new(choir_device_find(devices[i]));
			choir_tensor *t = choir_to_dense(slices(f, dtypes[k]));
			assert_int_equal(choir_tensor_dtype(t), dtypes[k]);
			given_equal(choir_cast(t, CHOIR_F64), 8, whole);
			choir_tensor *same = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1);
			assert_ptr_equal(choir_to_dense(same), same);
			const choir_tensor *none = choir_to_dense(
					choir_indexed_slices(choir_fill(f, CHOIR_F64, CHOIR_SHAPE(0, 2), 1),
							choir_fill(f, CHOIR_I64, CHOIR_SHAPE(0), 0), 2));
			given_equal(none, 4, (const double[]){ 0, 0, 0, 0 });
			choir_frame_free(f);
		}
	assert_null(choir_to_dense(NULL));
}

TEST(operations_refuse_them)
{
	given g;
	given_open(&g, "cpu:0", 1);
	assert_null(choir_add(slices(g.frame, CHOIR_F64), slices(g.frame, CHOIR_F64)));
	given_failure(&g, CHOIR_UNSUPPORTED, "[4, 2]*choir_to_dense");
	assert_null(choir_to_dense(slices(g.frame, CHOIR_BOOL)));
	given_failure(&g, CHOIR_UNSUPPORTED, "to_dense");
	given_close(&g);
}

// An operation that reads rows 2, 0 and 2 of its input, with slices as its gradient.
static const int32_t read_rows[] = { 2, 0, 2 };

static choir_status infer(chi_result *r)
{
	r->shape.dim[0] = 3;
	return CHOIR_OK;
}

static choir_status forward(const chi_node *node)
{
	const size_t row = chi_tensor_bytes(node->out) / 3;
	for (int i = 0; i < 3; i++)
		memcpy((char *) node->out->data + (size_t) i * row,
				(const char *) node->in[0]->data + (size_t) read_rows[i] * row, row);
	return CHOIR_OK;
}

static choir_status backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *rows = choir_constant(g->dy->frame, CHOIR_I32, CHOIR_SHAPE(3), read_rows);
	g->gradient[0] = chi_slices_new(g->dy, rows, node->in[0]->shape.dim[0]);
	return g->gradient[0] == NULL ? chi_frame_status(g->dy->frame) : CHOIR_OK;
}

static const chi_op lookup_op = {
	.name = "lookup", .infer = infer, .backward = backward, .forward = forward
};

static choir_tensor *lookup(choir_tensor *table)
{
	return chi_op_call(&lookup_op, NULL, 1, &table, NULL);
}

static choir_tensor *gradient_of(given *g, choir_tensor *source, choir_tape *tape, choir_tensor *y)
{
	choir_tensor *gradient;
	if (choir_tape_gradient(tape, choir_sum(y, CHOIR_ALL_AXES), 1, &source, &gradient) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_ptr_equal(choir_tensor_frame(gradient), g->frame);
	return gradient;
}

// One contribution, two, and one beside a dense one.
TEST(gradients_that_are_slices)
{
	for (int uses = 1; uses <= 3; uses++) {
		given g;
		given_open(&g, "cpu:0", 2);
		choir_tensor *table = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(4, 2), 1);
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *y = lookup(table);
		if (uses == 2)
			y = choir_add(y, choir_scale(lookup(table), 10));
		choir_tensor *sum = choir_sum(y, CHOIR_ALL_AXES);
		if (uses == 3)
			sum = choir_add(sum, choir_sum(table, CHOIR_ALL_AXES));
		choir_tensor *gradient = gradient_of(&g, table, tape, sum);
		assert_int_equal(choir_tensor_is_slices(gradient), uses != 3);
		if (uses != 3)
			assert_int_equal(choir_tensor_shape(gradient)->dim[0], 3 * uses);
		const double each = uses == 2 ? 11 : 1, all = uses == 3 ? 1 : 0;
		given_equal(choir_to_dense(gradient), 8,
				(const double[]){ each + all, each + all, all, all, 2 * each + all, 2 * each + all,
						all, all });
		given_close(&g);
	}
}

// What a table was made from gets its gradient from the larger tensor.
TEST(slices_go_on_as_the_larger_tensor)
{
	given g;
	given_open(&g, "cpu:0", 3);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(4, 2), 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *gradient = gradient_of(&g, x, tape, lookup(choir_scale(x, 5)));
	assert_false(choir_tensor_is_slices(gradient));
	given_equal(gradient, 8, (const double[]){ 5, 5, 0, 0, 10, 10, 0, 0 });
	given_close(&g);
}
