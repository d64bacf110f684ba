// Every gradient against finite differences, in f64, over random shapes.
#include "op/given.h"
#include "test.h"

enum { ROUNDS = 6 };

static choir_tensor *unary(choir_tensor *const in[], void *user)
{
	return (*(choir_unary_op **) user)(in[0]);
}

static choir_tensor *binary(choir_tensor *const in[], void *user)
{
	return (*(choir_binary_op **) user)(in[0], in[1]);
}

TEST(unary_gradients)
{
	choir_unary_op *const ops[] = { choir_square, choir_exp, choir_relu, choir_tanh, choir_sigmoid,
		choir_gelu_tanh, choir_softmax, choir_sqrt, choir_log };
	given g;

	given_open(&g, "cpu:0", 1);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		for (int round = 0; round < ROUNDS; round++) {
			choir_unary_op *op = ops[i];
			const choir_shape shape = given_shape(&g, 1, 4, 4);
			choir_tensor *x = i < 7 ? given_normal(&g, shape) : given_positive(&g, shape);
			given_check(&g, 1, &x, unary, &op);
			choir_frame_clear(g.frame);
		}
	}
	given_close(&g);
}

// Takes some leading axes away and makes others one, so that the shape broadcasts to what it was.
static choir_shape narrower(given *g, const choir_shape *from)
{
	choir_shape shape = { 0 };
	for (int i = (int) given_size(g, 0, from->rank); i < from->rank; i++)
		shape.dim[shape.rank++] = given_size(g, 0, 2) ? from->dim[i] : 1;
	return shape;
}

TEST(binary_gradients)
{
	choir_binary_op *const ops[] = { choir_add, choir_subtract, choir_multiply, choir_divide,
		choir_maximum };
	given g;

	given_open(&g, "cpu:0", 2);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		for (int round = 0; round < 2 * ROUNDS; round++) {
			choir_binary_op *op = ops[i];
			const choir_shape wide = given_shape(&g, 0, 4, 4), narrow = narrower(&g, &wide);
			choir_tensor *a = given_normal(&g, wide), *b = given_positive(&g, narrow);
			choir_tensor *const ab[] = { a, b };
			given_check(&g, 2, ab, binary, &op);
			choir_tensor *const ba[] = { given_normal(&g, narrow), given_positive(&g, wide) };
			given_check(&g, 2, ba, binary, &op);
			choir_frame_clear(g.frame);
		}
	}
	given_close(&g);
}

static choir_tensor *both_are_one(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_add(choir_multiply(in[0], in[0]), choir_divide(in[0], choir_exp(in[0])));
}

TEST(operands_that_are_one_tensor_add_up)
{
	given g;

	given_open(&g, "cpu:0", 3);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(3, 2));
	given_check(&g, 1, &x, both_are_one, NULL);
	given_close(&g);
}

typedef struct {
	choir_axes axes;
	bool mean;
} reduction;

static choir_tensor *reduce(choir_tensor *const in[], void *user)
{
	const reduction *r = user;
	return choir_square(r->mean ? choir_mean(in[0], r->axes) : choir_sum(in[0], r->axes));
}

