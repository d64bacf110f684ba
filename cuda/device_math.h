// Functions of numbers on the device, for f32 and f64, and formulas that several kernels use. They
// follow the CPU's plain kernels (src/op/plain). Without contraction to fused multiply-adds
// (-fmad=false), formulas of + - * / and sqrt give the CPU's bits.
#pragma once

#include "launch.h"

namespace choir_cuda
{

#define FUNCTION(name, f32, f64) \
	__device__ inline float name(float x) \
	{ \
		return f32(x); \
	} \
	__device__ inline double name(double x) \
	{ \
		return f64(x); \
	}
FUNCTION(absolute, fabsf, fabs)
FUNCTION(square_root, sqrtf, sqrt)
FUNCTION(exponential, expf, exp)
FUNCTION(exponential_less_1, expm1f, expm1)
FUNCTION(logarithm, logf, log)
FUNCTION(logarithm_of_1_plus, log1pf, log1p)
FUNCTION(hyperbolic_tangent, tanhf, tanh)
FUNCTION(error_function, erff, erf)
FUNCTION(next_lower, floorf, floor)
FUNCTION(next_higher, ceilf, ceil)
FUNCTION(nearest_even, rintf, rint)
FUNCTION(sine, sinf, sin)
FUNCTION(cosine, cosf, cos)
FUNCTION(tangent, tanf, tan)
#undef FUNCTION

__device__ inline float power(float a, float b)
{
	return powf(a, b);
}

__device__ inline double power(double a, double b)
{
	return pow(a, b);
}

__device__ inline float angle(float y, float x)
{
	return atan2f(y, x);
}

__device__ inline double angle(double y, double x)
{
	return atan2(y, x);
}

// The type in which integers wrap.
template <class T> struct wrapping {
	typedef T type;
};
template <> struct wrapping<int32_t> {
	typedef uint32_t type;
};
template <> struct wrapping<int64_t> {
	typedef uint64_t type;
};
template <> struct wrapping<uint8_t> {
	typedef uint32_t type;
};

template <class T> __device__ inline T quotient(T a, T b)
{
	if (b == 0)
		return 0;
	// The smallest integer divided by -1 overflows.
	return (T) -1 < 0 && b == (T) -1 ? (T) (0 - (typename wrapping<T>::type) a) : (T) (a / b);
}
template <> __device__ inline float quotient(float a, float b)
{
	return a / b;
}
template <> __device__ inline double quotient(double a, double b)
{
	return a / b;
}

// Functors of two numbers. A NAN wins a maximum and a minimum.
#define BINARY(name, expression) \
	struct name { \
		template <class T> static __device__ inline T of(T a, T b) \
		{ \
			typedef typename wrapping<T>::type W; \
			(void) sizeof(W); \
			return (T) (expression); \
		} \
	}
BINARY(op_add, (W) a + (W) b);
BINARY(op_subtract, (W) a - (W) b);
BINARY(op_multiply, (W) a *(W) b);
BINARY(op_divide, quotient(a, b));
BINARY(op_maximum, a >= b || a != a ? a : b);
BINARY(op_minimum, a <= b || a != a ? a : b);
BINARY(op_second, (void(a), b));
#undef BINARY

template <class T, class O, class F>
__global__ void broadcast_kernel(const T *a, const T *b, O *out, int64_t n, nest shape)
{
	EACH (i, n) {
		int64_t at[MAX_OPERANDS];
		shape.find(i, at);
		out[i] = (O) F::template of<real<T>>((real<T>) a[at[0]], (real<T>) b[at[1]]);
	}
}

template <class T> __device__ inline T sigmoid(T x)
{
	return (T) 1 / ((T) 1 + exponential(-x));
}

__device__ inline int64_t index_at(int dtype, const void *indices, int64_t i)
{
	return dtype == CHOIR_I64	 ? ((const int64_t *) indices)[i]
			: dtype == CHOIR_I32 ? (int64_t) ((const int32_t *) indices)[i]
								 : (int64_t) ((const uint8_t *) indices)[i];
}

} // namespace choir_cuda
