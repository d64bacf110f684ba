// Extremes, products, positions, the largest elements, and cumulative sums.
#include "op/given.h"
#include "test.h"

#include <math.h>

static choir_tensor *f64(given *g, choir_shape shape, const double *values)
{
	choir_tensor *t = choir_constant(g->frame, CHOIR_F64, shape, values);
	assert_non_null(t);
	return t;
}

TEST(extremes_over_all_sets_of_axes)
{
	enum { A = 3, B = 4, C = 5, ALL = A * B * C };
	double x[A][B][C];
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *t = given_normal(&g, CHOIR_SHAPE(A, B, C));
	assert_int_equal(choir_tensor_to_host(t, x, sizeof x), CHOIR_OK);
	for (int axes = 1; axes < 8; axes++) {
		double max[ALL], min[ALL], prod[ALL];
		int n = 0;
		for (int a = 0; a < (axes & 1 ? 1 : A); a++)
			for (int b = 0; b < (axes & 2 ? 1 : B); b++)
				for (int c = 0; c < (axes & 4 ? 1 : C); c++, n++) {
					max[n] = -INFINITY;
					min[n] = INFINITY;
					prod[n] = 1;
					for (int i = 0; i < (axes & 1 ? A : 1); i++)
						for (int j = 0; j < (axes & 2 ? B : 1); j++)
							for (int k = 0; k < (axes & 4 ? C : 1); k++) {
								const double v = x[a + i][b + j][c + k];
								max[n] = fmax(max[n], v);
								min[n] = fmin(min[n], v);
								prod[n] *= v;
							}
				}
		given_equal(choir_max(t, CHOIR_AXES_BITS(axes)), (size_t) n, max);
		given_equal(choir_min(t, CHOIR_AXES_BITS(axes)), (size_t) n, min);
		given_equal(choir_prod(t, CHOIR_AXES_BITS(axes)), (size_t) n, prod);
	}
	given_close(&g);
}

TEST(extremes_of_long_rows_and_of_nan)
{
	enum { N = 1000 };
	double x[2 * N];
	given g;

	given_open(&g, "cpu:0", 1);
	for (int i = 0; i < N; i++)
		x[i] = x[N + i] = sin(i);
	x[700] = 2;
	x[N + 3] = NAN;
	choir_tensor *t = f64(&g, CHOIR_SHAPE(2, N), x);
	given_equal(choir_max(t, CHOIR_AXIS(1)), 2, (const double[]){ 2, NAN });
	given_equal(choir_argmax(t, 1), 2, (const double[]){ 700, 699 });
	const int32_t whole[] = { 3, -9, 4, -9 };
	choir_tensor *i = choir_constant(g.frame, CHOIR_I32, CHOIR_SHAPE(4), whole);
	given_equal(choir_min(i, CHOIR_ALL_AXES), 1, (const double[]){ -9 });
	given_equal(choir_prod(i, CHOIR_ALL_AXES), 1, (const double[]){ 972 });
	given_equal(choir_argmin(i, 0), 1, (const double[]){ 1 });
	given_equal(choir_prod(choir_slice(i, 0, 0, 0), CHOIR_AXIS(0)), 1, (const double[]){ 1 });
	assert_null(choir_max(choir_slice(i, 0, 0, 0), CHOIR_AXIS(0)));
	given_failure(&g, CHOIR_INVALID, "max:*[0]*one or more");
	choir_tensor *y = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2, 2), 1);
	assert_null(choir_prod(y, CHOIR_AXIS(2)));
	given_failure(&g, CHOIR_INVALID, "prod:*[2, 2]*axis 2");
	given_close(&g);
}

// Equal elements share the gradient; elements of 0 do not divide by 0.
TEST(gradients_of_extremes_and_products)
{
	given g;
	choir_tensor *dx;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = f64(&g, CHOIR_SHAPE(5), (const double[]){ 2, 0, 3, 3, 0 });
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *max = choir_max(x, CHOIR_ALL_AXES);
	assert_int_equal(choir_tape_gradient_recorded(tape, max, 1, &x, &dx), CHOIR_OK);
	given_equal(dx, 5, (const double[]){ 0, 0, 0.5, 0.5, 0 });
	choir_tensor *prod = choir_prod(choir_slice(x, 0, 0, 4), CHOIR_ALL_AXES);
	assert_int_equal(choir_tape_gradient_recorded(tape, prod, 1, &x, &dx), CHOIR_OK);
	given_equal(dx, 5, (const double[]){ 0, 18, 0, 0, 0 });
	given_close(&g);
}

