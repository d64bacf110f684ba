// Elementwise operations against the C library, in f64 and f32, on special numbers and integers.
#include "op/given.h"
#include "test.h"

#include <math.h>

static double sign(double x)
{
	return isnan(x) ? x : (x > 0) - (x < 0);
}

static double negative(double x)
{
	return -x;
}

static double inverse_root(double x)
{
	return 1 / sqrt(x);
}

static double leaky(double x)
{
	return x > 0 ? x : 0.25 * x;
}

static double exponential(double x)
{
	return x > 0 ? x : 2 * expm1(x);
}

static double between(double x)
{
	return isnan(x) ? x : fmin(fmax(x, -0.5), 2);
}

static choir_tensor *leaky_op(choir_tensor *x)
{
	return choir_leaky_relu(x, 0.25);
}

static choir_tensor *elu_op(choir_tensor *x)
{
	return choir_elu(x, 2);
}

static choir_tensor *clip_op(choir_tensor *x)
{
	return choir_clip(x, -0.5, 2);
}

static const struct {
	const char *name;
	choir_unary_op *op;
	double (*expected)(double x);
} unary[] = {
	{ "abs", choir_abs, fabs },
	{ "negate", choir_negate, negative },
	{ "sign", choir_sign, sign },
	{ "floor", choir_floor, floor },
	{ "ceil", choir_ceil, ceil },
	{ "round", choir_round, rint },
	{ "sin", choir_sin, sin },
	{ "cos", choir_cos, cos },
	{ "tan", choir_tan, tan },
	{ "rsqrt", choir_rsqrt, inverse_root },
	{ "log1p", choir_log1p, log1p },
	{ "expm1", choir_expm1, expm1 },
	{ "erf", choir_erf, erf },
	{ "leaky_relu", leaky_op, leaky },
	{ "elu", elu_op, exponential },
	{ "clip", clip_op, between },
};

static const struct {
	const char *name;
	choir_binary_op *op;
	double (*expected)(double a, double b);
} binary[] = {
	{ "minimum", choir_minimum, fmin },
	{ "pow", choir_pow, pow },
	{ "atan2", choir_atan2, atan2 },
};

static const double special[] = { 0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 1e-9, -3.75, 20, 1e10,
	INFINITY, -INFINITY, NAN, 0.3 };
enum { SPECIAL = sizeof special / sizeof special[0] };

static void read(const char *name, choir_tensor *t, double *to)
{
	if (!t)
		fail_msg("%s: %s", name, choir_error());
	choir_tensor *wide = choir_cast(t, CHOIR_F64);
	const int64_t n = choir_shape_elements(&wide->shape);
	assert_int_equal(choir_tensor_to_host(wide, to, (size_t) n * sizeof *to), CHOIR_OK);
}

static void is_near(
		const char *name, double x, double y, double got, double expected, double tolerance)
{
	const bool same = got == expected || (isnan(got) && isnan(expected));
	if (!same && !(fabs(got - expected) <= tolerance * fmax(fabs(expected), 1e-3)))
		fail_msg("%s of %g and %g is %.17g; expected %.17g", name, x, y, got, expected);
}

TEST(one_operand)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(SPECIAL), special);
	choir_tensor *narrow = choir_cast(x, CHOIR_F32);
	for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++) {
		double got[SPECIAL];
		read(unary[i].name, unary[i].op(x), got);
		for (int k = 0; k < SPECIAL; k++)
			is_near(unary[i].name, special[k], 0, got[k], unary[i].expected(special[k]), 1e-15);
		read(unary[i].name, unary[i].op(narrow), got);
		for (int k = 0; k < SPECIAL; k++)
			is_near(unary[i].name, special[k], 0, got[k],
					unary[i].expected((double) (float) special[k]), 3e-7);
	}
	given_close(&g);
}

TEST(two_operands)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(SPECIAL, 1), special);
	choir_tensor *b = choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(SPECIAL), special);
	for (size_t i = 0; i < sizeof binary / sizeof binary[0]; i++) {
		double got[SPECIAL * SPECIAL];
		read(binary[i].name, binary[i].op(a, b), got);
		for (int k = 0; k < SPECIAL * SPECIAL; k++) {
			const double x = special[k / SPECIAL], y = special[k % SPECIAL];
			const bool nan = i == 0 && (isnan(x) || isnan(y)); // fmin passes over a NAN
			is_near(binary[i].name, x, y, got[k], nan ? NAN : binary[i].expected(x, y), 1e-15);
		}
	}
	given_close(&g);
}

TEST(integers)
{
	static const int32_t x[] = { 5, -7, 0, INT32_MIN };
	static const uint8_t small[] = { 0, 200, 255 };
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *i = choir_constant(g.frame, CHOIR_I32, CHOIR_SHAPE(4), x);
	choir_tensor *u = choir_constant(g.frame, CHOIR_U8, CHOIR_SHAPE(3), small);
	given_equal(choir_abs(i), 4, (const double[]){ 5, 7, 0, INT32_MIN });
	given_equal(choir_negate(i), 4, (const double[]){ -5, 7, 0, INT32_MIN });
	given_equal(choir_sign(i), 4, (const double[]){ 1, -1, 0, -1 });
	given_equal(choir_minimum(i, choir_number(g.frame, 0)), 4,
			(const double[]){ 0, -7, 0, INT32_MIN });
	given_equal(choir_clip(i, -2, 3), 4, (const double[]){ 3, -2, 0, -2 });
	given_equal(choir_abs(u), 3, (const double[]){ 0, 200, 255 });
	given_equal(choir_negate(u), 3, (const double[]){ 0, 56, 1 });
	given_equal(choir_sign(u), 3, (const double[]){ 0, 1, 1 });
	assert_null(choir_sin(i));
	given_failure(&g, CHOIR_UNSUPPORTED, "sin:*i32");
	choir_tensor *y = choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(1), 1);
	assert_null(choir_clip(y, 0.5, 2));
	given_failure(&g, CHOIR_INVALID, "0.5*i32");
	y = choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(1), 1);
	assert_null(choir_clip(y, 3, 2));
	given_failure(&g, CHOIR_INVALID, "clip:*3*2*larger");
	given_close(&g);
}

// Where both are equal, the first operand gets the gradient; powers of 0 and of negative numbers
// have finite gradients.
TEST(gradients_at_corners)
{
	given g;
	choir_tensor *dx[2];

	given_open(&g, "cpu:0", 1);
	choir_tensor *in[] = {
		choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(4), (const double[]){ 1, 0, -2, 0 }),
		choir_constant(g.frame, CHOIR_F64, CHOIR_SHAPE(4), (const double[]){ 1, 0, 3, -1 }),
	};
	choir_tape *tape = choir_tape_begin(g.frame);
	assert_int_equal(
			choir_tape_gradient_recorded(tape, choir_minimum(in[0], in[1]), 2, in, dx), CHOIR_OK);
	given_equal(dx[0], 4, (const double[]){ 1, 1, 1, 0 });
	given_equal(dx[1], 4, (const double[]){ 0, 0, 0, 1 });
	assert_int_equal(choir_tape_gradient(tape, choir_pow(in[0], in[1]), 2, in, dx), CHOIR_OK);
	given_equal(dx[0], 4, (const double[]){ 1, 0, 12, -INFINITY });
	given_equal(dx[1], 4, (const double[]){ 0, 0, 0, 0 });
	given_close(&g);
}
