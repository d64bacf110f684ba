// The suite that checks an implementation of a table against the table's header. It is a separate
// library, libchoir-suites.a, which calls only public functions. Link with
// `pkg-config --libs choir-suites`, or with CMake's choir::suites and choir::choir.
#pragma once

#include "device_table.h"

CHOIR_C_BEGIN

// Called after each check. check says what must hold: "a fill sets only its bytes". result is
// CHOIR_OK with the text "", or a failure with its text. check and text are valid only during the
// call.
typedef void choir_suite_fn(const char *check, choir_status result, const char *text, void *user);

typedef struct {
	size_t size; // of this struct; CHOIR_OPTIONS sets it
	// The table to check, which need not be registered. The suite opens device 0 and, if there
	// are two, device 1. Both stay open.
	const choir_device_table *device;
	// Queues fn on a stream of the device, with a copy of the bytes at arg. The first failure of
	// fn becomes a failure of the stream. With submit, the suite checks time limits and failures
	// of queued work. submit should be NULL for a device that finishes work before a call
	// returns.
	choir_status (*submit)(
			void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);
} choir_suite_options;

// Runs all checks, also after a failed check. report may be NULL. CHOIR_INTERNAL: a check failed;
// the text names the first failed check and the number of failed checks. CHOIR_INVALID: no table,
// or the table lacks slots that all checks need. CHOIR_NOT_FOUND: count finds no device. Threads:
// one call at a time.
CHOIR_MUST_CHECK choir_status choir_suite_run(
		const choir_suite_options *options, choir_suite_fn *report, void *user);

CHOIR_C_END
