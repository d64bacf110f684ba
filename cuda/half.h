// f16 and bf16: numbers of 16 bits in memory. Arithmetic is in f32, and a result is rounded once,
// to nearest even.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

namespace choir_cuda
{

__host__ __device__ inline uint32_t bits_of(float x)
{
	union {
		float f;
		uint32_t u;
	} v;
	v.f = x;
	return v.u;
}

__host__ __device__ inline float float_of(uint32_t bits)
{
	union {
		uint32_t u;
		float f;
	} v;
	v.u = bits;
	return v.f;
}

// Rounds to odd, so that rounding again, to 16 bits, is as rounding once.
__host__ __device__ inline float odd_float(double x)
{
	const float f = (float) x;
	const double back = (double) f;
	const uint32_t bits = bits_of(f);
	if (back == x || x != x || (bits & 1) != 0)
		return f;
	return float_of(fabs(back) > fabs(x) ? bits - 1 : bits + 1);
}

template <bool brain> struct narrow_float {
	uint16_t bits;
	narrow_float() = default;
	__host__ __device__ explicit narrow_float(float x) : bits(narrow(x)) {}
	__host__ __device__ explicit narrow_float(double x) : bits(narrow(odd_float(x))) {}
	__host__ __device__ explicit narrow_float(int x) : bits(narrow((float) x)) {}

	__host__ __device__ operator float() const
	{
		if (brain)
			return float_of((uint32_t) bits << 16);
		const uint32_t size = (uint32_t) (bits & 0x7fff) << 13;
		// With f32's bias the number is 2^112 too small, denormals included.
		const uint32_t finite = bits_of(float_of(size) * 5192296858534827628530496329220096.0f);
		return float_of((uint32_t) (bits & 0x8000) << 16 |
				(size >= 0x0f800000 ? size | 0x7f800000 : finite));
	}

  private:
	__host__ __device__ static uint16_t narrow(float x)
	{
		const uint32_t all = bits_of(x), size = all & 0x7fffffff, sign = all >> 16 & 0x8000;
		if (brain)
			return (uint16_t) (size > 0x7f800000 ? all >> 16 | 0x40
												 : (all + 0x7fff + (all >> 16 & 1)) >> 16);
		if (size > 0x7f800000)
			return (uint16_t) (sign | 0x7e00);
		if (size >= 0x477ff000) // 65520 and above
			return (uint16_t) (sign | 0x7c00);
		// Adding 0.5 leaves the rounded denormal in the lowest bits.
		if (size < 0x38800000)
			return (uint16_t) (sign | (bits_of(float_of(size) + 0.5f) - 0x3f000000));
		return (uint16_t) (sign | (size + 0x0fff + (size >> 13 & 1) - (112u << 23)) >> 13);
	}
};

typedef narrow_float<false> f16;
typedef narrow_float<true> bf16;

// The type in which a kernel computes.
template <class T> struct computing {
	typedef T type;
};
template <bool brain> struct computing<narrow_float<brain>> {
	typedef float type;
};
template <class T> using real = typename computing<T>::type;

// An input of a kernel for T. It has the dtype of T, or is f32 where T has 16 bits.
template <class T> struct input {
	using reads_only = void;
	const T *own;
	const float *wide; // NULL: own
	__device__ real<T> operator[](int64_t i) const
	{
		return wide != nullptr ? (real<T>) wide[i] : (real<T>) own[i];
	}
};

// Likewise what a kernel writes.
template <class T> struct output {
	T *own;
	float *wide;
	template <class V> __device__ void set(int64_t i, V value) const
	{
		if (wide != nullptr)
			wide[i] = (float) value;
		else
			own[i] = (T) value;
	}
};

} // namespace choir_cuda
