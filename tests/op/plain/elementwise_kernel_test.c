// Plain elementwise kernels against the same formula in f64 (or 64-bit integers), over random
// shapes that broadcast; fill, broadcast, casts, updates and random numbers.
#include "base/philox.h"
#include "op/kernel_calls.h"
#include "op/plain/half.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <string.h>

static const choir_dtype arithmetic[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8 };
static const choir_dtype real[] = { CHOIR_F32, CHOIR_F64 };

static double epsilon_of(choir_dtype dtype)
{
	return dtype == CHOIR_F32 ? 0x1p-23 : dtype == CHOIR_F64 ? 0x1p-52 : 0;
}

// A shape that broadcasts to out: leading dimensions may be missing, others may be 1.
static choir_shape narrower(const choir_shape *out, uint64_t *seed)
{
	const int missing = (int) kernels_integer(seed, 0, out->rank);
	choir_shape s = { .rank = out->rank - missing };
	for (int i = 0; i < s.rank; i++)
		s.dim[i] = kernels_integer(seed, 0, 2) == 0 ? 1 : out->dim[i + missing];
	return s;
}

static choir_shape random_shape(uint64_t *seed)
{
	choir_shape s = { .rank = (int) kernels_integer(seed, 0, 5) };
	for (int i = 0; i < s.rank; i++)
		s.dim[i] = kernels_integer(seed, 1, kernels_integer(seed, 1, 2) == 1 ? 3 : 37);
	while (choir_shape_elements(&s) > 20000)
		s.rank--;
	return s;
}

// The element of an operand under element i of out.
static int64_t under(const choir_shape *out, const choir_shape *operand, int64_t i)
{
	int64_t at = 0, stride = 1;
	for (int d = out->rank - 1; d >= 0; d--) {
		const int own = d - (out->rank - operand->rank);
		const int64_t index = i % out->dim[d];
		i /= out->dim[d];
		if (own >= 0) {
			at += operand->dim[own] == 1 ? 0 : index * stride;
			stride *= operand->dim[own];
		}
	}
	return at;
}

static double binary_value(const char *op, choir_dtype dtype, double a, double b)
{
	if (!strcmp(op, "add"))
		return a + b;
	if (!strcmp(op, "subtract"))
		return a - b;
	if (!strcmp(op, "multiply"))
		return a * b;
	if (!strcmp(op, "maximum"))
		return a >= b ? a : b;
	return dtype <= CHOIR_F64 ? a / b : b == 0 ? 0 : trunc(a / b);
}

static void try_binary(const char *op, choir_dtype dtype, uint64_t *seed)
{
	const choir_shape shape = random_shape(seed);
	const bool a_whole = kernels_integer(seed, 0, 1);
	choir_buffer in[2] = { kernels_buffer(dtype, a_whole ? shape : narrower(&shape, seed)),
		kernels_buffer(dtype, a_whole ? narrower(&shape, seed) : shape) };
	choir_buffer out = kernels_buffer(dtype, shape);
	const double low = dtype == CHOIR_U8 ? 0 : -12, high = dtype == CHOIR_U8 ? 15 : 12;
	kernels_fill(&in[0], seed, low, high);
	kernels_fill(&in[1], seed, low, high);
	kernels_plain(op, 2, in, &out, NULL);
	for (int64_t i = 0; i < choir_shape_elements(&shape); i++) {
		const double a = kernels_get(&in[0], under(&shape, &in[0].shape, i));
		const double b = kernels_get(&in[1], under(&shape, &in[1].shape, i));
		double expected = binary_value(op, dtype, a, b);
		if (dtype == CHOIR_U8)
			expected = (double) ((unsigned) (int) expected & 255u);
		kernels_assert_near(op, &out, i, expected, fabs(expected) * epsilon_of(dtype));
	}
	kernels_free(2, in);
	kernels_free(1, &out);
}

TEST(binary_operations_broadcast)
{
	static const char *const ops[] = { "add", "subtract", "multiply", "divide", "maximum" };
	uint64_t seed = 1;
	for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
		for (size_t d = 0; d < sizeof arithmetic / sizeof arithmetic[0]; d++)
			for (int i = 0; i < 25; i++)
				try_binary(ops[o], arithmetic[d], &seed);
}

