// Transposed and volume convolutions, pools in one and three dimensions, upsampling, group norm
// and masked attention, against plain loops and against what they must be equal to.
#include "op/given.h"
#include "test.h"

#include <math.h>

static double at(const choir_tensor *t, int64_t i)
{
	return ((const double *) t->data)[i];
}

static void has_shape(const choir_tensor *t, choir_shape shape)
{
	if (!t)
		fail_msg("%s", choir_error());
	assert_true(chi_shape_equal(&t->shape, &shape));
}

static void same(const choir_tensor *a, const choir_tensor *b)
{
	has_shape(a, *choir_tensor_shape(b));
	for (int64_t i = 0; i < choir_shape_elements(&a->shape); i++)
		if (!(fabs(at(a, i) - at(b, i)) <= 1e-12 * (1 + fabs(at(b, i)))))
			fail_msg("element %lld is %.17g, not %.17g", (long long) i, at(a, i), at(b, i));
}

TEST(transposed_by_hand)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x =
			choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(1, 2, 1), (const double[]){ 1, 2 });
	choir_tensor *k = choir_constant(
			g.frame, CHOIR_F64, CHOIR_SHAPE(3, 1, 1), (const double[]){ 1, 10, 100 });
	given_equal(choir_conv1d_transpose(x, k, CHOIR_OPTIONS(choir_conv_options, .stride = 2)), 5,
			(const double[]){ 1, 10, 102, 20, 200 });
	given_equal(choir_conv1d_transpose(
						x, k, CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = 1)),
			3, (const double[]){ 10, 102, 20 });
	given_equal(
			choir_conv1d_transpose(x, k,
					CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = CHOIR_PADDING_SAME)),
			4, (const double[]){ 1, 10, 102, 20 });
	given_equal(choir_conv1d_transpose(x, k,
						CHOIR_OPTIONS(choir_conv_options, .stride = 3, .pad_before = { 2 },
								.pad_after = { 1 }, .activation = CHOIR_RELU)),
			3, (const double[]){ 100, 2, 20 });
	assert_null(choir_conv1d_transpose(x, k, CHOIR_OPTIONS(choir_conv_options, .padding = 2)));
	given_failure(&g, CHOIR_INVALID, "conv1d_transpose:*padding 2*one element");
	given_close(&g);
}

static double dot(const choir_tensor *a, const choir_tensor *b)
{
	double sum = 0;
	for (int64_t i = 0; i < choir_shape_elements(&a->shape); i++)
		sum += at(a, i) * at(b, i);
	return sum;
}

// The sum of conv(u) x is the sum of u transposed(x), for all u and x.
TEST(transposed_is_the_adjoint)
{
	static const choir_conv_options options[] = { { .stride = 2 }, { .stride = 1, .padding = 1 },
		{ .stride = 2, .padding = CHOIR_PADDING_SAME }, { .dilation = 2, .groups = 2 },
		{ .stride = 3, .pad_before = { 1, 0 }, .pad_after = { 0, 2 } } };
	given g;

	given_open(&g, "cpu:0", 2);
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		choir_conv_options o = options[i];
		o.size = sizeof o;
		const int64_t groups = o.groups ? o.groups : 1;
		choir_tensor *k = given_normal(&g, CHOIR_SHAPE(3, 2, 4 / groups, 6));
		choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 3, 4, 6));
		choir_tensor *y = choir_conv2d_transpose(x, k, &o);
		assert_non_null(y);
		assert_int_equal(y->shape.dim[3], 4);
		choir_tensor *u = given_normal(&g, y->shape), *v = choir_conv2d(u, k, &o);
		has_shape(v, x->shape);
		assert_true(fabs(dot(u, y) - dot(v, x)) < 1e-10);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

