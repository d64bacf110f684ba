// The suites check an implementation of a table (extend.h) against its header. Link with
// `pkg-config --libs choir-suites`, or with CMake's choir::suites and choir::choir.
#pragma once

#include "../status.h"

CHOIR_C_BEGIN

// Gets the result of each check. check names the rule: "a fill sets only its bytes". result is
// CHOIR_OK with the text "", or a failure with its text, valid only during the call.
typedef void choir_suite_fn(const char *check, choir_status result, const char *text, void *user);

typedef struct choir_device choir_device; // device.h

// How the suite of cross-device operations uses devices with their own memory.
typedef struct {
	size_t size;
	// Gives the same stream in each call. NULL: it cannot be opened.
	void *(*stream)(choir_device *d);
	// Gives memory aligned to 64 bytes. NULL: there is not enough.
	void *(*allocate)(choir_device *d, size_t bytes);
	void (*release)(choir_device *d, void *memory, size_t bytes);
	// Copies between host and device, and waits.
	choir_status (*copy)(choir_device *d, void *to, const void *from, size_t bytes);
} choir_suite_memory;

// What choir_suite_run checks.
typedef struct {
	size_t size;
	// Set one of .device, .kernels, .cross_device_ops, .strategy and .transport. The fields after
	// it, up to an empty line, are for the same suite.

	// A table of devices, registered or not. The suite opens device 0 and, if there are two,
	// device 1. Both stay open.
	const struct choir_device_table *device;
	// Queues a call of fn on a stream of the device, and copies arg's bytes. fn's first failure
	// becomes the stream's. NULL for a device that finishes work before a call returns.
	choir_status (*submit)(
			void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);

	// A device such as "cuda:0", to check its kind's kernels. For each operation and dtype of
	// kernel_table.h, results on random inputs are compared with the CPU's plain kernel (for f32,
	// that of f64), exactly or up to rounding. Equal calls must give the same bits.
	const char *kernels;
	// Checks only kernels of this name. NULL: those that Choir chooses.
	const char *kernel_name;
	// Checks only this operation. NULL: all.
	const char *operation;

	// A table of cross-device operations, registered or not. Sums must have the bits of the
	// canonical tree; threads, done, different members, time limits and aborts are checked.
	const struct choir_cross_device_ops_table *cross_device_ops;
	// The devices of the group, at most 4. NULL: "cpu:0,cpu:1,cpu:2".
	const char *members;
	// NULL: the members use host memory, and their streams are NULL.
	const choir_suite_memory *memory;

	// The name of a registered strategy. The suite runs 16 programs with 1 to .max_replicas
	// replicas. Bits and failures must be the mirrored strategy's on the device .model, with the
	// same .precision and .wire. "mirrored" with .cross_device_ops in .strategy_options checks
	// these operations.
	const char *strategy;
	// The suite sets devices, replicas, seed and timeout. NULL: defaults.
	const struct choir_strategy_options *strategy_options;
	// The largest number of replicas; 0: 4.
	int max_replicas;
	// Lists of devices, with NULL at the end. The programs run on each list. NULL: "cpu:0" and
	// "cpu:0,cpu:1".
	const char *const *devices;
	// The mirrored strategy's device, of the kind of .devices. NULL: "cpu:0".
	const char *model;

	// A table of transports, registered or not. In each check two workers, on two threads, open
	// the transport. A check that takes longer than 60 s stops, and does not free its threads and
	// memory.
	const struct choir_transport_table *transport;
	// Gives the argument of open for worker 0 or 1. NULL: the argument is NULL. Each check is a
	// round, numbered from 0, whose workers must be able to connect. user is choir_suite_run's.
	const void *(*argument)(int round, int worker, void *user);
} choir_suite_options;

// Runs all checks of a suite, also after a failure. report may be NULL. CHOIR_INTERNAL: checks
// failed; the text has the first one and their number. CHOIR_INVALID also: a table without a
// needed slot. CHOIR_NOT_FOUND: the table's count is 0, or the device has no kernel.
// Threads: one call at a time.
CHOIR_MUST_CHECK choir_status choir_suite_run(
		const choir_suite_options *options, choir_suite_fn *report, void *user);

CHOIR_C_END
