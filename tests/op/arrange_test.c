// Flip, pad, tile, stack, broadcast, one-hot, and Einstein summation, against NumPy's results.
#include "op/given.h"
#include "test.h"

static choir_tensor *counting(given *g, choir_shape shape)
{
	choir_tensor *t = choir_reshape(chi_count_up(g->frame, choir_shape_elements(&shape)), shape);
	return choir_cast(t, CHOIR_F64);
}

static void has_shape(const choir_tensor *t, choir_shape shape)
{
	assert_non_null(t);
	assert_true(chi_shape_equal(&t->shape, &shape));
}

TEST(flips)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = counting(&g, CHOIR_SHAPE(2, 3));
	given_equal(choir_flip(x, 1), 6, (const double[]){ 2, 1, 0, 5, 4, 3 });
	given_equal(choir_flip(x, -2), 6, (const double[]){ 3, 4, 5, 0, 1, 2 });
	given_equal(choir_flip(choir_cast(x, CHOIR_BOOL), 1), 6, (const double[]){ 1, 1, 0, 1, 1, 1 });
	assert_null(choir_flip(x, 2));
	given_failure(&g, CHOIR_INVALID, "flip:*[2, 3]*axis 2");
	given_close(&g);
}

TEST(pads)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = counting(&g, CHOIR_SHAPE(2, 3));
	given_equal(choir_pad(x, (const int64_t[]){ 0, 1 }, (const int64_t[]){ 1, 0 }, NULL), 12,
			(const double[]){ 0, 0, 1, 2, 0, 3, 4, 5, 0, 0, 0, 0 });
	const int64_t none[] = { 0, 0 }, two[] = { 0, 2 };
	given_equal(
			choir_pad(x, two, two, CHOIR_OPTIONS(choir_pad_options, .mode = CHOIR_PAD_REFLECT)),
			14, (const double[]){ 2, 1, 0, 1, 2, 1, 0, 5, 4, 3, 4, 5, 4, 3 });
	given_equal(choir_pad(choir_cast(x, CHOIR_I32), two, none,
						CHOIR_OPTIONS(choir_pad_options, .value = -1)),
			10, (const double[]){ -1, -1, 0, 1, 2, -1, -1, 3, 4, 5 });
	assert_ptr_equal(choir_pad(x, none, none, NULL), x);
	assert_null(choir_pad(x, (const int64_t[]){ 2, 0 }, none,
			CHOIR_OPTIONS(choir_pad_options, .mode = CHOIR_PAD_REFLECT)));
	given_failure(&g, CHOIR_INVALID, "pad:*2 elements*axis 0*[2, 3]*REFLECT");
	x = counting(&g, CHOIR_SHAPE(2, 3));
	assert_null(choir_pad(x, none, (const int64_t[]){ 0, -1 }, NULL));
	given_failure(&g, CHOIR_INVALID, "pad:*-1 after*axis 1");
	x = choir_fill(g.frame, CHOIR_U8, CHOIR_SHAPE(2, 2), 1);
	assert_null(choir_pad(x, two, none, CHOIR_OPTIONS(choir_pad_options, .value = 0.5)));
	given_failure(&g, CHOIR_INVALID, "0.5*u8");
	given_close(&g);
}

TEST(repeats)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = counting(&g, CHOIR_SHAPE(2, 2));
	choir_tensor *tiled = choir_tile(x, (const int64_t[]){ 2, 3 });
	has_shape(tiled, CHOIR_SHAPE(4, 6));
	given_equal(tiled, 24,
			(const double[]){
					0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3 });
	has_shape(choir_tile(x, (const int64_t[]){ 0, 1 }), CHOIR_SHAPE(0, 2));
	given_equal(choir_broadcast_to(x, CHOIR_SHAPE(2, 2, 2)), 8,
			(const double[]){ 0, 1, 2, 3, 0, 1, 2, 3 });
	assert_null(choir_broadcast_to(x, CHOIR_SHAPE(2, 3)));
	given_failure(&g, CHOIR_INVALID, "broadcast_to:*[2, 2]*[2, 3]");
	x = counting(&g, CHOIR_SHAPE(2));
	assert_null(choir_tile(x, (const int64_t[]){ -1 }));
	given_failure(&g, CHOIR_INVALID, "tile:*-1*axis 0");
	x = counting(&g, CHOIR_SHAPE(2));
	assert_null(choir_tile(x, (const int64_t[]){ INT64_MAX }));
	given_failure(&g, CHOIR_INVALID, "tile:*size");
	given_close(&g);
}