TEST(transposed_volumes_are_the_adjoint)
{
	static const choir_conv_options options[] = { { .stride = 2 }, { .padding = 1 },
		{ .stride = 3, .padding = CHOIR_PADDING_SAME }, { .dilation = 2, .groups = 2 },
		{ .stride = 2, .pad_before = { 1, 0, 2 }, .pad_after = { 0, 2, 1 } } };
	given g;

	given_open(&g, "cpu:0", 12);
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		choir_conv_options o = options[i];
		o.size = sizeof o;
		const int64_t groups = o.groups ? o.groups : 1;
		choir_tensor *k = given_normal(&g, CHOIR_SHAPE(2, 3, 2, 4 / groups, 2));
		choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2, 3, 2, 4, 2));
		choir_tensor *y = choir_conv3d_transpose(x, k, &o);
		assert_non_null(y);
		choir_tensor *u = given_normal(&g, y->shape), *v = choir_conv3d(u, k, &o);
		has_shape(v, x->shape);
		assert_true(fabs(dot(u, y) - dot(v, x)) < 1e-10);
		choir_frame_clear(g.frame);
	}
	choir_tensor *one = choir_fill(g.frame, CHOIR_F64, CHOIR_SHAPE(1, 1, 1, 1, 1), 1);
	assert_null(choir_conv3d_transpose(
			one, one, CHOIR_OPTIONS(choir_conv_options, .pad_before = { 1 })));
	given_failure(&g, CHOIR_INVALID, "conv3d_transpose:*one slice");
	given_close(&g);
}

static choir_tensor *transposed(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_conv2d_transpose(in[0], in[1],
			CHOIR_OPTIONS(choir_conv_options, .stride = 2, .activation = CHOIR_TANH));
}

static choir_tensor *volume(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_conv3d(in[0], in[1],
			CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = 1, .groups = 2,
					.activation = CHOIR_SIGMOID));
}

TEST(gradients_of_convolutions)
{
	given g;

	given_open(&g, "cpu:0", 3);
	choir_tensor *const images[] = { given_normal(&g, CHOIR_SHAPE(1, 2, 3, 2)),
		given_normal(&g, CHOIR_SHAPE(2, 3, 2, 2)) };
	given_check(&g, 2, images, transposed, NULL);
	choir_tensor *const volumes[] = { given_normal(&g, CHOIR_SHAPE(1, 3, 2, 3, 2)),
		given_normal(&g, CHOIR_SHAPE(2, 2, 3, 1, 4)) };
	given_check(&g, 2, volumes, volume, NULL);
	given_close(&g);
}

typedef struct {
	int64_t d, h, w, c;
} box;

static double pixel(
		const choir_tensor *x, const box *b, int64_t i, int64_t j, int64_t k, int64_t c)
{
	const bool inside = i >= 0 && j >= 0 && k >= 0 && i < b->d && j < b->h && k < b->w;
	return inside ? at(x, ((i * b->h + j) * b->w + k) * b->c + c) : 0;
}

// One volume, stride, zeros at each side, and distance of the filter's elements.
static void try_volume(given *g, int stride, int padding, int dilation)
{
	const box b = { 5, 4, 6, 2 };
	choir_tensor *x = given_normal(g, CHOIR_SHAPE(1, b.d, b.h, b.w, b.c));
	choir_tensor *k = given_normal(g, CHOIR_SHAPE(2, 2, 2, b.c, 3));
	choir_tensor *y = choir_conv3d(x, k,
			CHOIR_OPTIONS(choir_conv_options, .stride = stride, .padding = padding,
					.dilation = dilation));
	const int64_t covered = dilation + 1, *out = y ? y->shape.dim : NULL;
	has_shape(y,
			CHOIR_SHAPE(1, (b.d + 2 * padding - covered) / stride + 1,
					(b.h + 2 * padding - covered) / stride + 1,
					(b.w + 2 * padding - covered) / stride + 1, 3));
	for (int64_t n = 0; n < choir_shape_elements(&y->shape); n++) {
		const int64_t o = n % 3, s = n / 3 % out[3], r = n / 3 / out[3] % out[2],
					  q = n / 3 / out[3] / out[2];
		double sum = 0;
		for (int64_t p = 0; p < 8 * b.c; p++) {
			const int64_t c = p % b.c, at_w = p / b.c % 2, at_h = p / b.c / 2 % 2,
						  at_d = p / b.c / 4;
			sum += pixel(x, &b, q * stride + at_d * dilation - padding,
						   r * stride + at_h * dilation - padding,
						   s * stride + at_w * dilation - padding, c) *
					at(k, p * 3 + o);
		}
		if (!(fabs(sum - at(y, n)) < 1e-12))
			fail_msg("element %lld is %g, not %g", (long long) n, at(y, n), sum);
	}
	choir_frame_clear(g->frame);
}

