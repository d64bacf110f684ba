// What a tape remembers, and what a rewind makes it forget.
#include "op/given.h"
#include "test.h"

static size_t nodes(const choir_tape *tape)
{
	size_t n = 0;
	for (const chi_node *node = tape->last; node; node = node->previous)
		n++;
	return n;
}

TEST(only_what_gradients_flow_through_is_recorded)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 2));
	choir_tensor *before = choir_square(x);
	choir_tape *tape = choir_tape_begin(g.frame);
	assert_true(choir_frame_is_training(g.frame));
	assert_null(before->node);
	choir_argmax(x, 0);
	choir_stop_gradient(x);
	choir_cast(x, CHOIR_I32);
	choir_sum(choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(3), 1), CHOIR_ALL_AXES);
	choir_dropout(x, 0, 1);
	assert_int_equal(nodes(tape), 0);
	choir_tensor *y = choir_reshape(choir_add(x, x), CHOIR_SHAPE(4));
	assert_int_equal(nodes(tape), 2);
	assert_ptr_equal(tape->last->out, y);
	assert_ptr_equal(y->node->in[0]->node->in[1], x);
	choir_frame_clear(g.frame);
	assert_false(choir_frame_is_training(g.frame));
	given_close(&g);
}

TEST(gradients_are_not_recorded)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 2)), *gradient;
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *y = choir_multiply(x, choir_exp(x));
	const size_t before = nodes(tape);
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_OK);
	choir_square(x);
	assert_int_equal(nodes(tape), before);
	given_close(&g);
}

TEST(a_rewind_forgets)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2), 3), *gradient;
	const size_t start = choir_frame_mark(g.frame);
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *y = choir_square(x);
	const size_t mark = choir_frame_mark(g.frame);
	for (int i = 0; i < 3; i++) {
		choir_exp(choir_scale(y, 2));
		assert_int_equal(nodes(tape), 3);
		choir_frame_rewind(g.frame, mark);
		assert_int_equal(nodes(tape), 1);
	}
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_OK);
	given_equal(gradient, 2, (const double[]){ 6, 6 });
	choir_frame_rewind(g.frame, start);
	assert_false(choir_frame_is_training(g.frame));
	assert_non_null(choir_tape_begin(g.frame)); // a new one, for a loop of one's own
	given_close(&g);
}

TEST(reads_are_kept_in_order)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tape *tape = choir_tape_begin(g.frame);
	size_t marks[100];
	for (size_t i = 0; i < 100; i++) {
		marks[i] = choir_frame_mark(g.frame);
		assert_int_equal(chi_tape_add_read(tape, choir_number(g.frame, (double) i)), CHOIR_OK);
	}
	for (size_t n = 100; n-- > 0;) {
		assert_int_equal(tape->n_reads, n + 1);
		for (size_t i = 0; i <= n; i++)
			assert_true(choir_tensor_number(tape->reads[i]) == (double) i);
		choir_frame_rewind(g.frame, marks[n]);
	}
	assert_int_equal(tape->n_reads, 0);
	assert_int_equal(chi_tape_add_read(tape, choir_number(g.frame, 5)), CHOIR_OK);
	assert_true(choir_tensor_number(tape->reads[0]) == 5);
	given_close(&g);
}