static void one_element(const char *op, choir_dtype dtype, double a, double b, double expected)
{
	choir_buffer in[2] = { kernels_buffer(dtype, CHOIR_SCALAR),
		kernels_buffer(dtype, CHOIR_SCALAR) };
	choir_buffer out = kernels_buffer(dtype, CHOIR_SCALAR);
	kernels_set(&in[0], 0, a);
	kernels_set(&in[1], 0, b);
	kernels_plain(op, 2, in, &out, NULL);
	kernels_assert_near(op, &out, 0, expected, 0);
	kernels_free(2, in);
	kernels_free(1, &out);
}

TEST(integers_wrap_and_divide_by_zero)
{
	one_element("add", CHOIR_I32, INT32_MAX, 1, INT32_MIN);
	one_element("multiply", CHOIR_I32, INT32_MIN, -1, INT32_MIN);
	one_element("divide", CHOIR_I32, INT32_MIN, -1, INT32_MIN);
	one_element("divide", CHOIR_I64, -0x1p63, -1, -0x1p63);
	one_element("divide", CHOIR_I32, 7, 0, 0);
	one_element("divide", CHOIR_U8, 7, 0, 0);
	one_element("divide", CHOIR_U8, 254, 255, 0);
	one_element("subtract", CHOIR_U8, 3, 5, 254);
	one_element("divide", CHOIR_F32, 1, 0, INFINITY);
	one_element("maximum", CHOIR_F32, NAN, 1, NAN);
	one_element("maximum", CHOIR_F64, 1, NAN, NAN);
}