TEST(volumes_by_loops)
{
	given g;

	given_open(&g, "cpu:0", 4);
	try_volume(&g, 1, 0, 1);
	try_volume(&g, 2, 1, 1);
	try_volume(&g, 3, 1, 2);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(1, 2, 2, 2, 1));
	choir_tensor *k = given_normal(&g, CHOIR_SHAPE(3, 2, 2, 1, 1));
	assert_null(choir_conv3d(x, k, NULL));
	given_failure(&g, CHOIR_INVALID, "conv3d:*[1, 2, 2, 2, 1]*[3, 2, 2, 1, 1]");
	given_close(&g);
}

// Pools of a volume of one row and column, and of images that are slices, agree with each other.
TEST(pools_of_other_ranks)
{
	given g;

	given_open(&g, "cpu:0", 5);
	choir_tensor *x = choir_constant(
			g.frame, CHOIR_F64, CHOIR_SHAPE(1, 5, 1), (const double[]){ 1, 5, 2, 8, -3 });
	given_equal(choir_max_pool1d(x, 2, 2, 0), 2, (const double[]){ 5, 8 });
	given_equal(choir_max_pool1d(x, 3, 1, 1), 5, (const double[]){ 5, 5, 8, 8, 8 });
	given_equal(choir_average_pool1d(x, 3, 2, 1), 3, (const double[]){ 3, 5, 2.5 });
	given_equal(
			choir_average_pool1d(x, 2, 2, CHOIR_PADDING_SAME), 3, (const double[]){ 3, 5, -3 });
	choir_tensor *v = given_normal(&g, CHOIR_SHAPE(2, 4, 5, 6, 3));
	choir_tensor *max = choir_max_pool3d(v, 2, 2, 0), *mean = choir_average_pool3d(v, 3, 2, 1);
	has_shape(max, CHOIR_SHAPE(2, 2, 2, 3, 3));
	has_shape(mean, CHOIR_SHAPE(2, 2, 3, 3, 3));
	const box b = { 4, 5, 6, 3 };
	double largest = -INFINITY, sum = 0;
	for (int i = 0; i < 8; i++)
		largest = fmax(largest, pixel(v, &b, 2 + i / 4, 2 + i / 2 % 2, 4 + i % 2, 1));
	assert_true(at(max, ((1 * 2 + 1) * 3 + 2) * 3 + 1) == largest);
	for (int i = 0; i < 8; i++) // the corner's window has 8 elements
		sum += pixel(v, &b, i / 4, i / 2 % 2, i % 2, 0);
	assert_true(fabs(at(mean, 0) - sum / 8) < 1e-12);
	given_equal(choir_global_max_pool(x), 1, (const double[]){ 8 });
	given_equal(choir_global_average_pool(x), 1, (const double[]){ 2.6 });
	assert_null(choir_max_pool1d(v, 2, 2, 0));
	given_failure(&g, CHOIR_INVALID, "max_pool1d:*sequences");
	x = given_normal(&g, CHOIR_SHAPE(2, 3));
	assert_null(choir_global_max_pool(x));
	given_failure(&g, CHOIR_INVALID, "global_max_pool:*[2, 3]");
	x = given_normal(&g, CHOIR_SHAPE(2, 3, 4, 5, 6));
	assert_null(choir_average_pool3d(x, 2, 2, 2));
	given_failure(&g, CHOIR_INVALID, "average_pool3d:*padding 2*volumes");
	given_close(&g);
}

static choir_tensor *pooled(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_multiply(choir_max_pool3d(in[0], 2, 1, 0), choir_average_pool3d(in[0], 2, 1, 0));
}

static choir_tensor *enlarged(choir_tensor *const in[], void *user)
{
	return choir_upsample(in[0], 3, *(const choir_interpolation *) user);
}

static choir_tensor *grouped(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_group_norm(in[0], in[1], in[2], 2, 0.01);
}

TEST(gradients_of_pools_upsampling_and_group_norm)
{
	choir_interpolation nearest = CHOIR_NEAREST, linear = CHOIR_BILINEAR;
	given g;

	given_open(&g, "cpu:0", 6);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(1, 3, 3, 2, 2));
	given_check(&g, 1, &x, pooled, NULL);
	x = given_normal(&g, CHOIR_SHAPE(2, 2, 3, 2));
	given_check(&g, 1, &x, enlarged, &nearest);
	x = given_normal(&g, CHOIR_SHAPE(2, 2, 3, 2));
	given_check(&g, 1, &x, enlarged, &linear);
	choir_tensor *const in[] = { given_normal(&g, CHOIR_SHAPE(2, 3, 4)),
		given_normal(&g, CHOIR_SHAPE(4)), given_normal(&g, CHOIR_SHAPE(4)) };
	given_check(&g, 3, in, grouped, NULL);
	given_close(&g);
}

