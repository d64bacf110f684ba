// The suites that check an implementation of a table against the table's header. They are a
// separate library, libchoir-suites.a, which calls only public functions. Link with
// `pkg-config --libs choir-suites`, or with CMake's choir::suites and choir::choir.
#pragma once

#include "device_table.h"

CHOIR_C_BEGIN

// Called after each check. check says what must hold: "a fill sets only its bytes". result is
// CHOIR_OK with the text "", or a failure with its text. check and text are valid only during the
// call.
typedef void choir_suite_fn(const char *check, choir_status result, const char *text, void *user);

// What the suite checks.
typedef struct {
	size_t size; // of this struct; CHOIR_OPTIONS sets it
	// The program sets the field of one table: .device or .kernels.

	// A table of devices, which need not be registered. The suite opens device 0 and, if there
	// are two, device 1. Both stay open.
	const choir_device_table *device;
	// Queues fn on a stream of the device, with a copy of the bytes at arg. The first failure of
	// fn becomes a failure of the stream. With submit, the suite checks time limits and failures
	// of queued work. submit should be NULL for a device that finishes work before a call
	// returns.
	choir_status (*submit)(
			void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);

	// The name of a device, "cuda:0". The suite checks the registered kernels of its kind. For
	// each operation of kernel_table.h and each dtype, it makes random inputs, and compares the
	// results with those of the CPU's plain kernel: exactly, or up to rounding. The reference for
	// f32 is the plain kernel for f64. The same call twice must give the same bits. Operations
	// without a kernel are left out.
	const char *kernels;
	// Checks only kernels whose table has this name. NULL: for each call, the kernel that Choir
	// chooses.
	const char *kernel_name;
	// Checks only kernels of this operation. NULL: of all operations.
	const char *operation;
} choir_suite_options;

// Runs all checks, also after a failed check. report may be NULL. CHOIR_INTERNAL: a check failed;
// the text names the first failed check and the number of failed checks. CHOIR_INVALID: no table,
// more than one, or a table without the slots that all checks need. CHOIR_NOT_FOUND: count finds
// no device, or the device has no kernel. Threads: one call at a time.
CHOIR_MUST_CHECK choir_status choir_suite_run(
		const choir_suite_options *options, choir_suite_fn *report, void *user);

CHOIR_C_END
