// What the other headers need of the compiler: C linkage and visibility, checked results, options.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define CHOIR_C_BEGIN _Pragma("GCC visibility push(default)") extern "C" {
#define CHOIR_C_END } _Pragma("GCC visibility pop")
#else
#define CHOIR_C_BEGIN _Pragma("GCC visibility push(default)")
#define CHOIR_C_END _Pragma("GCC visibility pop")
#endif
#define CHOIR_MUST_CHECK __attribute__((warn_unused_result))
#define CHOIR_PRINTF(fmt, arg) __attribute__((format(printf, fmt, arg)))

// In options zero means the default; CHOIR_NONE a real zero or "no limit", where the comment says so.
enum { CHOIR_NONE = -1 };
typedef enum { CHOIR_DEFAULT = 0, CHOIR_ON, CHOIR_OFF } choir_toggle;
// CHOIR_OPTIONS(choir_strategy_options, .replicas = 4, .seed = 7) is a pointer to options with
// their size filled in and all other fields zero. The same line is C11 and C++17.
// At most eight fields. In C++ it dies with the full expression: write it in the call.
#ifndef __cplusplus
#define CHOIR_OPTIONS(type, ...) (&(const type){ .size = sizeof(type), __VA_ARGS__ })
#else
template <class T> struct choir_options_of {
	T value{};
	template <class F> explicit choir_options_of(F fill) { value.size = sizeof(T); fill(value); }
	operator const T *() const { return &value; }
};
#define CHOIR_OPTIONS(type, ...) \
	(choir_options_of<type>([&](type &o_) { \
		CHOIR_PICK_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)(__VA_ARGS__) \
	}))
#define CHOIR_PICK_(a, b, c, d, e, f, g, h, n, ...) CHOIR_SET_##n##_
#define CHOIR_SET_1_(a) o_ a;
#define CHOIR_SET_2_(a, ...) o_ a; CHOIR_SET_1_(__VA_ARGS__)
#define CHOIR_SET_3_(a, ...) o_ a; CHOIR_SET_2_(__VA_ARGS__)
#define CHOIR_SET_4_(a, ...) o_ a; CHOIR_SET_3_(__VA_ARGS__)
#define CHOIR_SET_5_(a, ...) o_ a; CHOIR_SET_4_(__VA_ARGS__)
#define CHOIR_SET_6_(a, ...) o_ a; CHOIR_SET_5_(__VA_ARGS__)
#define CHOIR_SET_7_(a, ...) o_ a; CHOIR_SET_6_(__VA_ARGS__)
#define CHOIR_SET_8_(a, ...) o_ a; CHOIR_SET_7_(__VA_ARGS__)
#endif
