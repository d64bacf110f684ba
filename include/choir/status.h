// How calls fail. An action returns a choir_status. A constructor returns the object, or NULL
// after a failure. An expression returns a tensor or another object of its frame, or NULL after a
// failure or for a NULL operand. The frame keeps the first failure, so check once at the end of a
// formula. With a NULL tensor or value, an action returns the thread's last failure, else
// CHOIR_INVALID. Getters and destructors cannot fail; destructors accept NULL.
//
// Each thread keeps its last failure: a status, and a line with the object, what was found and
// what was needed, such as "matmul: [16, 784] times [10, 784] does not fit". Only choir_check and
// choir_check_new print failures and end the program.
// Threads: any.
//
// A function of the program that Choir calls must return. In C++ it must catch exceptions, and
// return choir_fail(..., e.what()). If a replica, merge or update function does not return:
// - A C++ exception or longjmp to the program's code, on the thread that called Choir: this thread
//   can then only free the strategy. Its other calls in cross-replica context fail with
//   CHOIR_STATE. Replicas on other threads continue until choir_strategy_free returns; their
//   objects must live until then.
// - pthread_exit on the thread that called Choir: the strategy can then only be freed, by any
//   thread.
// - pthread_exit on one of Choir's threads: the run fails with CHOIR_STATE, naming the replica.
//   The strategy can run again.
// - A C++ exception on one of Choir's threads ends the program (std::terminate).
// - pthread_cancel of one of Choir's threads has no effect.
//
// The behavior is undefined if one of these functions does not return: an elementwise update, a
// function of a dataset, an initializer, a kernel, or a worker function on the thread of
// choir_strategy_run_workers.
//
// oneDNN and HDF5 may end the process if memory is exhausted.
#pragma once

#include "export.h"

CHOIR_C_BEGIN

// The result of a call.
typedef enum {
	CHOIR_OK = 0,
	CHOIR_END, // the data have ended; not a failure, has no text
	CHOIR_INVALID, // the arguments are wrong, in any state
	CHOIR_STATE, // not allowed in this state: context, scope, stale read, diverged replicas
	CHOIR_NOT_FOUND, // no such file, device or name; the text lists known ones
	CHOIR_NO_MEMORY, // no memory on the host or on a device
	CHOIR_IO, // the operating system refused a request
	CHOIR_CORRUPT, // a file or message is damaged, or has another format
	CHOIR_UNSUPPORTED, // this build does not support the dtype, device or option
	CHOIR_CANCELLED, // another replica or worker failed first
	CHOIR_PEER_LOST, // another worker is lost
	CHOIR_TIMEOUT, // an operation took longer than its time limit
	CHOIR_INTERNAL // a bug in Choir
} choir_status;

// "CHOIR_IO", or "unknown status".
const char *choir_status_name(choir_status status);

// The text of this thread's last failure: one line of at most 511 bytes, valid until the next; ""
// before the first.
const char *choir_error(void);

// The status of this thread's last failure, or CHOIR_OK.
CHOIR_MUST_CHECK choir_status choir_error_status(void);

// Records a failure of a program's function, and returns status. The arguments are printf's, with
// a decimal point in every locale, perhaps choir_error(). Line ends become spaces. A long text
// ends in "...", an empty one becomes the status's name. CHOIR_OK and CHOIR_END record nothing.
// Allocates nothing and keeps errno.
choir_status choir_fail(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);

// choir_fail with the format "%s", for languages without variable arguments.
CHOIR_MUST_CHECK choir_status choir_fail_text(choir_status status, const char *text);

// Returns the status of expr from the enclosing function, unless it is CHOIR_OK.
#define CHOIR_TRY(expr) \
	do { \
		choir_status try_status_ = (expr); \
		if (try_status_ != CHOIR_OK) \
			return try_status_; \
	} while (0)

// For programs, not for libraries. CHOIR_CHECK takes an action (CHOIR_END is a failure),
// CHOIR_CHECK_NEW a constructor. After a failure they print "FILE:LINE: STATUS: TEXT" to stderr
// and call exit(1).
#define CHOIR_CHECK(expr) choir_check((expr), __FILE__, __LINE__)
#define CHOIR_CHECK_NEW(object) choir_check_new((object), __FILE__, __LINE__)

// For the macros. choir_check prints the last failure's text only if it has this status.
void choir_check(choir_status status, const char *file, int line);

// Prints and exits if object is NULL.
void choir_check_new(const void *object, const char *file, int line);

CHOIR_C_END
