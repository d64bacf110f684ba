// Weighted rows: against values worked out by hand, examples without weight, finite differences of
// rows, weights and the table that rows are of, and what is refused.
#include "choir/nn.h"
#include "op/given.h"
#include "test.h"

#include <math.h>

enum { EXAMPLES = 3, IDS = 3, WIDTH = 2 };

// The last row is in no example: its weights are 0.
static const double table[4][WIDTH] = { { 1, 2 }, { 3, 5 }, { -7, 11 }, { 1e30, -1e30 } };
static const int64_t ids[EXAMPLES][IDS] = { { 0, 1, 3 }, { 2, 3, 3 }, { 3, 3, 3 } };
static const double weights[EXAMPLES][IDS] = { { 3, 4, 0 }, { -2, 0, 0 }, { 0, 0, 0 } };

static choir_tensor *constant(given *g, choir_dtype dtype, choir_shape shape, const void *values)
{
	choir_tensor *t = choir_constant(g->frame, dtype, shape, values);
	assert_non_null(t);
	return t;
}

TEST(by_hand)
{
	static const double sum[] = { 15, 26, 14, -22, 0, 0 };
	given g;

	given_open(&g, "cpu:0", 1);
	for (int dtype = CHOIR_F32; dtype <= CHOIR_F64; dtype++)
		for (int combiner = CHOIR_COMBINER_MEAN; combiner <= CHOIR_COMBINER_SQRTN; combiner++) {
			const double by[][EXAMPLES] = { { 7, -2, 1 }, { 1, 1, 1 }, { 5, 2, 1 } };
			double expected[EXAMPLES * WIDTH];
			choir_tensor *t = constant(&g, CHOIR_F64, CHOIR_SHAPE(4, WIDTH), table);
			choir_tensor *w = constant(&g, CHOIR_F64, CHOIR_SHAPE(EXAMPLES, IDS), weights);
			choir_tensor *rows = choir_gather(choir_cast(t, (choir_dtype) dtype),
					constant(&g, CHOIR_I64, CHOIR_SHAPE(EXAMPLES, IDS), ids));
			for (int i = 0; i < EXAMPLES * WIDTH; i++)
				expected[i] = sum[i] / by[combiner][i / WIDTH];
			given_equal(choir_combine_rows(rows, choir_cast(w, (choir_dtype) dtype),
								(choir_combiner) combiner),
					EXAMPLES * WIDTH, expected);
			choir_frame_clear(g.frame);
		}
	given_close(&g);
}

// One example alone, several axes of them, and none of anything.
TEST(any_shape)
{
	given g;

	given_open(&g, "cpu:0", 2);
	choir_tensor *rows = constant(&g, CHOIR_F64, CHOIR_SHAPE(2, WIDTH), table);
	choir_tensor *w = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2), 1);
	choir_tensor *mean = choir_combine_rows(rows, w, CHOIR_COMBINER_MEAN);
	given_equal(mean, 2, (const double[]){ 2, 3.5 });
	assert_int_equal(choir_tensor_shape(mean)->rank, 1);
	rows = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 3, 4, 5), 7);
	w = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 3, 4), 2);
	mean = choir_combine_rows(rows, w, CHOIR_COMBINER_MEAN);
	given_equal(choir_sum(mean, CHOIR_ALL_AXES), 1, (const double[]){ 2 * 3 * 5 * 7 });
	assert_int_equal(choir_tensor_shape(mean)->rank, 3);
	rows = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 0, 3), 7);
	w = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 0), 2);
	given_equal(choir_combine_rows(rows, w, CHOIR_COMBINER_SQRTN), 6, (const double[6]){ 0 });
	rows = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(0, 2, 3), 7);
	w = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(0, 2), 2);
	given_equal(choir_combine_rows(rows, w, CHOIR_COMBINER_MEAN), 0, NULL);
	given_close(&g);
}

