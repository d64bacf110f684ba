// Shared by the tests of distributed datasets: a dataset of numbers, a mirrored strategy, and the
// dataset distributed over it.
#pragma once

#include "choir/input.h"
#include "choir/source.h"

#include "base/status.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { COUNTED = 64 };
static const int64_t numbers[COUNTED] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
	17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
	40 };

// Makes the numbers 0, 1, ... n - 1 (n at most COUNTED).
static inline choir_dataset *counting(int64_t n)
{
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, numbers };
	return choir_memory_dataset_new(n, 1, &column, false);
}

// Makes a mirrored strategy; never NULL.
static inline choir_strategy *mirrored(int replicas, const char *devices)
{
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = replicas, .devices = devices));
	assert_non_null(s);
	return s;
}

// Distributes a dataset over a strategy; never NULL.
static inline choir_distributed_dataset *dealt(
		choir_strategy *s, choir_dataset *d, int64_t global_batch)
{
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(
			s, d, CHOIR_OPTIONS(choir_input_options, .global_batch = global_batch));
	assert_non_null(data);
	return data;
}

// Asserts the status of the last failure and facts of its text (test.h), and clears it.
static inline void assert_failed(choir_status status, const char *text)
{
	assert_int_equal(choir_error_status(), status);
	if (!text_holds(choir_error(), text))
		fail_msg("\"%s\" does not say \"%s\"", choir_error(), text);
	chi_error_clear();
}
