// Gradients of gradients. Every differentiable operation is checked to second order: the gradients
// from a recorded pass, joined to one vector, are themselves checked against finite differences.
#include "op/given.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { MOST_INPUTS = 6 };

typedef struct {
	const char *name;
	choir_formula_fn *fn;
	choir_unary_op *unary;
	choir_binary_op *binary;
	bool positive; // inputs of at least 0.5
	size_t n;
	choir_shape shape[MOST_INPUTS];
} row;

static choir_tensor *apply(const row *r, choir_tensor *const in[])
{
	if (r->unary)
		return r->unary(in[0]);
	return r->binary ? r->binary(in[0], in[1]) : r->fn(in, NULL);
}

// The sum of y's elements times 1, 0.54, -0.42, ..: no two weights are equal.
static choir_tensor *weighted(choir_tensor *y)
{
	choir_tensor *w = choir_cos(
			choir_cast(chi_count_up(y->frame, choir_shape_elements(&y->shape)), CHOIR_F64));
	return choir_sum(
			choir_multiply(choir_reshape(y, CHOIR_SHAPE(CHOIR_UNKNOWN)), w), CHOIR_ALL_AXES);
}

static choir_tensor *gradients_of(choir_tensor *y, size_t n, choir_tensor *const in[])
{
	choir_tensor *dx[MOST_INPUTS];
	choir_frame *f = in[0]->frame;
	if (!y || choir_tape_gradient_recorded(f->tape, weighted(y), n, in, dx) != CHOIR_OK)
		return NULL;
	for (size_t i = 0; i < n; i++)
		dx[i] = choir_reshape(dx[i], CHOIR_SHAPE(CHOIR_UNKNOWN));
	return choir_concat(n, dx, 0);
}

static choir_tensor *first_order(choir_tensor *const in[], void *user)
{
	const row *r = user;
	return gradients_of(apply(r, in), r->n, in);
}

static choir_tensor *second_order(choir_tensor *const in[], void *user)
{
	const row *r = user;
	return gradients_of(first_order(in, user), r->n, in);
}

static choir_tensor *power(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_pow(in[0], in[1]);
}

static choir_tensor *clip(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_clip(in[0], -0.5, 0.75));
}

static choir_tensor *choose(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_where(
			choir_less(in[0], in[1]), choir_square(in[0]), choir_multiply(in[1], in[0]));
}

static choir_tensor *leaky(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_leaky_relu(choir_square(choir_sin(in[0])), 0.1);
}

static choir_tensor *elu(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_elu(in[0], 1.5);
}

static choir_tensor *sums(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *sum = choir_sum(choir_square(in[0]), CHOIR_AXIS(1));
	return choir_multiply(sum, choir_mean(in[0], CHOIR_AXIS(1)));
}

static choir_tensor *extremes(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *x = choir_multiply(in[0], in[0]);
	return choir_multiply(choir_max(x, CHOIR_AXIS(1)), choir_min(x, CHOIR_AXIS(1)));
}

static choir_tensor *prod(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_prod(in[0], CHOIR_AXIS(-1));
}

static choir_tensor *running(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_cumsum(in[0], 0,
			CHOIR_OPTIONS(choir_cumsum_options, .exclusive = CHOIR_ON, .reverse = CHOIR_ON)));
}

static choir_tensor *largest(choir_tensor *const in[], void *user)
{
	choir_tensor *values;
	(void) user;
	return choir_top_k(choir_multiply(in[0], in[0]), 2, &values, NULL) == CHOIR_OK ? values : NULL;
}

static choir_tensor *moved(choir_tensor *const in[], void *user)
{
	choir_tensor *parts[2];
	(void) user;
	if (choir_split(choir_square(in[0]), 1, 2, parts) != CHOIR_OK)
		return NULL;
	choir_tensor *const both[] = { parts[1], choir_multiply(parts[0], in[1]) };
	choir_tensor *joined = choir_concat(2, both, 0);
	return choir_transpose(choir_slice(joined, 0, 1, 3), NULL);
}

static choir_tensor *arranged(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *x = choir_flip(choir_square(in[0]), 1);
	choir_tensor *const both[] = { x, choir_multiply(x, in[0]) };
	choir_tensor *stacked = choir_stack(2, both, -1);
	choir_tensor *padded = choir_pad(stacked, (const int64_t[]){ 1, 0, 0 },
			(const int64_t[]){ 0, 2, 0 }, CHOIR_OPTIONS(choir_pad_options, .value = 2));
	padded = choir_pad(padded, (const int64_t[]){ 0, 2, 0 }, (const int64_t[]){ 0, 1, 1 },
			CHOIR_OPTIONS(choir_pad_options, .mode = CHOIR_PAD_REFLECT));
	return choir_square(choir_tile(padded, (const int64_t[]){ 1, 2, 2 }));
}