TEST(reduction_gradients)
{
	given g;

	given_open(&g, "cpu:0", 4);
	for (int round = 0; round < 5 * ROUNDS; round++) {
		const choir_shape shape = given_shape(&g, 0, 4, 4);
		choir_tensor *x = given_normal(&g, shape);
		reduction r = { CHOIR_ALL_AXES, round % 2 };
		if (round % 3 && shape.rank) {
			const int one = (int) given_size(&g, -shape.rank, shape.rank - 1);
			r.axes = CHOIR_AXES(one, (int) given_size(&g, -shape.rank, shape.rank - 1));
		}
		given_check(&g, 1, &x, reduce, &r);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

static choir_tensor *multiply_matrices(choir_tensor *const in[], void *user)
{
	return choir_matmul(in[0], in[1], *(const choir_transposed *) user);
}

TEST(matmul_gradients)
{
	given g;

	given_open(&g, "cpu:0", 5);
	for (int round = 0; round < 8 * ROUNDS; round++) {
		choir_transposed which = (choir_transposed) (round % 3);
		const int64_t m = given_size(&g, 1, 4), k = given_size(&g, 1, 4), n = given_size(&g, 1, 4);
		const int rank = (int) given_size(&g, 2, 4);
		const int64_t mode = given_size(&g, 0, 3); // b, nothing or a is shared; axes repeat
		choir_shape a = { .rank = mode == 2 ? 2 : rank }, b = { .rank = mode == 0 ? 2 : rank };
		for (int i = 0; i < rank - 2; i++)
			a.dim[i] = b.dim[i] = given_size(&g, 1, 3);
		for (int i = 0; mode == 3 && i < rank - 2; i++)
			*(given_size(&g, 0, 1) == 0 ? &a.dim[i] : &b.dim[i]) = 1;
		const bool ta = which == CHOIR_TRANSPOSED_A, tb = which == CHOIR_TRANSPOSED_B;
		a.dim[a.rank - 2] = ta ? k : m;
		a.dim[a.rank - 1] = ta ? m : k;
		b.dim[b.rank - 2] = tb ? n : k;
		b.dim[b.rank - 1] = tb ? k : n;
		choir_tensor *const in[] = { given_normal(&g, a), given_normal(&g, b) };
		given_check(&g, 2, in, multiply_matrices, &which);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

static choir_tensor *dense(choir_tensor *const in[], void *user)
{
	return chi_dense(in[0], in[1], in[2], *(const choir_activation *) user);
}

static choir_tensor *biased(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_bias_add(choir_matmul(in[0], in[1], CHOIR_TRANSPOSED_NONE), in[2]);
}

TEST(dense_gradients)
{
	given g;

	given_open(&g, "cpu:0", 6);
	for (int round = 0; round < 4 * ROUNDS; round++) {
		choir_activation activation = (choir_activation) (round % 4);
		const int64_t m = given_size(&g, 1, 5), k = given_size(&g, 1, 5), n = given_size(&g, 1, 5);
		choir_tensor *const in[] = { given_normal(&g, CHOIR_SHAPE(m, k)),
			given_normal(&g, CHOIR_SHAPE(k, n)), given_normal(&g, CHOIR_SHAPE(n)) };
		given_check(&g, 3, in, dense, &activation);
		given_check(&g, 3, in, biased, NULL);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

typedef struct {
	int size, stride, padding, dilation;
	int64_t groups;
	bool average;
	choir_activation activation;
} windows;

static choir_tensor *convolve(choir_tensor *const in[], void *user)
{
	const windows *w = user;
	const choir_conv_options o = { .stride = w->stride,
		.padding = w->padding,
		.dilation = w->dilation,
		.groups = w->groups,
		.activation = w->activation };
	return chi_conv2d(in[0], in[1], in[2], &o);
}

static choir_tensor *convolve_plainly(choir_tensor *const in[], void *user)
{
	const windows *w = user;
	if (w->groups > 1)
		return choir_square(in[0]); // not without options
	return choir_conv2d(in[0], in[1],
			CHOIR_OPTIONS(choir_conv_options, .stride = w->stride, .padding = w->padding,
					.activation = w->activation));
}

// With more zeros on one side than on the other; and a row alone, as a sequence.
static choir_tensor *convolve_images(choir_tensor *const in[], void *user)
{
	const windows *w = user;
	choir_conv_options o = { .size = sizeof o,
		.stride = w->stride,
		.dilation = w->dilation,
		.groups = w->groups,
		.pad_before = { 2, 1 },
		.pad_after = { 0, 3 } };
	choir_tensor *y = choir_conv2d(in[0], in[1], &o);
	o.pad_before[1] = o.pad_after[1] = 0;
	choir_tensor *row = choir_reshape(choir_slice(choir_slice(in[0], 0, 0, 1), 1, 1, 1),
			CHOIR_SHAPE(1, in[0]->shape.dim[2], in[0]->shape.dim[3]));
	const choir_shape *k = &in[1]->shape;
	choir_tensor *z = choir_conv1d(row,
			choir_reshape(
					choir_slice(in[1], 0, 0, 1), CHOIR_SHAPE(k->dim[1], k->dim[2], k->dim[3])),
			&o);
	return choir_add(choir_sum(choir_square(y), CHOIR_ALL_AXES),
			choir_sum(choir_square(z), CHOIR_ALL_AXES));
}

TEST(convolution_gradients)
{
	given g;

	given_open(&g, "cpu:0", 7);
	for (int round = 0; round < 4 * ROUNDS; round++) {
		windows w = { .stride = (int) given_size(&g, 1, 3),
			.padding = (int) given_size(&g, -1, 2),
			.dilation = (int) given_size(&g, 1, 2),
			.groups = given_size(&g, 1, 2),
			.activation = (choir_activation) (round % (CHOIR_SILU + 1)) };
		const int64_t c = given_size(&g, 1, 2), out = w.groups * given_size(&g, 1, 2);
		const int64_t kh = given_size(&g, 1, 2), kw = given_size(&g, 1, 2);
		const choir_shape x = CHOIR_SHAPE(
				given_size(&g, 1, 2), given_size(&g, 3, 6), given_size(&g, 3, 6), c * w.groups);
		choir_tensor *const in[] = { given_normal(&g, x),
			given_normal(&g, CHOIR_SHAPE(kh, kw, c, out)), given_normal(&g, CHOIR_SHAPE(out)) };
		given_check(&g, 3, in, convolve, &w);
		given_check(&g, 2, in, convolve_plainly, &w);
		given_check(&g, 2, in, convolve_images, &w);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

static choir_tensor *pool(choir_tensor *const in[], void *user)
{
	const windows *w = user;
	return w->average ? choir_average_pool2d(in[0], w->size, w->stride, w->padding)
					  : choir_max_pool2d(in[0], w->size, w->stride, w->padding);
}

TEST(pool_gradients)
{
	given g;

	given_open(&g, "cpu:0", 8);
	for (int round = 0; round < 4 * ROUNDS; round++) {
		windows w = { .size = (int) given_size(&g, 1, 3),
			.stride = (int) given_size(&g, 1, 3),
			.average = round % 2 };
		w.padding = (int) given_size(&g, -1, w.size - 1);
		const choir_shape x = CHOIR_SHAPE(given_size(&g, 1, 2), given_size(&g, 3, 6),
				given_size(&g, 3, 6), given_size(&g, 1, 3));
		choir_tensor *in = given_normal(&g, x);
		given_check(&g, 1, &in, pool, &w);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

static choir_tensor *cross_entropy(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_sparse_softmax_cross_entropy(in[1], in[0]);
}

static choir_tensor *squared_error(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_mean_squared_error(in[1], in[0]);
}

TEST(loss_gradients)
{
	given g;

	given_open(&g, "cpu:0", 9);
	for (int round = 0; round < 3 * ROUNDS; round++) {
		const int64_t n = given_size(&g, 1, 5), classes = given_size(&g, 1, 6);
		choir_tensor *logits = given_normal(&g, CHOIR_SHAPE(n, classes));
		choir_tensor *const labelled[] = { logits, given_labels(&g, n, classes) };
		given_check(&g, 2, labelled, cross_entropy, NULL);
		const choir_shape shape = given_shape(&g, 1, 4, 4);
		choir_tensor *const targets[] = { given_normal(&g, shape), given_normal(&g, shape) };
		given_check(&g, 2, targets, squared_error, NULL);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

static choir_tensor *seen_otherwise(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *flat = choir_reshape(choir_exp(in[0]), CHOIR_SHAPE(2, CHOIR_UNKNOWN));
	choir_tensor *sum = choir_add(choir_with_count(flat, 3), choir_scale(flat, -2.5));
	return choir_multiply(choir_cast(sum, CHOIR_F64),
			choir_stop_gradient(
					choir_fill(choir_tensor_frame(sum), CHOIR_F64, CHOIR_SHAPE(1), 3)));
}

static choir_tensor *with_dropout(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_dropout(choir_tanh(choir_dropout(in[0], 0.5, 1)), 0.25, 1);
}

static choir_tensor *with_numbers(choir_tensor *const in[], void *user)
{
	choir_frame *f = choir_tensor_frame(in[0]);
	(void) user;
	return choir_divide(choir_number(f, 3), choir_add(choir_square(in[0]), choir_number(f, 0.5)));
}

TEST(other_gradients)
{
	given g;

	given_open(&g, "cpu:0", 10);
	for (int round = 0; round < ROUNDS; round++) {
		choir_tensor *x =
				given_normal(&g, CHOIR_SHAPE(given_size(&g, 1, 4), 2, given_size(&g, 1, 3)));
		given_check(&g, 1, &x, seen_otherwise, NULL);
		given_check(&g, 1, &x, with_dropout, NULL);
		given_check(&g, 1, &x, with_numbers, NULL);
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}