// In a window with several, and where the number before it is equal to none. The second gradient
// takes the number at the same place.
TEST(the_first_nan_of_a_pool_gets_the_gradient)
{
	static const double x[9] = { 1, NAN, 2, 3, 4, NAN, 9, 5, 6 };
	static const double overlapping[9] = { 0, 2, 0, 0, 0, 1, 1, 0, 0 }, one[9] = { 0, 1 };
	static const struct {
		int size, stride;
		const double *gradient;
	} cases[] = { { 2, 1, overlapping }, { 2, 2, one }, { 3, 3, one } };
	given g;

	given_open(&g, "cpu:0", 11);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
			if (!chi_dtype_is_float((choir_dtype) dtype))
				continue;
			choir_tensor *t = choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(1, 3, 3, 1), x), *dx;
			t = choir_cast(t, (choir_dtype) dtype);
			choir_tape *tape = choir_tape_begin(g.frame);
			choir_tensor *y = choir_max_pool2d(t, cases[i].size, cases[i].stride, 0);
			assert_true(isnan(choir_tensor_number(chi_tensor_rows(
					g.frame, choir_reshape(y, CHOIR_SHAPE(CHOIR_UNKNOWN)), 0, 1))));
			choir_tensor *w = choir_fill(g.frame, (choir_dtype) dtype, y->shape, 1), *taken;
			choir_tensor *product = choir_multiply(y, w);
			assert_int_equal(choir_tape_gradient_recorded(tape, product, 1, &t, &dx), CHOIR_OK);
			given_equal(dx, 9, cases[i].gradient);
			choir_tensor *by = choir_cast(chi_count_up(g.frame, 9), (choir_dtype) dtype);
			choir_tensor *sum = choir_multiply(dx, choir_reshape(by, t->shape));
			assert_int_equal(choir_tape_gradient(tape, sum, 1, &w, &taken), CHOIR_OK);
			given_equal(choir_slice(choir_reshape(taken, CHOIR_SHAPE(CHOIR_UNKNOWN)), 0, 0, 1), 1,
					(const double[]){ 1 });
			choir_frame_clear(g.frame);
		}
	given_close(&g);
}

TEST(upsampling_by_hand)
{
	given g;

	given_open(&g, "cpu:0", 7);
	choir_tensor *x = choir_constant(
			g.frame, CHOIR_F64, CHOIR_SHAPE(1, 2, 2, 1), (const double[]){ 0, 4, 8, 12 });
	given_equal(choir_upsample(x, 2, CHOIR_NEAREST), 16,
			(const double[]){ 0, 0, 4, 4, 0, 0, 4, 4, 8, 8, 12, 12, 8, 8, 12, 12 });
	given_equal(choir_upsample(x, 2, CHOIR_BILINEAR), 16,
			(const double[]){ 0, 1, 3, 4, 2, 3, 5, 6, 6, 7, 9, 10, 8, 9, 11, 12 });
	assert_ptr_equal(choir_upsample(x, 1, CHOIR_BILINEAR), x);
	assert_null(choir_upsample(x, 0, CHOIR_NEAREST));
	given_failure(&g, CHOIR_INVALID, "upsample:*by 0");
	x = given_normal(&g, CHOIR_SHAPE(1, 2, 2, 1));
	assert_null(choir_upsample(x, INT64_MAX / 2, CHOIR_NEAREST));
	given_failure(&g, CHOIR_INVALID, "upsample:*factor");
	given_close(&g);
}

