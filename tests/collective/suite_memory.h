// The memory and the streams of devices, for the public suite of cross-device operations.
#pragma once

#include "choir/extend/suite.h"
#include "device/device.h"

extern const choir_suite_memory suite_memory;

// The stream that the suite uses on a device. NULL: it cannot be opened.
chi_stream *suite_stream_of(choir_device *d);
void suite_forget_streams(void);

// A choir_suite_fn: prints failed checks, and counts all checks in the int at user.
void suite_note(const char *check, choir_status result, const char *text, void *user);