static choir_tensor *rows_of_table(choir_tensor *const in[], void *user)
{
	static const int32_t index[] = { 2, 0, 2 };
	(void) user;
	choir_tensor *at = choir_constant(in[0]->frame, CHOIR_I32, CHOIR_SHAPE(3), index);
	return choir_square(choir_gather(in[0], at));
}

static choir_tensor *products(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *y = choir_matmul(in[0], in[1], CHOIR_TRANSPOSED_NONE);
	y = choir_matmul(y, in[1], CHOIR_TRANSPOSED_B);
	return choir_matmul(in[0], y, CHOIR_TRANSPOSED_A);
}

static choir_tensor *contracted(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_einsum("bij,jkb->ikb", in[0], in[1]);
}

static choir_tensor *dense(choir_tensor *const in[], void *user)
{
	(void) user;
	return chi_dense(in[0], in[1], in[2], CHOIR_TANH);
}

static choir_tensor *biased(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_bias_add(in[0], in[1]));
}

static choir_tensor *convolved(choir_tensor *const in[], void *user)
{
	static const choir_conv_options o = {
		.stride = 2, .padding = 1, .dilation = 1, .groups = 2, .activation = CHOIR_SIGMOID
	};
	(void) user;
	return chi_conv2d(in[0], in[1], in[2], &o);
}

static choir_tensor *max_pooled(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_max_pool2d(choir_square(in[0]), 3, 1, 1));
}

static choir_tensor *average_pooled(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_average_pool2d(choir_square(in[0]), 2, 2, 0));
}

static choir_tensor *layer_normed(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_layer_norm(in[0], in[1], in[2], 0.01);
}

static choir_tensor *rms_normed(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_rms_norm(in[0], in[1], 0.01);
}

static choir_tensor *batch_normed(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_batch_norm(in[0], in[1], in[2], NULL);
}

static choir_tensor *attended(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_attention(
			in[0], in[1], in[2], CHOIR_OPTIONS(choir_attention_options, .heads = 2));
}

static choir_tensor *attended_to_itself(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_self_attention(
			in[0], CHOIR_OPTIONS(choir_attention_options, .heads = 2, .causal = CHOIR_ON));
}

static choir_tensor *transposed(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(
			choir_conv2d_transpose(in[0], in[1], CHOIR_OPTIONS(choir_conv_options, .stride = 2)));
}

static choir_tensor *volumes(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *y = choir_conv3d(in[0], in[1], CHOIR_OPTIONS(choir_conv_options, .stride = 2));
	y = choir_conv3d_transpose(y, in[1], NULL);
	return choir_square(choir_upsample(choir_max_pool3d(y, 1, 1, 0), 2, CHOIR_BILINEAR));
}

static choir_tensor *sequences(choir_tensor *const in[], void *user)
{
	const choir_conv_options o = { .size = sizeof o, .dilation = 2, .pad_before = { 2 } };
	(void) user;
	choir_tensor *y = choir_square(choir_conv1d(in[0], in[1], &o));
	y = choir_add(choir_max_pool1d(y, 2, 1, 0), choir_average_pool1d(y, 2, 1, 0));
	return choir_square(choir_conv1d_transpose(y, in[1], &o));
}

static choir_tensor *global_pools(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *x = choir_upsample(choir_square(in[0]), 2, CHOIR_NEAREST);
	x = choir_average_pool3d(x, 2, 1, 0);
	return choir_multiply(choir_global_max_pool(x), choir_global_average_pool(x));
}

static choir_tensor *masked(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_attention(in[0], in[1], in[1],
			CHOIR_OPTIONS(choir_attention_options, .mask = in[2], .dropout = 0.3, .seed = 5));
}

static choir_tensor *combined(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_combine_rows(in[0], choir_square(in[1]), CHOIR_COMBINER_SQRTN);
}

static choir_tensor *losses(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *y = choir_sigmoid(in[0]), *z = choir_sigmoid(in[1]);
	choir_tensor *sum = choir_add(choir_mean_squared_error(y, z), choir_kl_divergence(y, z));
	sum = choir_add(sum, choir_sigmoid_cross_entropy(y, in[1]));
	return choir_square(choir_add(sum, choir_hinge(y, z)));
}

static choir_tensor *grouped(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_group_norm(in[0], in[1], in[2], 2, 0.01);
}

