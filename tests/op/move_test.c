// Slices, splits, concatenation, transposes and rows by number: values, views, gradients, the far
// device, and what is refused.
#include "op/given.h"
#include "test.h"

#include <string.h>

static const double counting[24] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
	18, 19, 20, 21, 22, 23 };
static const char *const devices[] = { "cpu:0", "far:0" };

static choir_tensor *f64(given *g, choir_shape shape)
{
	choir_tensor *t = choir_constant(g->frame, CHOIR_F64, shape, counting);
	assert_non_null(t);
	return t;
}

TEST(values_and_views)
{
	given g;

	for (int d = 0; d < 2; d++) {
		given_open(&g, devices[d], 1);
		choir_tensor *x = f64(&g, CHOIR_SHAPE(2, 3, 2)), *parts[3];
		given_equal(choir_slice(x, 1, 1, 2), 8, (const double[]){ 2, 3, 4, 5, 8, 9, 10, 11 });
		given_equal(choir_slice(x, -1, 1, 1), 6, (const double[]){ 1, 3, 5, 7, 9, 11 });
		choir_tensor *row = choir_slice(x, 0, 1, 1);
		given_equal(row, 6, (const double[]){ 6, 7, 8, 9, 10, 11 });
		assert_ptr_equal(row->buffer, x->buffer);
		row = choir_slice(row, 1, 2, 1);
		given_equal(row, 2, (const double[]){ 10, 11 });
		assert_ptr_equal(row->buffer, x->buffer);
		assert_int_equal(choir_shape_elements(&choir_slice(x, 1, 3, 0)->shape), 0);
		assert_int_equal(choir_split(x, 1, 3, parts), CHOIR_OK);
		given_equal(parts[1], 4, (const double[]){ 2, 3, 8, 9 });
		given_equal(choir_concat(3, (choir_tensor *[]){ parts[2], parts[0], parts[1] }, 1), 12,
				(const double[]){ 4, 5, 0, 1, 2, 3, 10, 11, 6, 7, 8, 9 });
		given_equal(choir_transpose(x, (const int[]){ 2, 0, 1 }), 12,
				(const double[]){ 0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11 });
		given_equal(choir_transpose(x, (const int[]){ 1, 0, -1 }), 12,
				(const double[]){ 0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11 });
		given_equal(choir_transpose(f64(&g, CHOIR_SHAPE(2, 3)), NULL), 6,
				(const double[]){ 0, 3, 1, 4, 2, 5 });
		choir_tensor *ones = f64(&g, CHOIR_SHAPE(1, 3, 1, 2));
		choir_tensor *moved = choir_transpose(ones, (const int[]){ 1, 2, 0, 3 });
		assert_int_equal(moved->shape.dim[0], 3);
		assert_ptr_equal(moved->buffer, ones->buffer);
		choir_tensor *indices = choir_constant(g.frame, CHOIR_U8, CHOIR_SHAPE(2, 2), "\2\0\2\1");
		given_equal(choir_gather(f64(&g, CHOIR_SHAPE(3, 2)), indices), 8,
				(const double[]){ 4, 5, 0, 1, 4, 5, 2, 3 });
		given_close(&g);
	}
}

// Elements of every size; more tensors than one operation takes, one of them empty.
TEST(all_dtypes_and_many_tensors)
{
	given g;

	given_open(&g, "cpu:0", 2);
	for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
		if (dtype == CHOIR_BOOL)
			continue;
		choir_tensor *x = choir_cast(f64(&g, CHOIR_SHAPE(2, 3)), (choir_dtype) dtype);
		given_equal(choir_transpose(x, NULL), 6, (const double[]){ 0, 3, 1, 4, 2, 5 });
		choir_tensor *many[20];
		double expected[60];
		for (int i = 0; i < 20; i++) {
			many[i] = i == 4 ? choir_slice(x, 1, 0, 0) : choir_slice(x, 1, i % 3, 1);
			expected[i] = i % 3;
			expected[19 + i] = 3 + i % 3;
		}
		for (int i = 4; i < 38; i++) // without the empty one
			expected[i] = i < 19 ? (i + 1) % 3 : 3 + (i - 19 + (i >= 23)) % 3;
		given_equal(choir_concat(20, many, 1), 38, expected);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

static choir_tensor *take_apart(choir_tensor *const in[], void *user)
{
	choir_tensor *parts[2];

	(void) user;
	if (choir_split(in[0], 1, 2, parts) != CHOIR_OK)
		return NULL;
	choir_tensor *back =
			choir_concat(3, (choir_tensor *[]){ parts[1], choir_square(parts[0]), in[1] }, 1);
	return choir_multiply(choir_slice(back, 0, 1, 1), choir_slice(back, 0, 0, 1));
}

static choir_tensor *turn(choir_tensor *const in[], void *user)
{
	return choir_square(choir_transpose(in[0], user));
}

static choir_tensor *gather(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_gather(in[0], in[1]));
}

