// How calls fail. Actions return choir_status. Expressions and constructors return NULL; NULL in gives
// NULL out and never replaces the first cause, which the frame (or else the thread) keeps. Each
// failure is one line on the caller's thread, subject first. Threads: any.
#pragma once

#include "export.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_OK = 0,
	CHOIR_END, // no more data: not an error, and no text
	CHOIR_INVALID, // an argument or a use that can never work
	CHOIR_STATE, // right call, wrong moment: context, scope, stale read, replicas diverged
	CHOIR_NOT_FOUND, // no such file, device, leaf; the text lists those that exist
	CHOIR_NO_MEMORY,
	CHOIR_IO, // the system refused; the text says what and why
	CHOIR_CORRUPT, // a file or message is not what it says it is
	CHOIR_UNSUPPORTED, // a dtype, device or option that this build cannot do
	CHOIR_CANCELLED, // stopped because another replica or worker failed first
	CHOIR_PEER_LOST, // a worker is gone
	CHOIR_TIMEOUT,
	CHOIR_INTERNAL // a bug in Choir
} choir_status;

const char *choir_status_name(choir_status status); // "CHOIR_IO"

// The last failure on this thread: one line, "" and CHOIR_OK if there was none.
const char *choir_error(void);
choir_status choir_error_status(void);
// Records a failure and returns status.
choir_status choir_fail(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);

#define CHOIR_TRY(expr) \
	do { \
		choir_status try_status_ = (expr); \
		if (try_status_ != CHOIR_OK) \
			return try_status_; \
	} while (0)

// For programs only: print the failure and exit(1).
#define CHOIR_CHECK(expr) choir_check((expr), __FILE__, __LINE__)
#define CHOIR_CHECK_NEW(object) choir_check_new((object), __FILE__, __LINE__)
void choir_check(choir_status status, const char *file, int line);
void choir_check_new(const void *object, const char *file, int line);

CHOIR_C_END