TEST(stacks)
{
	enum { MANY = 20 };
	choir_tensor *parts[MANY];
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = counting(&g, CHOIR_SHAPE(2, 2));
	choir_tensor *const both[] = { x, choir_scale(x, 10) };
	given_equal(choir_stack(2, both, 0), 8, (const double[]){ 0, 1, 2, 3, 0, 10, 20, 30 });
	given_equal(choir_stack(2, both, 1), 8, (const double[]){ 0, 1, 0, 10, 2, 3, 20, 30 });
	given_equal(choir_stack(2, both, -1), 8, (const double[]){ 0, 0, 1, 10, 2, 20, 3, 30 });
	double expected[MANY];
	for (int i = 0; i < MANY; i++) {
		expected[i] = i;
		parts[i] = choir_fill(g.frame, CHOIR_F64, CHOIR_SCALAR, i);
	}
	given_equal(choir_stack(MANY, parts, 0), MANY, expected);
	choir_tensor *const different[] = { x, counting(&g, CHOIR_SHAPE(3)) };
	assert_null(choir_stack(2, different, 0));
	given_failure(&g, CHOIR_INVALID, "[3]");
	x = counting(&g, CHOIR_SHAPE(2));
	assert_null(choir_stack(1, &x, 2));
	given_failure(&g, CHOIR_INVALID, "stack:*[2]*axis 2");
	given_close(&g);
}

TEST(one_hot_rows)
{
	static const int32_t index[] = { 2, -1, 0, 3 };
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *i = choir_constant(g.frame, CHOIR_I32, CHOIR_SHAPE(2, 2), index);
	choir_tensor *hot = choir_one_hot(i, 3, CHOIR_U8);
	has_shape(hot, CHOIR_SHAPE(2, 2, 3));
	given_equal(hot, 12, (const double[]){ 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0 });
	assert_null(choir_one_hot(counting(&g, CHOIR_SHAPE(2)), 3, CHOIR_F32));
	given_failure(&g, CHOIR_INVALID, "one_hot:*f64*integers");
	given_close(&g);
}

TEST(einstein_summation)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = counting(&g, CHOIR_SHAPE(2, 3)), *b = counting(&g, CHOIR_SHAPE(3, 2));
	choir_tensor *square = counting(&g, CHOIR_SHAPE(2, 2)), *v = counting(&g, CHOIR_SHAPE(2));
	given_equal(choir_einsum("ij,jk->ik", a, b), 4, (const double[]){ 10, 13, 28, 40 });
	given_equal(choir_einsum("ij,jk", a, b), 4, (const double[]){ 10, 13, 28, 40 });
	given_equal(choir_einsum(" ij , jk -> ki", a, b), 4, (const double[]){ 10, 28, 13, 40 });
	given_equal(choir_einsum("ij,ji->", a, b), 1, (const double[]){ 50 });
	given_equal(choir_einsum("ij,i->ij", a, v), 6, (const double[]){ 0, 0, 0, 3, 4, 5 });
	given_equal(choir_einsum("i,j->ij", v, v), 4, (const double[]){ 0, 0, 0, 1 });
	given_equal(choir_einsum("ii,i->i", square, v), 2, (const double[]){ 0, 3 });
	given_equal(choir_einsum("ij,k->k", a, v), 2, (const double[]){ 0, 15 });
	choir_tensor *x = counting(&g, CHOIR_SHAPE(2, 2, 3)), *y = counting(&g, CHOIR_SHAPE(3, 2, 2));
	given_equal(choir_einsum("bij,jkb->kib", x, y), 8,
			(const double[]){ 20, 113, 56, 158, 26, 155, 80, 218 });
	assert_null(choir_einsum("ij,jk->ik", a, a));
	given_failure(&g, CHOIR_INVALID, "einsum:*ij,jk->ik*[2, 3]*[2, 3]");
	static const char *const wrong[] = { "ij", "ij,jk->iz", "ij,jk->ii", "ij,j1->i", "...i,ij",
		"ijk,jk", "ij,jk,kl", "abcdefghi,jk", "ij,jk->i->k", "" };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		a = counting(&g, CHOIR_SHAPE(2, 3));
		assert_null(choir_einsum(wrong[i], a, a));
		given_failure(&g, CHOIR_INVALID, "einsum:*labels");
	}
	given_close(&g);
}
