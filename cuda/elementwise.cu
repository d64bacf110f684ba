// Elementwise operations of one and two operands and their gradients: formulas in a table, and one
// kernel for each number of operands.
#include "numbers.h"

namespace choir_cuda
{

// Formulas of one operand.
#define UNARY(name, expression) \
	struct name { \
		template <class T> static __device__ inline T of(T x) \
		{ \
			return (T) (expression); \
		} \
	}

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

UNARY(op_square, (typename wrapping<T>::type) x *(typename wrapping<T>::type) x);
UNARY(op_abs, magnitude(x));
UNARY(op_negate, negative(x));
UNARY(op_sign, x != x ? x : (T) ((x > 0) - (x != 0 && !(x > 0))));
UNARY(op_sqrt, square_root(x));
UNARY(op_rsqrt, (T) 1 / square_root(x));
UNARY(op_exp, exponential(x));
UNARY(op_expm1, exponential_less_1(x));
UNARY(op_log, logarithm(x));
UNARY(op_log1p, logarithm_of_1_plus(x));
UNARY(op_floor, next_lower(x));
UNARY(op_ceil, next_higher(x));
UNARY(op_round, nearest_even(x));
UNARY(op_sin, sine(x));
UNARY(op_cos, cosine(x));
UNARY(op_tan, tangent(x));
UNARY(op_erf, error_function(x));
UNARY(op_relu, x > 0 ? x : x != x ? x : (T) 0);
UNARY(op_tanh, hyperbolic_tangent(x));
UNARY(op_sigmoid, sigmoid(x));
UNARY(op_gelu, x *((T) 0.5 * ((T) 1 + error_function(x * (T) 0.70710678118654752))));
UNARY(op_gelu_tanh, x *sigmoid(gelu_argument(x)));
UNARY(op_silu, x *sigmoid(x));
UNARY(op_softplus, (x > 0 ? x : (T) 0) + logarithm_of_1_plus(exponential(-absolute(x))));
#undef UNARY

// Gradients: a is the operand or the result, as kernel_table.h says.
#define GRADIENT(name, expression) \
	struct name { \
		template <class T> static __device__ inline T of(T a, T dy) \
		{ \
			return (T) (expression); \
		} \
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

GRADIENT(op_square_gradient, (T) 2 * a * dy);
GRADIENT(op_sqrt_gradient, dy / ((T) 2 * a));
GRADIENT(op_relu_gradient, a > 0 ? dy : (T) 0);
GRADIENT(op_tanh_gradient, dy *((T) 1 - a * a));
GRADIENT(op_sigmoid_gradient, dy *a *((T) 1 - a));
GRADIENT(op_gelu_gradient, gelu_slope(a) * dy);
GRADIENT(op_gelu_tanh_gradient, gelu_tanh_slope(a) * dy);
GRADIENT(op_silu_gradient, silu_slope(a) * dy);
GRADIENT(op_softplus_gradient, sigmoid(a) * dy);
GRADIENT(op_pow, power(a, dy));
GRADIENT(op_atan2, angle(a, dy));
#undef GRADIENT

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

template <class T, class F>
__global__ void broadcast_binary_kernel(const T *a, const T *b, T *out, int64_t n, nest shape)
{
	EACH (i, n) {
		int64_t at[MAX_OPERANDS];
		shape.find(i, at);
		out[i] = (T) F::template of<real<T>>((real<T>) a[at[0]], (real<T>) b[at[1]]);
	}
}

template <class F> struct unary {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(*c->out);
		return launch_each(
				c, n, unary_kernel<T, F>, (const T *) c->in[0].data, (T *) c->out->data, n);
	}
};

template <class F> struct binary {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const T *a = (const T *) c->in[0].data, *b = (const T *) c->in[1].data;
		T *out = (T *) c->out->data;
		const int64_t n = elements(*c->out);
		if (same_shape(c->in[0], *c->out) && same_shape(c->in[1], *c->out))
			return launch_each(c, n, binary_kernel<T, F>, a, b, out, n);
		nest shape = nest_over(&c->out->shape);
		set_broadcast(&shape, 0, &c->in[0].shape);
		set_broadcast(&shape, 1, &c->in[1].shape);
		return launch_each(c, n, broadcast_binary_kernel<T, F>, a, b, out, n, shape);
	}
};

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

struct maximum_gradient {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(*c->out);
		nest shape = nest_over(&c->out->shape);
		set_broadcast(&shape, 0, &c->in[0].shape);
		set_broadcast(&shape, 1, &c->in[1].shape);
		const int side = ((const choir_maximum_gradient_attributes *) c->attributes)->side;
		return launch_each(c, n, maximum_gradient_kernel<T>, (const T *) c->in[0].data,
				(const T *) c->in[1].data, (const T *) c->in[2].data, (T *) c->out->data, n, shape,
				side);
	}
};

template <class T> __global__ void scale_kernel(const T *x, T *out, real<T> by, int64_t n)
{
	EACH (i, n)
		out[i] = (T) ((real<T>) x[i] * by);
}

struct scale {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(*c->out);
		const real<T> by = (real<T>) (T) ((const choir_scale_attributes *) c->attributes)->by;
		return launch_each(
				c, n, scale_kernel<T>, (const T *) c->in[0].data, (T *) c->out->data, by, n);
	}
};

template <class T> __global__ void huber_kernel(const T *x, T *out, real<T> delta, int64_t n)
{
	EACH (i, n) {
		const real<T> size = absolute((real<T>) x[i]);
		out[i] = (T) (size <= delta ? size * size / 2 : delta * (size - delta / 2));
	}
}

