// The conformance suite of the device table: what every kind of device must do, whatever it is
// made of. An implementation names two of its devices and, if it works asynchronously, how to
// queue a function.
#pragma once

#include "device/device.h"

typedef struct {
	const char *first, *second; // two devices of the kind
	// Queues a function with a copy of its argument; NULL: everything is done when a call returns.
	choir_status (*submit)(
			void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);
} device_subject;

// Runs all tests; the number of those that failed.
int device_suite_run(const char *name, const device_subject *subject);
