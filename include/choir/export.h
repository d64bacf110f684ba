// C linkage and visibility, results that must be checked, and options. An options struct begins
// with its size, so a program built with older headers works with a newer library. A field that is
// 0 has its default. All headers compile as C11 and C++17, with gcc and clang.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// For a header's declarations: C linkage, exported from the library.
#ifdef __cplusplus
#define CHOIR_C_BEGIN \
	_Pragma("GCC visibility push(default)") extern "C" \
	{
#define CHOIR_C_END \
	} \
	_Pragma("GCC visibility pop")
#else
#define CHOIR_C_BEGIN _Pragma("GCC visibility push(default)")
#define CHOIR_C_END _Pragma("GCC visibility pop")
#endif

// A caller that ignores the result gets a warning.
#define CHOIR_MUST_CHECK __attribute__((warn_unused_result))
// Argument fmt is a printf format for the arguments from arg on. arg 0: these are in a va_list.
#define CHOIR_PRINTF(fmt, arg) __attribute__((format(printf, fmt, arg)))

// The version of all tables of choir/extend.h. Another version is CHOIR_INVALID.
#define CHOIR_TABLE_VERSION 1

// Special values of options in which 0 means the default. A field accepts only those that its
// comment names.
enum {
	CHOIR_ZERO = -1, // the number 0
	CHOIR_FOREVER = -1, // no time limit; endless repetition
	CHOIR_ALL = -1, // all items
	CHOIR_UNKNOWN = -1, // a dimension that is not known, or varies
	CHOIR_PADDING_SAME = -1, // padding as TensorFlow's SAME
	CHOIR_NONE = -1 // no such index, id or dtype; the result of a function that failed
};

// On or off. A field's comment says its default.
typedef enum { CHOIR_DEFAULT = 0, CHOIR_ON, CHOIR_OFF } choir_toggle;

// CHOIR_OPTIONS(choir_strategy_options, .replicas = 4, .seed = 7) is a pointer to const options
// with the size and these fields, 1 to 32; others are 0.
//
// The struct lives in C until the end of the block, in C++ until the end of the full expression:
// there write CHOIR_OPTIONS as an argument of the call, not inside another CHOIR_OPTIONS. For a
// longer life:
//     choir_schedule drops = { .size = sizeof(drops), .kind = CHOIR_SCHEDULE_STEP, .steps = 100 };
#ifndef __cplusplus
#define CHOIR_OPTIONS(type, ...) (&(const type){ .size = sizeof(type), __VA_ARGS__ })
#else
// C++17 has no designated initializers: ".field = value" is an assignment to a field of a
// temporary object, which converts to a pointer to its options.
template <class T> struct choir_options_of {
	T value{};
	template <class F> explicit choir_options_of(F fill)
	{
		value.size = sizeof(T);
		fill(value);
	}
	operator const T *() const
	{
		return &value;
	}
};
// clang-format off
#define CHOIR_OPTIONS(type, ...) \
	(choir_options_of<type>([&](type &o_) { \
		CHOIR_PICK_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, \
				16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)(__VA_ARGS__) \
	}))
#define CHOIR_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
		a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, n, ...) \
	CHOIR_SET_##n##_
#define CHOIR_SET_1_(a) o_ a;
#define CHOIR_SET_2_(a, ...) o_ a; CHOIR_SET_1_(__VA_ARGS__)
#define CHOIR_SET_3_(a, ...) o_ a; CHOIR_SET_2_(__VA_ARGS__)
#define CHOIR_SET_4_(a, ...) o_ a; CHOIR_SET_3_(__VA_ARGS__)
#define CHOIR_SET_5_(a, ...) o_ a; CHOIR_SET_4_(__VA_ARGS__)
#define CHOIR_SET_6_(a, ...) o_ a; CHOIR_SET_5_(__VA_ARGS__)
#define CHOIR_SET_7_(a, ...) o_ a; CHOIR_SET_6_(__VA_ARGS__)
#define CHOIR_SET_8_(a, ...) o_ a; CHOIR_SET_7_(__VA_ARGS__)
#define CHOIR_SET_9_(a, ...) o_ a; CHOIR_SET_8_(__VA_ARGS__)
#define CHOIR_SET_10_(a, ...) o_ a; CHOIR_SET_9_(__VA_ARGS__)
#define CHOIR_SET_11_(a, ...) o_ a; CHOIR_SET_10_(__VA_ARGS__)
#define CHOIR_SET_12_(a, ...) o_ a; CHOIR_SET_11_(__VA_ARGS__)
#define CHOIR_SET_13_(a, ...) o_ a; CHOIR_SET_12_(__VA_ARGS__)
#define CHOIR_SET_14_(a, ...) o_ a; CHOIR_SET_13_(__VA_ARGS__)
#define CHOIR_SET_15_(a, ...) o_ a; CHOIR_SET_14_(__VA_ARGS__)
#define CHOIR_SET_16_(a, ...) o_ a; CHOIR_SET_15_(__VA_ARGS__)
#define CHOIR_SET_17_(a, ...) o_ a; CHOIR_SET_16_(__VA_ARGS__)
#define CHOIR_SET_18_(a, ...) o_ a; CHOIR_SET_17_(__VA_ARGS__)
#define CHOIR_SET_19_(a, ...) o_ a; CHOIR_SET_18_(__VA_ARGS__)
#define CHOIR_SET_20_(a, ...) o_ a; CHOIR_SET_19_(__VA_ARGS__)
#define CHOIR_SET_21_(a, ...) o_ a; CHOIR_SET_20_(__VA_ARGS__)
#define CHOIR_SET_22_(a, ...) o_ a; CHOIR_SET_21_(__VA_ARGS__)
#define CHOIR_SET_23_(a, ...) o_ a; CHOIR_SET_22_(__VA_ARGS__)
#define CHOIR_SET_24_(a, ...) o_ a; CHOIR_SET_23_(__VA_ARGS__)
#define CHOIR_SET_25_(a, ...) o_ a; CHOIR_SET_24_(__VA_ARGS__)
#define CHOIR_SET_26_(a, ...) o_ a; CHOIR_SET_25_(__VA_ARGS__)
#define CHOIR_SET_27_(a, ...) o_ a; CHOIR_SET_26_(__VA_ARGS__)
#define CHOIR_SET_28_(a, ...) o_ a; CHOIR_SET_27_(__VA_ARGS__)
#define CHOIR_SET_29_(a, ...) o_ a; CHOIR_SET_28_(__VA_ARGS__)
#define CHOIR_SET_30_(a, ...) o_ a; CHOIR_SET_29_(__VA_ARGS__)
#define CHOIR_SET_31_(a, ...) o_ a; CHOIR_SET_30_(__VA_ARGS__)
#define CHOIR_SET_32_(a, ...) o_ a; CHOIR_SET_31_(__VA_ARGS__)
// clang-format on
#endif