static choir_tensor *lstm(choir_tensor *const in[], void *user)
{
	choir_tensor **none = user, *cell;
	choir_recurrent_options o = { sizeof o, in[4], in[5], &cell, NULL };
	choir_tensor *y = choir_lstm(in[0], in[1], in[2], in[3], &o);
	o.last_cell = none;
	return choir_multiply(choir_add(y, choir_lstm(in[0], in[1], in[2], in[3], &o)), cell);
}

static choir_tensor *gru(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_gru(in[0], in[1], in[2], in[3], in[4], in[5]);
}

static choir_tensor *cross_entropy(choir_tensor *const in[], void *user)
{
	static const int32_t labels[] = { 2, 0 };
	(void) user;
	choir_tensor *l = choir_constant(in[0]->frame, CHOIR_I32, CHOIR_SHAPE(2), labels);
	return choir_square(choir_sparse_softmax_cross_entropy_smoothed(l, in[0], 0.1));
}

static choir_tensor *huber(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_huber(in[0], in[1], 0.7));
}

static choir_tensor *dropped(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_dropout(choir_square(in[0]), 0.4, 3));
}

static choir_tensor *squares(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_exp(choir_multiply(in[0], choir_tanh(in[0])));
}

static choir_tensor *recomputed(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_square(choir_recompute(1, in, squares, NULL));
}

static choir_tensor *viewed(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *x = choir_with_count(choir_square(in[0]), 3);
	choir_tensor *wide = choir_broadcast_to(x, CHOIR_SHAPE(2, 3, 4));
	return choir_square(choir_cast(choir_cast(wide, CHOIR_F64), CHOIR_F64));
}

#define SHAPE(...) \
	{ \
		sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
		{ \
			__VA_ARGS__ \
		} \
	}
#define UNARY(function, is_positive) \
	{ \
#function, NULL, choir_##function, NULL, is_positive, 1, \
		{ \
			SHAPE(3, 4) \
		} \
	}
#define BINARY(function) \
	{ \
#function, NULL, NULL, choir_##function, true, 2, \
		{ \
			SHAPE(3, 1), SHAPE(2, 1, 4) \
		} \
	}
#define FORMULA(function, count, ...) \
	{ \
#function, function, NULL, NULL, false, count, \
		{ \
			__VA_ARGS__ \
		} \
	}