static choir_tensor *combine(choir_tensor *const in[], void *user)
{
	return choir_combine_rows(in[0], in[1], *(const choir_combiner *) user);
}

static choir_tensor *look_up(choir_tensor *const in[], void *user)
{
	return choir_combine_rows(choir_gather(in[0], in[2]), in[1], *(const choir_combiner *) user);
}

TEST(gradients)
{
	given g;

	given_open(&g, "cpu:0", 3);
	for (int round = 0; round < 5; round++)
		for (int i = CHOIR_COMBINER_MEAN; i <= CHOIR_COMBINER_SQRTN; i++) {
			choir_combiner combiner = (choir_combiner) i;
			const int64_t examples = given_size(&g, 1, 4), n = given_size(&g, 1, 5);
			choir_tensor *w = given_positive(&g, CHOIR_SHAPE(examples, n));
			choir_tensor *const rows[] = { given_normal(&g, CHOIR_SHAPE(examples, n, 3)), w };
			given_check(&g, 2, rows, combine, &combiner);
			choir_tensor *indices =
					choir_reshape(given_labels(&g, examples * n, 6), CHOIR_SHAPE(examples, n));
			choir_tensor *const all[] = { given_normal(&g, CHOIR_SHAPE(6, 3)), w, indices };
			given_check(&g, 3, all, look_up, &combiner);
			choir_frame_clear(g.frame);
		}
	given_close(&g);
}

// An example without weight has the result 0 and finite gradients, whatever its rows are.
TEST(no_weight)
{
	given g;

	given_open(&g, "cpu:0", 4);
	for (int i = CHOIR_COMBINER_MEAN; i <= CHOIR_COMBINER_SQRTN; i++) {
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *in[2] = { choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(1, 2, 1), 5),
			choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(1, 2), 0) };
		choir_tensor *y = choir_combine_rows(in[0], in[1], (choir_combiner) i), *slope[2];
		given_equal(y, 1, (const double[]){ 0 });
		assert_int_equal(choir_tape_gradient(tape, y, 2, in, slope), CHOIR_OK);
		given_equal(slope[0], 2, (const double[]){ 0, 0 });
		given_equal(slope[1], 2, (const double[]){ 5, 5 });
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

TEST(what_is_refused)
{
	given g;

	given_open(&g, "cpu:0", 5);
	choir_tensor *rows = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 3, 4), 1);
	choir_tensor *w = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 3), 1);
	assert_null(choir_combine_rows(rows, w, (choir_combiner) 3));
	given_failure(&g, CHOIR_INVALID, "combine_rows: combiner 3*MEAN*SUM*SQRTN");
	const choir_shape wrong[] = { CHOIR_SHAPE(2, 4), CHOIR_SHAPE(3), CHOIR_SHAPE(2, 3, 4) };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		rows = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 3, 4), 1);
		w = choir_fill(g.frame, CHOIR_F64, wrong[i], 1);
		assert_null(choir_combine_rows(rows, w, CHOIR_COMBINER_MEAN));
		given_failure(&g, CHOIR_INVALID, "combine_rows:*[2, 3, 4]");
	}
	rows = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(3), 1);
	w = choir_fill(g.frame, CHOIR_F64, CHOIR_SCALAR, 1);
	assert_null(choir_combine_rows(rows, w, CHOIR_COMBINER_MEAN));
	given_failure(&g, CHOIR_INVALID, "combine_rows:*[3]*[]");
	rows = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 3), 1);
	w = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
	assert_null(choir_combine_rows(rows, w, CHOIR_COMBINER_MEAN));
	given_failure(&g, CHOIR_INVALID, "matmul:*f32*f64");
	rows = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(2, 3), 1);
	assert_null(choir_combine_rows(rows, NULL, CHOIR_COMBINER_MEAN));
	assert_null(choir_combine_rows(NULL, NULL, CHOIR_COMBINER_MEAN));
	choir_frame_clear(g.frame);
	given_close(&g);
}
