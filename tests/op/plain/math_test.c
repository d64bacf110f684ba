// How exact exp, tanh and sigmoid are in f32: steps over all of f32, against the C library in f64.
#include "op/plain/half.h"
#include "op/plain/loops.h"
#include "test.h"

#include <math.h>

enum { BLOCK = 1024, STEP = 4999 }; // a prime, so that all mantissas come up

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

// |got - expected| in units of the last place of expected as f32, denormals included.
static double error_in_ulps(float got, double expected)
{
	const float rounded = (float) expected;
	if (got == rounded || (isnan(got) && isnan(rounded)))
		return 0;
	if (isinf(got) || isinf(rounded) || isnan(got) || isnan(rounded))
		return INFINITY;
	const double ulp = fmax(expected == 0 ? 0 : ldexp(1, ilogb(expected) - 23), 0x1p-149);
	return fabs((double) got - expected) / ulp;
}

static double worst_error(chi_unary op, double (*exact)(double), float *at)
{
	const chi_real_loops *loops = chi_loops_best()->real[CHOIR_F32];
	double worst = 0;
	uint64_t bits = 0;
	while (bits < 0x100000000u) {
		float x[BLOCK], y[BLOCK];
		for (int i = 0; i < BLOCK; i++, bits += STEP)
			x[i] = chi_float_of_bits((uint32_t) bits);
		loops->unary(op, y, x, BLOCK);
		for (int i = 0; i < BLOCK; i++) {
			const double expected = exact((double) x[i]);
			const double error = error_in_ulps(y[i], expected);
			if (!(error <= worst)) {
				worst = error;
				*at = x[i];
			}
		}
	}
	return worst;
}

static void assert_within(const char *what, chi_unary op, double (*exact)(double), double max)
{
	float at = 0;
	const double worst = worst_error(op, exact, &at);
	print_message("%s: at most %.3f units in the last place (at %a)\n", what, worst, (double) at);
	if (!(worst <= max))
		fail_msg("%s: %.3f units in the last place at %a, allowed %.3f", what, worst, (double) at,
				max);
}

TEST(functions_are_exact_to_the_last_places)
{
	assert_within("exp", CHI_EXP, exp, 1.5);
	assert_within("tanh", CHI_TANH, tanh, 2);
	assert_within("sigmoid", CHI_SIGMOID, sigmoid, 3);
}

static float value(chi_unary op, float x)
{
	float y;
	chi_loops_best()->real[CHOIR_F32]->unary(op, &y, &x, 1);
	return y;
}

TEST(the_ends_are_right)
{
	assert_true(value(CHI_EXP, 0) == 1);
	assert_true(value(CHI_EXP, 88.8f) == INFINITY && value(CHI_EXP, INFINITY) == INFINITY);
	assert_true(value(CHI_EXP, -INFINITY) == 0 && value(CHI_EXP, -1000) == 0);
	assert_true(value(CHI_TANH, INFINITY) == 1 && value(CHI_TANH, -INFINITY) == -1);
	assert_true(value(CHI_TANH, 0) == 0 && signbit(value(CHI_TANH, -0.0f)));
	assert_true(value(CHI_SIGMOID, 0) == 0.5f);
	assert_true(value(CHI_SIGMOID, INFINITY) == 1 && value(CHI_SIGMOID, -INFINITY) == 0);
	assert_true(value(CHI_GELU_TANH, 100) == 100 && value(CHI_GELU_TANH, -100) == 0);
	assert_true(value(CHI_GELU, 100) == 100 && value(CHI_GELU, -100) == 0);
	for (chi_unary op = CHI_SQUARE; op <= CHI_SOFTPLUS; op++)
		assert_true(isnan(value(op, NAN)));
}
