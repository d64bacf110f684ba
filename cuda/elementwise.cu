// Elementwise operations of one and two operands and their gradients: formulas in a table, and one
// kernel for each number of operands.
#include "device_math.h"

namespace choir_cuda
{

template <class T> __device__ inline T gelu_argument(T x)
{
	return (T) 1.5957691216057308 * (x + (T) 0.044715 * x * x * x); // 2 sqrt(2 / pi) ..
}

template <class T> __device__ inline T negative(T x)
{
	return (T) (0 - (typename wrapping<T>::type) x);
}
template <> __device__ inline float negative(float x)
{
	return -x;
}
template <> __device__ inline double negative(double x)
{
	return -x;
}

template <class T> __device__ inline T magnitude(T x)
{
	return x > 0 ? x : negative(x);
}
template <> __device__ inline float magnitude(float x)
{
	return absolute(x);
}
template <> __device__ inline double magnitude(double x)
{
	return absolute(x);
}

template <class T> __device__ inline T gelu_tanh_slope(T x)
{
	const T s = sigmoid(gelu_argument(x));
	return s + x * s * ((T) 1 - s) * (T) 1.5957691216057308 * ((T) 1 + (T) 0.134145 * x * x);
}

template <class T> __device__ inline T gelu_slope(T x)
{
	return (T) 0.5 * ((T) 1 + error_function(x * (T) 0.70710678118654752)) +
			x * (T) 0.39894228040143268 * exponential((T) -0.5 * x * x);
}

template <class T> __device__ inline T silu_slope(T x)
{
	const T s = sigmoid(x);
	return s * ((T) 1 + x * ((T) 1 - s));
}

// Lists of operations: FLOAT(name, formula) or, for integers too, ANY(name, formula).
#define UNARIES(ANY, FLOAT) \
	ANY(square, (typename wrapping<T>::type) x *(typename wrapping<T>::type) x) \
	ANY(abs, magnitude(x)) \
	ANY(negate, negative(x)) \
	ANY(sign, x != x ? x : (T) ((x > 0) - (x != 0 && !(x > 0)))) \
	FLOAT(sqrt, square_root(x)) \
	FLOAT(rsqrt, (T) 1 / square_root(x)) \
	FLOAT(exp, exponential(x)) \
	FLOAT(expm1, exponential_less_1(x)) \
	FLOAT(log, logarithm(x)) \
	FLOAT(log1p, logarithm_of_1_plus(x)) \
	FLOAT(floor, next_lower(x)) \
	FLOAT(ceil, next_higher(x)) \
	FLOAT(round, nearest_even(x)) \
	FLOAT(sin, sine(x)) \
	FLOAT(cos, cosine(x)) \
	FLOAT(tan, tangent(x)) \
	FLOAT(erf, error_function(x)) \
	FLOAT(relu, x > 0 ? x : x != x ? x : (T) 0) \
	FLOAT(tanh, hyperbolic_tangent(x)) \
	FLOAT(sigmoid, sigmoid(x)) \
	FLOAT(gelu, x *((T) 0.5 * ((T) 1 + error_function(x * (T) 0.70710678118654752)))) \
	FLOAT(gelu_tanh, x *sigmoid(gelu_argument(x))) \
	FLOAT(silu, x *sigmoid(x)) \
	FLOAT(softplus, (x > 0 ? x : (T) 0) + logarithm_of_1_plus(exponential(-absolute(x))))

// Of a and dy. In a gradient a is the operand or the result, as kernel_table.h says.
#define BINARIES(FLOAT) \
	FLOAT(square_gradient, (T) 2 * a * dy) \
	FLOAT(sqrt_gradient, dy / ((T) 2 * a)) \
	FLOAT(relu_gradient, a > 0 ? dy : (T) 0) \
	FLOAT(tanh_gradient, dy *((T) 1 - a * a)) \
	FLOAT(sigmoid_gradient, dy *a *((T) 1 - a)) \
	FLOAT(gelu_gradient, gelu_slope(a) * dy) \
	FLOAT(gelu_tanh_gradient, gelu_tanh_slope(a) * dy) \
	FLOAT(silu_gradient, silu_slope(a) * dy) \
	FLOAT(softplus_gradient, sigmoid(a) * dy) \
	FLOAT(pow, power(a, dy)) \
	FLOAT(atan2, angle(a, dy))

#define UNARY(name, expression) \
	struct op_##name { \
		template <class T> static __device__ inline T of(T x) \
		{ \
			return (T) (expression); \
		} \
	};
UNARIES(UNARY, UNARY)
#define OF_TWO(name, expression) \
	struct op_##name { \
		template <class T> static __device__ inline T of(T a, T dy) \
		{ \
			return (T) (expression); \
		} \
	};