static row rows[] = {
	UNARY(square, false),
	UNARY(sqrt, true),
	UNARY(rsqrt, true),
	UNARY(exp, false),
	UNARY(expm1, false),
	UNARY(log, true),
	UNARY(log1p, true),
	UNARY(abs, false),
	UNARY(negate, false),
	UNARY(sign, false),
	UNARY(floor, false),
	UNARY(ceil, false),
	UNARY(round, false),
	UNARY(sin, false),
	UNARY(cos, false),
	UNARY(tan, false),
	UNARY(erf, false),
	UNARY(relu, false),
	UNARY(tanh, false),
	UNARY(sigmoid, false),
	UNARY(gelu, false),
	UNARY(gelu_tanh, false),
	UNARY(silu, false),
	UNARY(softplus, false),
	UNARY(softmax, false),
	UNARY(log_softmax, false),
	BINARY(add),
	BINARY(subtract),
	BINARY(multiply),
	BINARY(divide),
	BINARY(maximum),
	BINARY(minimum),
	BINARY(atan2),
	{ "pow", power, NULL, NULL, true, 2, { SHAPE(2, 1), SHAPE(3) } },
	FORMULA(clip, 1, SHAPE(7)),
	FORMULA(choose, 2, SHAPE(3, 1), SHAPE(4)),
	FORMULA(leaky, 1, SHAPE(5)),
	FORMULA(elu, 1, SHAPE(9)),
	FORMULA(sums, 1, SHAPE(2, 3, 2)),
	FORMULA(extremes, 1, SHAPE(3, 4)),
	FORMULA(prod, 1, SHAPE(2, 5)),
	FORMULA(running, 1, SHAPE(4, 2)),
	FORMULA(largest, 1, SHAPE(3, 4)),
	FORMULA(moved, 2, SHAPE(2, 4), SHAPE(2, 2)),
	FORMULA(arranged, 1, SHAPE(2, 3)),
	FORMULA(rows_of_table, 1, SHAPE(3, 2)),
	FORMULA(products, 2, SHAPE(2, 3, 2), SHAPE(2, 2)),
	FORMULA(contracted, 2, SHAPE(2, 2, 3), SHAPE(3, 2, 2)),
	FORMULA(dense, 3, SHAPE(3, 2), SHAPE(2, 4), SHAPE(4)),
	FORMULA(biased, 2, SHAPE(3, 2), SHAPE(2)),
	FORMULA(convolved, 3, SHAPE(1, 4, 3, 2), SHAPE(3, 2, 1, 4), SHAPE(4)),
	FORMULA(transposed, 2, SHAPE(1, 2, 2, 2), SHAPE(2, 3, 2, 2)),
	FORMULA(volumes, 2, SHAPE(1, 3, 2, 2, 1), SHAPE(2, 2, 2, 1, 2)),
	FORMULA(sequences, 2, SHAPE(1, 4, 2), SHAPE(2, 2, 2)),
	FORMULA(global_pools, 1, SHAPE(1, 2, 1, 2, 2)),
	FORMULA(masked, 3, SHAPE(1, 2, 3), SHAPE(1, 3, 3), SHAPE(2, 3)),
	FORMULA(combined, 2, SHAPE(2, 3, 2), SHAPE(2, 3)),
	FORMULA(losses, 2, SHAPE(2, 3), SHAPE(2, 3)),
	FORMULA(grouped, 3, SHAPE(1, 3, 4), SHAPE(4), SHAPE(4)),
	FORMULA(max_pooled, 1, SHAPE(1, 3, 4, 2)),
	FORMULA(average_pooled, 1, SHAPE(1, 4, 5, 2)),
	FORMULA(layer_normed, 3, SHAPE(2, 4), SHAPE(4), SHAPE(4)),
	FORMULA(rms_normed, 2, SHAPE(2, 4), SHAPE(4)),
	FORMULA(batch_normed, 3, SHAPE(4, 2), SHAPE(2), SHAPE(2)),
	FORMULA(attended, 3, SHAPE(1, 2, 4), SHAPE(1, 3, 4), SHAPE(1, 3, 4)),
	FORMULA(attended_to_itself, 1, SHAPE(2, 2, 12)),
	FORMULA(lstm, 6, SHAPE(1, 2, 2), SHAPE(2, 8), SHAPE(2, 8), SHAPE(8), SHAPE(1, 2), SHAPE(1, 2)),
	FORMULA(gru, 6, SHAPE(1, 2, 2), SHAPE(2, 6), SHAPE(2, 6), SHAPE(6), SHAPE(6), SHAPE(1, 2)),
	FORMULA(cross_entropy, 1, SHAPE(2, 3)),
	FORMULA(huber, 2, SHAPE(2, 3), SHAPE(2, 3)),
	FORMULA(dropped, 1, SHAPE(8)),
	FORMULA(recomputed, 1, SHAPE(3)),
	FORMULA(viewed, 1, SHAPE(3, 1)),
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void check_row(given *g, row *r, choir_formula_fn *fn, double tolerance)
{
	choir_tensor *in[MOST_INPUTS];

	for (size_t i = 0; i < r->n; i++)
		in[i] = r->positive ? given_positive(g, r->shape[i]) : given_normal(g, r->shape[i]);
	if (choir_check_gradient(r->n, in, tolerance, fn, r) != CHOIR_OK)
		fail_msg("%s: %s", r->name, choir_error());
	choir_frame_clear(g->frame);
}

TEST(every_operation_has_second_derivatives)
{
	given g;

	given_open(&g, "cpu:0", 31);
	for (size_t i = 0; i < ROWS; i++)
		check_row(&g, &rows[i], first_order, 1e-5);
	given_close(&g);
}

TEST(some_operations_have_third_derivatives)
{
	static const char *const names[] = { "tanh", "divide", "dense", "convolved", "layer_normed",
		"recomputed" };
	given g;

	given_open(&g, "cpu:0", 32);
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		for (size_t i = 0; i < ROWS; i++)
			if (strcmp(rows[i].name, names[k]) == 0)
				check_row(&g, &rows[i], second_order, 1e-4);
	given_close(&g);
}

// The recorded gradient is the ordinary one up to rounding, for every row.
TEST(first_derivatives_agree)
{
	given g;

	given_open(&g, "cpu:0", 33);
	for (size_t i = 0; i < ROWS; i++) {
		choir_tensor *in[MOST_INPUTS], *recorded[MOST_INPUTS], *plain[MOST_INPUTS];
		const row *r = &rows[i];
		for (size_t k = 0; k < r->n; k++)
			in[k] = r->positive ? given_positive(&g, r->shape[k]) : given_normal(&g, r->shape[k]);
		choir_tape *tape = choir_tape_begin(g.frame);
		choir_tensor *y = weighted(apply(r, in));
		assert_int_equal(choir_tape_gradient_recorded(tape, y, r->n, in, recorded), CHOIR_OK);
		assert_int_equal(choir_tape_gradient(tape, y, r->n, in, plain), CHOIR_OK);
		for (size_t k = 0; k < r->n; k++) {
			double a[256], b[256];
			const size_t n = (size_t) choir_shape_elements(&plain[k]->shape);
			assert_int_equal(choir_tensor_to_host(recorded[k], a, n * sizeof *a), CHOIR_OK);
			assert_int_equal(choir_tensor_to_host(plain[k], b, n * sizeof *b), CHOIR_OK);
			for (size_t j = 0; j < n; j++)
				if (!(fabs(a[j] - b[j]) <= 1e-9 * (1 + fabs(b[j]))))
					fail_msg("%s: input %zu, element %zu: %.17g recorded, %.17g otherwise",
							r->name, k, j, a[j], b[j]);
		}
		choir_frame_clear(g.frame);
	}
	given_close(&g);
}

// y = (x0^2 x1, sin(x1)) has the Jacobian [[2 x0 x1, x0^2], [0, cos(x1)]].
TEST(jacobian_and_hessian_vector_product)
{
	given g;

	given_open(&g, "cpu:0", 34);
	choir_tensor *x = choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(2), (const double[]){ 3, 2 });
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *x0 = choir_slice(x, 0, 0, 1), *x1 = choir_slice(x, 0, 1, 1);
	choir_tensor *const parts[] = { choir_multiply(choir_square(x0), x1), choir_sin(x1) };
	choir_tensor *y = choir_concat(2, parts, 0), *j = choir_jacobian(tape, y, x);
	assert_non_null(j);
	given_equal(j, 4, (const double[]){ 12, 9, 0, cos(2) });
	choir_tensor *hessian = choir_jacobian(tape, j, x); // [2, 2, 2]
	assert_non_null(hessian);
	given_equal(hessian, 8, (const double[]){ 4, 6, 6, 0, 0, 0, 0, -sin(2) });

	choir_tensor *v = choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(2), (const double[]){ 1, 5 });
	choir_tensor *hv = NULL, *last = NULL;
	assert_int_equal(choir_hessian_vector_product(tape, y, 1, &x, &v, &hv), CHOIR_OK);
	given_equal(hv, 2, (const double[]){ 4 + 6 * 5, 6 - 5 * sin(2) });
	assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &last), CHOIR_OK);
	given_equal(last, 2, (const double[]){ 12, 9 + cos(2) });
	assert_int_equal(choir_tape_gradient_recorded(tape, y, 1, &x, &last), CHOIR_STATE);
	given_failure(&g, CHOIR_STATE, "gradient:*already");
	given_close(&g);
}

