// The conformance suite of cross-device operations: what every table must do, on whatever devices.
#pragma once

#include "collective/cross_device_ops.h"

typedef struct {
	const char *ops; // a name that is registered
	const char *device[4];
} ops_subject;

// Runs all tests; the number of those that failed.
int ops_suite_run(const char *name, const ops_subject *subject);