TEST(gradients)
{
	given g;

	for (int d = 0; d < 2; d++) {
		given_open(&g, devices[d], 3);
		choir_tensor *const in[] = { given_normal(&g, CHOIR_SHAPE(2, 4, 3)),
			given_normal(&g, CHOIR_SHAPE(2, 1, 3)) };
		given_check(&g, 2, in, take_apart, NULL);
		int order[3] = { 1, 2, 0 }, view[3] = { 0, 1, 2 };
		given_check(&g, 1, in, turn, order);
		given_check(&g, 1, in, turn, view);
		choir_tensor *const rows[] = { given_normal(&g, CHOIR_SHAPE(3, 2)),
			given_labels(&g, 7, 3) };
		given_check(&g, 2, rows, gather, NULL);
		given_close(&g);
	}
}

TEST(refused)
{
	given g;

	given_open(&g, "cpu:0", 4);
	choir_tensor *parts[2];
	assert_null(choir_slice(f64(&g, CHOIR_SHAPE(2, 3)), 2, 0, 1));
	given_failure(&g, CHOIR_INVALID, "slice:*[2, 3]*axis 2");
	assert_null(choir_slice(f64(&g, CHOIR_SHAPE(2, 3)), 1, 2, 2));
	given_failure(&g, CHOIR_INVALID, "slice:*axis 1*[2, 3]");
	assert_null(choir_slice(f64(&g, CHOIR_SHAPE(2, 3)), 1, 1, INT64_MAX));
	given_failure(&g, CHOIR_INVALID, "slice: ");
	assert_int_equal(choir_split(f64(&g, CHOIR_SHAPE(2, 3)), 1, 2, parts), CHOIR_INVALID);
	given_failure(&g, CHOIR_INVALID, "split:*axis 1*[2, 3]");
	assert_null(choir_concat(
			2, (choir_tensor *[]){ f64(&g, CHOIR_SHAPE(2, 3)), f64(&g, CHOIR_SHAPE(3, 3)) }, 1));
	given_failure(&g, CHOIR_INVALID, "concat:*f64*[2, 3]*[3, 3]*axis 1");
	assert_null(choir_transpose(f64(&g, CHOIR_SHAPE(2, 3)), (const int[]){ 1, -1 }));
	given_failure(&g, CHOIR_INVALID, "transpose:*axis -1");
	choir_tensor *x = f64(&g, CHOIR_SHAPE(3, 2));
	assert_null(choir_gather(
			x, choir_constant(g.frame, CHOIR_I32, CHOIR_SHAPE(2), (int32_t[]){ 0, 3 })));
	given_failure(&g, CHOIR_INVALID, "gather: index 3*1*0 to 2");
	x = f64(&g, CHOIR_SHAPE(3, 2));
	assert_null(choir_gather(x, x));
	given_failure(&g, CHOIR_INVALID, "gather:*f64*u8*i32*i64");
	x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(0, 2), 1);
	assert_null(choir_gather(x, given_labels(&g, 2, 3)));
	given_failure(&g, CHOIR_INVALID, "gather:*[2]*[0, 2]");
	assert_null(choir_concat(0, NULL, 0));
	assert_null(choir_slice(NULL, 0, 0, 1));
	given_close(&g);
}