template <class T>
__global__ void huber_gradient_kernel(const T *x, const T *dy, T *out, real<T> delta, int64_t n)
{
	EACH (i, n) {
		const real<T> a = (real<T>) x[i];
		out[i] = (T) ((real<T>) dy[i] * (a < -delta ? -delta : a > delta ? delta : a));
	}
}

struct huber {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(*c->out);
		const real<T> delta = (real<T>) ((const choir_huber_attributes *) c->attributes)->delta;
		return launch_each(
				c, n, huber_kernel<T>, (const T *) c->in[0].data, (T *) c->out->data, delta, n);
	}
};

struct huber_gradient {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(*c->out);
		const real<T> delta = (real<T>) ((const choir_huber_attributes *) c->attributes)->delta;
		return launch_each(c, n, huber_gradient_kernel<T>, (const T *) c->in[0].data,
				(const T *) c->in[1].data, (T *) c->out->data, delta, n);
	}
};

// clang-format off
static const kernel kernels[] = {
	{ "add", ARITHMETIC, run_any<binary<op_add>>, NULL, NULL },
	{ "subtract", ARITHMETIC, run_any<binary<op_subtract>>, NULL, NULL },
	{ "multiply", ARITHMETIC, run_any<binary<op_multiply>>, NULL, NULL },
	{ "divide", ARITHMETIC, run_any<binary<op_divide>>, NULL, NULL },
	{ "maximum", ARITHMETIC, run_any<binary<op_maximum>>, NULL, NULL },
	{ "minimum", ARITHMETIC, run_any<binary<op_minimum>>, NULL, NULL },
	{ "pow", FLOATS, run_float<binary<op_pow>>, NULL, NULL },
	{ "atan2", FLOATS, run_float<binary<op_atan2>>, NULL, NULL },
	{ "maximum_gradient", FLOATS, run_float<maximum_gradient>, NULL, NULL },
	{ "square", ARITHMETIC, run_any<unary<op_square>>, NULL, NULL },
	{ "abs", ARITHMETIC, run_any<unary<op_abs>>, NULL, NULL },
	{ "negate", ARITHMETIC, run_any<unary<op_negate>>, NULL, NULL },
	{ "sign", ARITHMETIC, run_any<unary<op_sign>>, NULL, NULL },
	{ "sqrt", FLOATS, run_float<unary<op_sqrt>>, NULL, NULL },
	{ "rsqrt", FLOATS, run_float<unary<op_rsqrt>>, NULL, NULL },
	{ "exp", FLOATS, run_float<unary<op_exp>>, NULL, NULL },
	{ "expm1", FLOATS, run_float<unary<op_expm1>>, NULL, NULL },
	{ "log", FLOATS, run_float<unary<op_log>>, NULL, NULL },
	{ "log1p", FLOATS, run_float<unary<op_log1p>>, NULL, NULL },
	{ "floor", FLOATS, run_float<unary<op_floor>>, NULL, NULL },
	{ "ceil", FLOATS, run_float<unary<op_ceil>>, NULL, NULL },
	{ "round", FLOATS, run_float<unary<op_round>>, NULL, NULL },
	{ "sin", FLOATS, run_float<unary<op_sin>>, NULL, NULL },
	{ "cos", FLOATS, run_float<unary<op_cos>>, NULL, NULL },
	{ "tan", FLOATS, run_float<unary<op_tan>>, NULL, NULL },
	{ "erf", FLOATS, run_float<unary<op_erf>>, NULL, NULL },
	{ "relu", FLOATS, run_float<unary<op_relu>>, NULL, NULL },
	{ "tanh", FLOATS, run_float<unary<op_tanh>>, NULL, NULL },
	{ "sigmoid", FLOATS, run_float<unary<op_sigmoid>>, NULL, NULL },
	{ "gelu", FLOATS, run_float<unary<op_gelu>>, NULL, NULL },
	{ "gelu_tanh", FLOATS, run_float<unary<op_gelu_tanh>>, NULL, NULL },
	{ "silu", FLOATS, run_float<unary<op_silu>>, NULL, NULL },
	{ "softplus", FLOATS, run_float<unary<op_softplus>>, NULL, NULL },
	{ "square_gradient", FLOATS, run_float<binary<op_square_gradient>>, NULL, NULL },
	{ "sqrt_gradient", FLOATS, run_float<binary<op_sqrt_gradient>>, NULL, NULL },
	{ "relu_gradient", FLOATS, run_float<binary<op_relu_gradient>>, NULL, NULL },
	{ "tanh_gradient", FLOATS, run_float<binary<op_tanh_gradient>>, NULL, NULL },
	{ "sigmoid_gradient", FLOATS, run_float<binary<op_sigmoid_gradient>>, NULL, NULL },
	{ "gelu_gradient", FLOATS, run_float<binary<op_gelu_gradient>>, NULL, NULL },
	{ "gelu_tanh_gradient", FLOATS, run_float<binary<op_gelu_tanh_gradient>>, NULL, NULL },
	{ "silu_gradient", FLOATS, run_float<binary<op_silu_gradient>>, NULL, NULL },
	{ "softplus_gradient", FLOATS, run_float<binary<op_softplus_gradient>>, NULL, NULL },
	{ "huber", FLOATS, run_float<huber>, NULL, NULL },
	{ "huber_gradient", FLOATS, run_float<huber_gradient>, NULL, NULL },
	{ "scale", FLOATS, run_float<scale>, NULL, NULL },
};
// clang-format on
const kernel_list elementwise_kernels = list_of(kernels);

} // namespace choir_cuda