// One group is the layer norm of all elements, and c groups are norms of each channel.
TEST(group_norm_by_loops)
{
	enum { N = 2, PLACES = 5, C = 6 };
	given g;

	given_open(&g, "cpu:0", 8);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(N, PLACES, C));
	choir_tensor *scale = given_normal(&g, CHOIR_SHAPE(C)),
				 *offset = given_normal(&g, scale->shape);
	for (int groups = 1; groups <= C; groups++) {
		if (C % groups != 0)
			continue;
		const int part = C / groups;
		choir_tensor *y = choir_group_norm(x, scale, offset, groups, 0.1);
		has_shape(y, x->shape);
		for (int i = 0; i < N * PLACES * C; i++) {
			const int n = i / PLACES / C, c = i % C, first = c / part * part;
			double sum = 0, squares = 0;
			for (int p = 0; p < PLACES * part; p++) {
				const double v = at(x, (n * PLACES + p / part) * C + first + p % part);
				sum += v;
				squares += v * v;
			}
			const double mean = sum / (PLACES * part);
			const double deviation = sqrt(squares / (PLACES * part) - mean * mean + 0.1);
			const double expected = (at(x, i) - mean) / deviation * at(scale, c) + at(offset, c);
			if (!(fabs(at(y, i) - expected) < 1e-10))
				fail_msg("%d groups, element %d is %g, not %g", groups, i, at(y, i), expected);
		}
	}
	assert_null(choir_group_norm(x, scale, offset, 4, 0.1));
	given_failure(&g, CHOIR_INVALID, "group_norm:*4 groups");
	given_close(&g);
}

TEST(masks_of_attention)
{
	given g;

	given_open(&g, "cpu:0", 9);
	choir_tensor *q = given_normal(&g, CHOIR_SHAPE(2, 3, 4));
	choir_tensor *k = given_normal(&g, CHOIR_SHAPE(2, 3, 4));
	choir_tensor *v = given_normal(&g, CHOIR_SHAPE(2, 3, 4));
	const int32_t sees[] = { 1, 0, 0, 1, 1, 0, 1, 1, 1 };
	choir_tensor *causal =
			choir_cast(choir_constant(g.frame, CHOIR_I32, CHOIR_SHAPE(3, 3), sees), CHOIR_BOOL);
	choir_tensor *expected = choir_attention(
			q, k, v, CHOIR_OPTIONS(choir_attention_options, .heads = 2, .causal = CHOIR_ON));
	same(choir_attention(
				 q, k, v, CHOIR_OPTIONS(choir_attention_options, .heads = 2, .mask = causal)),
			expected);
	choir_tensor *added = choir_scale(choir_cast(choir_logical_not(causal), CHOIR_F64), -1e9);
	same(choir_attention(
				 q, k, v, CHOIR_OPTIONS(choir_attention_options, .heads = 2, .mask = added)),
			expected);
	// The second example sees no key, so its results are the means of the values.
	choir_tensor *keys = choir_cast(choir_constant(g.frame, CHOIR_I32, CHOIR_SHAPE(2, 1, 1, 3),
											(const int32_t[]){ 1, 1, 0, 0, 0, 0 }),
			CHOIR_BOOL);
	choir_tensor *y = choir_attention(
			q, k, v, CHOIR_OPTIONS(choir_attention_options, .heads = 2, .mask = keys));
	assert_non_null(y);
	const double mean = (at(v, 12) + at(v, 16) + at(v, 20)) / 3;
	assert_true(fabs(at(y, 12) - mean) < 1e-12);
	assert_null(choir_attention(q, k, v,
			CHOIR_OPTIONS(choir_attention_options, .mask = choir_slice(causal, 0, 0, 2))));
	given_failure(&g, CHOIR_INVALID, "attention:*mask*bool [2, 3]*[2, 1, 3, 3]");
	given_close(&g);
}

static choir_tensor *dropping(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_attention(in[0], in[1], in[2],
			CHOIR_OPTIONS(choir_attention_options, .heads = 2, .dropout = 0.5, .seed = 4));
}

// Dropout keeps some weights, and its gradient is right; queries and keys have other lengths.
TEST(dropout_of_attention)
{
	given g;

	given_open(&g, "cpu:0", 10);
	choir_tensor *const in[] = { given_normal(&g, CHOIR_SHAPE(2, 2, 4)),
		given_normal(&g, CHOIR_SHAPE(2, 3, 4)), given_normal(&g, CHOIR_SHAPE(2, 3, 4)) };
	given_check(&g, 3, in, dropping, NULL);
	choir_tensor *evaluated = dropping(in, NULL); // without a tape nothing is dropped
	same(evaluated,
			choir_attention(
					in[0], in[1], in[2], CHOIR_OPTIONS(choir_attention_options, .heads = 2)));
	given_close(&g);
}