BINARIES(OF_TWO)

template <class T, class F> __global__ void unary_kernel(const T *x, T *out, int64_t n)
{
	EACH (i, n)
		out[i] = (T) F::template of<real<T>>((real<T>) x[i]);
}

template <class T, class F>
__global__ void binary_kernel(const T *a, const T *b, T *out, int64_t n)
{
	EACH (i, n)
		out[i] = (T) F::template of<real<T>>((real<T>) a[i], (real<T>) b[i]);
}

KERNEL_OF(class, F, unary)
{
	const int64_t n = elements(*c->out);
	return launch_each(c, n, unary_kernel<T, F>, given<T>(c, 0), made<T>(c), n);
}

KERNEL_OF(class, F, binary)
{
	const T *a = given<T>(c, 0), *b = given<T>(c, 1);
	T *out = made<T>(c);
	const int64_t n = elements(*c->out);
	if (same_shape(c->in[0], *c->out) && same_shape(c->in[1], *c->out))
		return launch_each(c, n, binary_kernel<T, F>, a, b, out, n);
	return launch_each(c, n, broadcast_kernel<T, T, F>, a, b, out, n, broadcast_all(c, 2));
}

template <class T>
__global__ void maximum_gradient_kernel(
		const T *a, const T *b, const T *dy, T *out, int64_t n, nest shape, int side)
{
	EACH (i, n) {
		int64_t at[MAX_OPERANDS];
		shape.find(i, at);
		const bool less = a[at[0]] < b[at[1]];
		out[i] = less == (side == 1) ? dy[i] : (T) 0;
	}
}

KERNEL(maximum_gradient)
{
	const int64_t n = elements(*c->out);
	const int side = attributes<choir_maximum_gradient_attributes>(c)->side;
	return launch_each(c, n, maximum_gradient_kernel<T>, given<T>(c, 0), given<T>(c, 1),
			given<T>(c, 2), made<T>(c), n, broadcast_all(c, 2), side);
}

// Formulas with the number that is all of the attributes. T rounds the number of "scale".
struct scaled {
	template <class T> static __device__ inline real<T> of(real<T> x, real<T>, double by)
	{
		return x * (real<T>) (T) by;
	}
};

struct huber {
	template <class T> static __device__ inline real<T> of(real<T> x, real<T>, double number)
	{
		const real<T> size = absolute(x), delta = (real<T>) number;
		return size <= delta ? size * size / 2 : delta * (size - delta / 2);
	}
};

struct huber_gradient {
	template <class T> static __device__ inline real<T> of(real<T> x, real<T> dy, double number)
	{
		const real<T> delta = (real<T>) number;
		return dy * (x < -delta ? -delta : x > delta ? delta : x);
	}
};

template <class T, class F>
__global__ void number_kernel(const T *x, const T *dy, T *out, double number, int64_t n)
{
	EACH (i, n)
		out[i] = (T) F::template of<T>((real<T>) x[i], (real<T>) dy[i], number);
}

KERNEL_OF(class, F, by_number)
{
	const int64_t n = elements(*c->out);
	return launch_each(c, n, number_kernel<T, F>, given<T>(c, 0), given<T>(c, c->n - 1),
			made<T>(c), *(const double *) c->attributes, n);
}

#define ROW_OF_ANY(name, formula) { #name, ARITHMETIC, run_any<unary<op_##name>> },
#define ROW_OF_FLOAT(name, formula) { #name, FLOATS, run_float<unary<op_##name>> },
#define ROW_OF_TWO(name, formula) { #name, FLOATS, run_float<binary<op_##name>> },
// clang-format off
static const kernel kernels[] = {
	{ "add", ARITHMETIC, run_any<binary<op_add>> },
	{ "subtract", ARITHMETIC, run_any<binary<op_subtract>> },
	{ "multiply", ARITHMETIC, run_any<binary<op_multiply>> },
	{ "divide", ARITHMETIC, run_any<binary<op_divide>> },
	{ "maximum", ARITHMETIC, run_any<binary<op_maximum>> },
	{ "minimum", ARITHMETIC, run_any<binary<op_minimum>> },
	UNARIES(ROW_OF_ANY, ROW_OF_FLOAT)
	BINARIES(ROW_OF_TWO)
	{ "maximum_gradient", FLOATS, run_float<maximum_gradient> },
	{ "scale", FLOATS, run_float<by_number<scaled>> },
	{ "huber", FLOATS, run_float<by_number<huber>> },
	{ "huber_gradient", FLOATS, run_float<by_number<huber_gradient>> },
};
// clang-format on
const kernel_list elementwise_kernels = list_of(kernels);

} // namespace choir_cuda
