// The conformance suite of cross-device operations, for any table on any devices.
#pragma once

#include "collective/cross_device_ops.h"

typedef struct {
	const char *ops; // a registered name
	const char *device[4];
} ops_subject;

// Runs all tests; returns the number of failed ones.
int ops_suite_run(const char *name, const ops_subject *subject);
// For the suite's files: the number of a subject's devices, and the part in stream order.
int ops_subject_members(const ops_subject *s);
int ops_stream_suite_run(const char *name, const ops_subject *s);