TEST(empty_tensors_are_fine)
{
	choir_buffer in[2] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 0)),
		kernels_buffer(CHOIR_F32, CHOIR_SHAPE(1)) };
	choir_buffer out = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 0));
	kernels_plain("add", 2, in, &out, NULL);
	kernels_plain("relu", 1, in, &out, NULL);
	kernels_plain("broadcast", 1, &in[1], &out, NULL);
	kernels_free(2, in);
	kernels_free(1, &out);
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double gelu_tanh(double x)
{
	return x * sigmoid(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}

static double unary_value(const char *op, double x)
{
	if (!strcmp(op, "square"))
		return x * x;
	if (!strcmp(op, "sqrt"))
		return sqrt(x);
	if (!strcmp(op, "exp"))
		return exp(x);
	if (!strcmp(op, "log"))
		return log(x);
	if (!strcmp(op, "relu"))
		return x > 0 ? x : 0;
	if (!strcmp(op, "tanh"))
		return tanh(x);
	return !strcmp(op, "sigmoid") ? sigmoid(x) : gelu_tanh(x);
}

static bool takes_positive(const char *op)
{
	return !strcmp(op, "sqrt") || !strcmp(op, "log");
}

static const char *const unary_ops[] = { "square", "sqrt", "exp", "log", "relu", "tanh", "sigmoid",
	"gelu_tanh" };

TEST(unary_operations)
{
	uint64_t seed = 2;
	for (size_t o = 0; o < sizeof unary_ops / sizeof unary_ops[0]; o++)
		for (size_t d = 0; d < 2; d++) {
			choir_buffer x = kernels_buffer(real[d], CHOIR_SHAPE(3, 11, 13));
			choir_buffer out = kernels_buffer(real[d], x.shape);
			kernels_fill(&x, &seed, takes_positive(unary_ops[o]) ? 0.01 : -9, 9);
			kernels_plain(unary_ops[o], 1, &x, &out, NULL);
			for (int64_t i = 0; i < 3 * 11 * 13; i++) {
				const double expected = unary_value(unary_ops[o], kernels_get(&x, i));
				// gelu_tanh's argument grows with the cube of x, and so does exp's error.
				kernels_assert_near(unary_ops[o], &out, i, expected,
						fabs(expected) * 60 * epsilon_of(real[d]) + 1e-45);
			}
			kernels_free(1, &x);
			kernels_free(1, &out);
		}
}

// Each gradient against the central difference of its function in f64.
TEST(unary_gradients)
{
	static const char *const of_result[] = { "sqrt", "relu", "tanh", "sigmoid" };
	static const char *const of_input[] = { "square", "gelu_tanh" };
	uint64_t seed = 3;
	for (size_t o = 0; o < 6; o++)
		for (size_t d = 0; d < 2; d++) {
			const char *op = o < 4 ? of_result[o] : of_input[o - 4];
			char name[32];
			strcpy(name, op);
			strcat(name, "_gradient");
			choir_buffer x = kernels_buffer(real[d], CHOIR_SHAPE(333));
			choir_buffer in[2] = { kernels_buffer(real[d], x.shape),
				kernels_buffer(real[d], x.shape) };
			choir_buffer out = kernels_buffer(real[d], x.shape);
			kernels_fill(&x, &seed, takes_positive(op) ? 0.1 : -5, 5);
			kernels_fill(&in[1], &seed, -2, 2);
			for (int64_t i = 0; i < 333; i++)
				kernels_set(&in[0], i,
						o < 4 ? unary_value(op, kernels_get(&x, i)) : kernels_get(&x, i));
			kernels_plain(name, 2, in, &out, NULL);
			for (int64_t i = 0; i < 333; i++) {
				const double at = kernels_get(&x, i), h = 1e-5;
				const double slope = (unary_value(op, at + h) - unary_value(op, at - h)) / (2 * h);
				kernels_assert_near(name, &out, i, slope * kernels_get(&in[1], i),
						d == 0 ? 2e-6 * (1 + fabs(slope)) : 1e-8 * (1 + fabs(slope)));
			}
			kernels_free(1, &x);
			kernels_free(2, in);
			kernels_free(1, &out);
		}
}

TEST(scale_and_maximum_gradient)
{
	uint64_t seed = 4;
	for (size_t d = 0; d < 2; d++)
		for (int side = 0; side < 2; side++) {
			choir_buffer in[3] = { kernels_buffer(real[d], CHOIR_SHAPE(4, 5)),
				kernels_buffer(real[d], CHOIR_SHAPE(5)),
				kernels_buffer(real[d], CHOIR_SHAPE(4, 5)) };
			choir_buffer out = kernels_buffer(real[d], CHOIR_SHAPE(4, 5));
			kernels_fill(&in[0], &seed, -1, 1);
			kernels_fill(&in[1], &seed, -1, 1);
			kernels_fill(&in[2], &seed, -1, 1);
			kernels_set(&in[0], 0, kernels_get(&in[1], 0)); // equals go to the first
			kernels_plain("maximum_gradient", 3, in, &out,
					&(choir_maximum_gradient_attributes){ .side = side });
			for (int64_t i = 0; i < 20; i++) {
				const bool first = kernels_get(&in[0], i) >= kernels_get(&in[1], i % 5);
				kernels_assert_near("maximum_gradient", &out, i,
						first == (side == 0) ? kernels_get(&in[2], i) : 0, 0);
			}
			kernels_plain("scale", 1, in, &out, &(choir_scale_attributes){ .by = -0.25 });
			for (int64_t i = 0; i < 20; i++)
				kernels_assert_near("scale", &out, i, kernels_get(&in[0], i) * -0.25, 0);
			kernels_free(3, in);
			kernels_free(1, &out);
		}
}

TEST(fill_and_broadcast_take_every_dtype)
{
	uint64_t seed = 5;
	for (choir_dtype dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
		choir_buffer x = kernels_buffer(dtype, CHOIR_SHAPE(3, 1, 7));
		choir_buffer out = kernels_buffer(dtype, CHOIR_SHAPE(2, 3, 5, 7));
		kernels_fill(&x, &seed, 0, 100);
		kernels_plain("broadcast", 1, &x, &out, NULL);
		for (int64_t i = 0; i < 2 * 3 * 5 * 7; i++)
			kernels_assert_near(
					"broadcast", &out, i, kernels_get(&x, under(&out.shape, &x.shape, i)), 0);
		kernels_plain("fill", 0, NULL, &out, &(choir_fill_attributes){ .value = 1 });
		for (int64_t i = 0; i < 2 * 3 * 5 * 7; i++)
			kernels_assert_near("fill", &out, i, 1, 0);
		kernels_free(1, &x);
		kernels_free(1, &out);
	}
}

static void cast_one(choir_dtype from, choir_dtype to, double x, double expected)
{
	choir_buffer in = kernels_buffer(from, CHOIR_SCALAR), out = kernels_buffer(to, CHOIR_SCALAR);
	kernels_set(&in, 0, x);
	kernels_plain("cast", 1, &in, &out, NULL);
	kernels_assert_near("cast", &out, 0, expected, 0);
	kernels_free(1, &in);
	kernels_free(1, &out);
}

TEST(casts_truncate_and_saturate)
{
	cast_one(CHOIR_F32, CHOIR_I32, 2.9, 2);
	cast_one(CHOIR_F32, CHOIR_I32, -2.9, -2);
	cast_one(CHOIR_F64, CHOIR_I32, 1e20, INT32_MAX);
	cast_one(CHOIR_F64, CHOIR_I32, -1e20, INT32_MIN);
	cast_one(CHOIR_F64, CHOIR_I32, -2147483648.9, INT32_MIN);
	cast_one(CHOIR_F64, CHOIR_I64, -INFINITY, -0x1p63);
	cast_one(CHOIR_F64, CHOIR_U8, -0.9, 0);
	cast_one(CHOIR_F64, CHOIR_U8, -7, 0);
	cast_one(CHOIR_F64, CHOIR_U8, 255.9, 255);
	cast_one(CHOIR_F32, CHOIR_U8, 1000, 255);
	cast_one(CHOIR_F32, CHOIR_I64, NAN, 0);
	cast_one(CHOIR_I32, CHOIR_BOOL, -3, 1);
	cast_one(CHOIR_F32, CHOIR_BOOL, 0.1, 1);
	cast_one(CHOIR_F32, CHOIR_BOOL, -0.0, 0);
	cast_one(CHOIR_BOOL, CHOIR_F64, 1, 1);
	cast_one(CHOIR_F64, CHOIR_F16, 65519, 65504);
	cast_one(CHOIR_F64, CHOIR_F16, 65520, INFINITY);
	// Just above a tie of f16 by less than f32 can show: rounded once, so up.
	cast_one(CHOIR_F64, CHOIR_F16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10);
	cast_one(CHOIR_F64, CHOIR_F16, 1 + 0x1p-11, 1);
	cast_one(CHOIR_F64, CHOIR_BF16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7);
	cast_one(CHOIR_F64, CHOIR_BF16, 3.4e38, INFINITY);
	cast_one(CHOIR_F64, CHOIR_F16, 0x1p-24, 0x1p-24);
	cast_one(CHOIR_F64, CHOIR_F16, 0x1p-26, 0);
	cast_one(CHOIR_F64, CHOIR_F16, NAN, NAN);
	cast_one(CHOIR_BF16, CHOIR_F16, -INFINITY, -INFINITY);
}

TEST(casts_keep_what_fits)
{
	for (choir_dtype from = CHOIR_F32; from <= CHOIR_BF16; from++)
		for (choir_dtype to = CHOIR_F32; to <= CHOIR_BF16; to++) {
			choir_buffer in = kernels_buffer(from, CHOIR_SHAPE(1500));
			choir_buffer out = kernels_buffer(to, CHOIR_SHAPE(1500));
			for (int64_t i = 0; i < 1500; i++)
				kernels_set(&in, i, (double) (i % 128));
			kernels_plain("cast", 1, &in, &out, NULL);
			for (int64_t i = 0; i < 1500; i++) {
				const bool truth = from == CHOIR_BOOL || to == CHOIR_BOOL;
				kernels_assert_near("cast", &out, i, truth ? i % 128 != 0 : (double) (i % 128), 0);
			}
			kernels_free(1, &in);
			kernels_free(1, &out);
		}
}

TEST(every_half_survives)
{
	for (uint32_t h = 0; h < 0x10000; h++) {
		const float f = chi_f32_of_f16((uint16_t) h), b = chi_f32_of_bf16((uint16_t) h);
		const uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;
		const double expected = exponent == 31 ? (mantissa ? NAN : INFINITY)
				: exponent == 0				   ? ldexp(mantissa, -24)
											   : ldexp(1024 + mantissa, (int) exponent - 25);
		if (isnan(expected)) {
			assert_true(isnan(f) && isnan(chi_f32_of_f16(chi_f16_of_f32(f))));
		} else {
			assert_true((double) f == (h & 0x8000 ? -expected : expected));
			assert_int_equal(chi_f16_of_f32(f), h);
		}
		if (!isnan(b))
			assert_int_equal(chi_bf16_of_f32(b), h);
	}
}

static double sgd_value(const choir_update_attributes *a, double w[4], int kind)
{
	const double g = w[3] * a->gradient_scale;
	w[0] -= a->rate * a->decay * w[0];
	if (kind == 0) {
		w[0] -= a->rate * g;
	} else if (kind == 1) {
		w[1] = a->momentum * w[1] - a->rate * g;
		w[0] += a->nesterov ? a->momentum * w[1] - a->rate * g : w[1];
	} else {
		w[1] += (g - w[1]) * (1 - a->beta1);
		w[2] += (g * g - w[2]) * (1 - a->beta2);
		w[0] -= a->rate * a->correction * w[1] / (sqrt(w[2]) + a->epsilon);
	}
	return w[0];
}

static void try_update(int kind, choir_dtype dtype, bool nesterov, double decay)
{
	static const char *const ops[] = { "sgd_update", "momentum_update", "adam_update" };
	enum { N = 100 };
	const choir_update_attributes a = { .rate = 0.1,
		.momentum = 0.9,
		.beta1 = 0.9,
		.beta2 = 0.999,
		.epsilon = 1e-7,
		.decay = decay,
		.correction = 0.3,
		.gradient_scale = 0.5,
		.nesterov = nesterov };
	choir_buffer in[4];
	uint64_t seed = 6;
	double model[N][4];
	for (int j = 0; j < 4; j++) {
		in[j] = kernels_buffer(dtype, CHOIR_SHAPE(N));
		kernels_fill(&in[j], &seed, j == 2 ? 0 : -1, 1);
		for (int i = 0; i < N; i++)
			model[i][j] = kernels_get(&in[j], i);
	}
	choir_buffer used[4] = { in[0], in[1], in[2], in[3] };
	used[kind + 1] = in[3];
	kernels_plain(ops[kind], (size_t) kind + 2, used, &in[0], &a);
	for (int i = 0; i < N; i++) {
		kernels_assert_near(
				ops[kind], &in[0], i, sgd_value(&a, model[i], kind), 40 * epsilon_of(dtype));
		for (int j = 1; j <= kind; j++)
			kernels_assert_near("slot", &in[j], i, model[i][j], 4 * epsilon_of(dtype));
	}
	kernels_free(4, in);
}

TEST(updates)
{
	for (int kind = 0; kind < 3; kind++)
		for (int d = 0; d < 2; d++) {
			try_update(kind, real[d], false, 0);
			try_update(kind, real[d], true, 0.01);
		}
}

TEST(dropout_keeps_its_rate)
{
	enum { N = 40001 };
	const choir_random_attributes a = {
		.seed = 7, .step = 3, .replica_id = 1, .place = 2, .rate = 0.3
	};
	for (int d = 0; d < 2; d++) {
		choir_buffer x = kernels_buffer(real[d], CHOIR_SHAPE(N)),
					 y = kernels_buffer(real[d], x.shape);
		kernels_plain("fill", 0, NULL, &x, &(choir_fill_attributes){ .value = 2 });
		kernels_plain("dropout", 1, &x, &y, &a);
		int64_t kept = 0;
		const chi_random_key key = { .seed = 7, .step = 3, .replica = 1, .place = 2 };
		for (int64_t i = 0; i < N; i++) {
			const chi_philox_block block = chi_random_block(&key, (uint64_t) i / 4);
			const bool keeps = (double) chi_uniform_float(block.word[i % 4]) >= 0.3;
			kernels_assert_near("dropout", &y, i, keeps ? 2 / 0.7 : 0, 4 * epsilon_of(real[d]));
			kept += keeps;
		}
		// Five standard deviations of the binomial distribution.
		assert_true(fabs((double) kept - 0.7 * N) < 5 * sqrt(N * 0.3 * 0.7));
		kernels_free(1, &x);
		kernels_free(1, &y);
	}
}

TEST(normal_numbers_are_normal)
{
	enum { N = 20001 };
	choir_buffer x = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(N)),
				 y = kernels_buffer(CHOIR_F32, x.shape);
	const choir_random_attributes a = { .seed = 1, .place = 5 };
	kernels_plain("random_normal", 0, NULL, &x, &a);
	kernels_plain("random_normal", 0, NULL, &y, &a);
	assert_memory_equal(x.data, y.data, N * sizeof(float));
	double sum = 0, squares = 0;
	for (int64_t i = 0; i < N; i++) {
		sum += kernels_get(&x, i);
		squares += kernels_get(&x, i) * kernels_get(&x, i);
	}
	assert_true(fabs(sum) < 5 * sqrt(N));
	assert_true(fabs(squares - N) < 5 * sqrt(2 * N));
	kernels_free(1, &x);
	kernels_free(1, &y);
}