static choir_status copy(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) n;
	(void) user;
	memcpy(out->data, in[0].data, (size_t) choir_shape_elements(&in[0].shape) * sizeof(double));
	return CHOIR_OK;
}

static choir_status copy_back(size_t n, const choir_buffer in[], const choir_buffer *out,
		const choir_buffer *dy, choir_buffer dx[], void *user)
{
	(void) out;
	(void) in;
	return copy(n, dy, &dx[0], user);
}

TEST(an_operation_without_a_second_gradient_is_named)
{
	static const choir_custom_op op = {
		.size = sizeof op, .name = "my_copy", .forward = copy, .backward = copy_back
	};
	given g;

	given_open(&g, "cpu:0", 35);
	choir_tensor *x = given_normal(&g, CHOIR_SHAPE(2)), *dx = x;
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *y = choir_custom_op_apply(&op, NULL, 1, &x);
	assert_int_equal(choir_tape_gradient_recorded(tape, y, 1, &x, &dx), CHOIR_UNSUPPORTED);
	assert_null(dx);
	given_failure(&g, CHOIR_UNSUPPORTED, "gradient:*my_copy");
	given_close(&g);
}

// A source that y does not depend on has zeros, which have a gradient of zeros again.
TEST(unconnected_sources)
{
	given g;

	given_open(&g, "cpu:0", 36);
	choir_tensor *in[] = { given_normal(&g, CHOIR_SHAPE(2)), given_normal(&g, CHOIR_SHAPE(3)) };
	choir_tensor *first[2], *second[2];
	choir_tape *tape = choir_tape_begin(g.frame);
	choir_tensor *y = choir_scale(in[0], 3);
	assert_int_equal(choir_tape_gradient_recorded(tape, y, 2, in, first), CHOIR_OK);
	given_equal(first[0], 2, (const double[]){ 3, 3 });
	given_equal(first[1], 3, (const double[]){ 0, 0, 0 });
	assert_int_equal(choir_tape_gradient_recorded(tape, first[0], 2, in, second), CHOIR_OK);
	given_equal(second[0], 2, (const double[]){ 0, 0 });
	given_close(&g);
}