TEST(top_k_is_sorted)
{
	choir_tensor *values, *indices;
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = f64(&g, CHOIR_SHAPE(2, 5),
			(const double[]){ 1, 7, 7, -2, 3, NAN, -INFINITY, 0, INFINITY, 0 });
	assert_int_equal(choir_top_k(x, 3, &values, &indices), CHOIR_OK);
	given_equal(values, 6, (const double[]){ 7, 7, 3, INFINITY, 0, 0 });
	given_equal(indices, 6, (const double[]){ 1, 2, 4, 3, 2, 4 });
	assert_int_equal(choir_top_k(x, 5, NULL, &indices), CHOIR_OK);
	given_equal(indices, 10, (const double[]){ 1, 2, 4, 0, 3, 3, 2, 4, 1, 0 });
	const uint8_t small[] = { 3, 250, 9 };
	choir_tensor *u = choir_constant(g.frame, CHOIR_U8, CHOIR_SHAPE(3), small);
	assert_int_equal(choir_top_k(u, 1, &values, NULL), CHOIR_OK);
	given_equal(values, 1, (const double[]){ 250 });
	assert_int_equal(choir_top_k(u, 4, &values, &indices), CHOIR_INVALID);
	assert_null(values);
	assert_null(indices);
	given_failure(&g, CHOIR_INVALID, "top_k:*4*[3]");
	given_close(&g);
}

// Against sorting by hand, with many equal elements.
TEST(top_k_of_random_rows)
{
	enum { N = 97 };
	double x[N];
	choir_tensor *indices;
	given g;

	given_open(&g, "cpu:0", 1);
	for (int k = 1; k <= N; k += 12) {
		for (int i = 0; i < N; i++)
			x[i] = (double) given_size(&g, 0, 20);
		int64_t got[N];
		assert_int_equal(choir_top_k(f64(&g, CHOIR_SHAPE(N), x), k, NULL, &indices), CHOIR_OK);
		assert_int_equal(choir_tensor_to_host(indices, got, (size_t) k * sizeof *got), CHOIR_OK);
		for (int at = 0; at < k; at++) {
			int before = 0; // elements that come first
			for (int i = 0; i < N; i++)
				before += x[i] > x[got[at]] || (x[i] == x[got[at]] && i < got[at]);
			assert_int_equal(before, at);
		}
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

TEST(cumulative_sums)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = f64(&g, CHOIR_SHAPE(2, 3), (const double[]){ 1, 2, 3, 4, 5, 6 });
	given_equal(choir_cumsum(x, 1, NULL), 6, (const double[]){ 1, 3, 6, 4, 9, 15 });
	given_equal(choir_cumsum(x, -2, NULL), 6, (const double[]){ 1, 2, 3, 5, 7, 9 });
	given_equal(choir_cumsum(x, 1, CHOIR_OPTIONS(choir_cumsum_options, .exclusive = CHOIR_ON)), 6,
			(const double[]){ 0, 1, 3, 0, 4, 9 });
	given_equal(choir_cumsum(x, 1, CHOIR_OPTIONS(choir_cumsum_options, .reverse = CHOIR_ON)), 6,
			(const double[]){ 6, 5, 3, 15, 11, 6 });
	const uint8_t small[] = { 200, 100 };
	choir_tensor *u = choir_constant(g.frame, CHOIR_U8, CHOIR_SHAPE(2), small);
	given_equal(choir_cumsum(u, 0, NULL), 2, (const double[]){ 200, 44 });
	assert_null(choir_cumsum(u, 1, NULL));
	given_failure(&g, CHOIR_INVALID, "cumsum:*[2]*axis 1");
	x = f64(&g, CHOIR_SHAPE(1), (const double[]){ 1 });
	assert_null(
			choir_cumsum(x, 0, CHOIR_OPTIONS(choir_cumsum_options, .reverse = (choir_toggle) 9)));
	given_failure(&g, CHOIR_INVALID, "cumsum:*reverse 9");
	given_close(&g);
}
