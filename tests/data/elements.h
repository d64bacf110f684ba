// Shared by the tests of datasets: sources of numbers, with random access and as streams, a reader
// of whole passes, and checks of failures.
#pragma once

#include "choir/source.h"
#include "data/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

// Makes examples 0, 1, ... n-1 in a column "number" (i64).
choir_dataset *numbers_in_memory(int64_t n);
// Makes the same as a stream of unknown length. fail_at: the example that fails; -1: none. asked
// counts the calls.
choir_dataset *numbers_as_stream(int64_t n);
typedef struct {
	int64_t n, fail_at;
	int64_t asked;
	const char *message; // of the failure; NULL: none
} number_source;
choir_dataset *numbers_from(number_source *s);

// One pass of an i64 column: its numbers, and the number of them in each element.
enum { MAX_NUMBERS = 4096 };
typedef struct {
	int64_t n, elements;
	int64_t number[MAX_NUMBERS];
	int64_t size[MAX_NUMBERS];
	choir_status status; // its end
} pass;
// Reads to the end, a failure, or until there are max numbers.
void read_pass(choir_dataset *d, int64_t max, pass *p);
// Asserts that a pass gives exactly these numbers; then rewinds.
void assert_numbers(choir_dataset *d, int64_t n, const int64_t expected[]);
// Asserts that the elements of a pass have these sizes; then rewinds.
void assert_sizes(choir_dataset *d, int64_t n, const int64_t expected[]);

// Asserts the status of the last failure and facts of its text (test.h), and clears it.
void assert_failure(choir_status status, const char *text);
// Asserts that d is NULL because of that failure.
void assert_refused(choir_dataset *d, choir_status status, const char *text);
// Asserts that the next two reads fail so.
void assert_next_fails(choir_dataset *d, choir_status status, const char *text);

// Reads to the end or a failure, each element into e's memory, and frees d. Returns the last
// status. d may be NULL.
choir_status read_to_end(choir_dataset *d, chi_element e);
// Calls use again and again; in call n, the n-th allocation fails. Stops when none fails. use
// frees what it makes and returns CHOIR_OK or CHOIR_END, or after the failure CHOIR_NO_MEMORY with
// a text.
typedef choir_status use_fn(void *user);
void assert_every_allocation(use_fn *use, void *user);

#define NUMBERS(...) \
	(int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) \
	{ \
		__VA_ARGS__ \
	}
