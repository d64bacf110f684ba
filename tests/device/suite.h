// The conformance suite of the device table, for any kind of device. An implementation names two
// of its devices and, if it is asynchronous, a function that queues work.
#pragma once

#include "device/device.h"

typedef struct {
	const char *first, *second; // two devices of this kind
	// Queues fn with a copy of its argument; NULL: the device is synchronous.
	choir_status (*submit)(
			void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);
} device_subject;

// Runs all tests; returns the number of failed ones.
int device_suite_run(const char *name, const device_subject *subject);
