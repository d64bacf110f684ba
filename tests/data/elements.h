// What the tests of datasets share: sources of numbers, of both kinds (random access and
// streams), a reader that goes through a whole pass, and checks of failures.
#pragma once

#include "choir/source.h"
#include "data/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

// Examples 0, 1, ... n-1 in a column "number" (i64).
choir_dataset *numbers_in_memory(int64_t n);
// The same as a stream whose length nobody knows. fail_at: the example that fails; -1: none.
// asked (may be NULL) counts the calls.
choir_dataset *numbers_as_stream(int64_t n);
typedef struct {
	int64_t n, fail_at;
	int64_t asked;
	const char *message; // of the failure; NULL: it says nothing
} number_source;
choir_dataset *numbers_from(number_source *s);

// What a pass of one i64 column gave: numbers, and the size of each element.
enum { MAX_NUMBERS = 4096 };
typedef struct {
	int64_t n, elements;
	int64_t number[MAX_NUMBERS];
	int64_t size[MAX_NUMBERS];
	choir_status status; // how it ended
} pass;
// Reads to the end, a failure, or until most numbers are there.
void read_pass(choir_dataset *d, int64_t max, pass *p);
// Reads a whole pass that must end well and compares it with expected numbers; then rewinds.
void assert_numbers(choir_dataset *d, int64_t n, const int64_t expected[]);
// The same of the sizes of elements.
void assert_sizes(choir_dataset *d, int64_t n, const int64_t expected[]);

// The thread's last failure has this status and holds this text. Forgets it.
void assert_failure(choir_status status, const char *text);
// d is NULL for that reason.
void assert_refused(choir_dataset *d, choir_status status, const char *text);
// The next element is that failure, now and again.
void assert_next_fails(choir_dataset *d, choir_status status, const char *text);

// Reads to the end or a failure, each element into e's memory, and frees d. d may be NULL: its
// failure.
choir_status read_to_end(choir_dataset *d, chi_element e);
// Calls use with the n-th allocation failing, for every n from 1 on, until none is left to fail.
// use frees what it makes, and gives how it went: CHOIR_OK or CHOIR_END without a failure, and
// else CHOIR_NO_MEMORY, with a text.
typedef choir_status use_fn(void *user);
void assert_every_allocation(use_fn *use, void *user);

#define NUMBERS(...) \
	(int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) \
	{ \
		__VA_ARGS__ \
	}
