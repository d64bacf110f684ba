// How calls fail. An action returns a choir_status. A constructor returns the object or NULL. An
// expression returns a tensor (or another object of its frame) or NULL, also for a NULL operand.
// The frame keeps the first failure, so a formula needs one check, at its end. Getters and
// destructors cannot fail; destructors accept NULL.
//
// Each thread keeps its last failure, with one line of text that names the object, what was found
// and what was needed: "matmul: [16, 784] times [10, 784] does not fit". Choir prints no failure,
// and only choir_check and choir_check_new end the program.
// Threads: any.
//
// A program's function that Choir calls must return. In C++ it catches exceptions and returns
// choir_fail(..., e.what()); an exception that leaves a noexcept function ends in std::terminate.
// If a replica, merge or update function does not return:
// - A C++ exception or longjmp to code outside of Choir, on the thread that called Choir: this
//   thread can only free the strategy. Its other calls in cross-replica context fail with
//   CHOIR_STATE. Replicas on other threads continue until choir_strategy_free returns; objects
//   that they use must live until then.
// - pthread_exit on the thread that called Choir: the strategy can only be freed. Any thread can
//   free it.
// - pthread_exit on one of Choir's threads: the run fails with CHOIR_STATE. The text names the
//   replica. The strategy can run again.
// - A C++ exception on one of Choir's threads ends the program (std::terminate).
// - pthread_cancel of one of Choir's threads has no effect.
//
// These functions must return, else the behavior is undefined: elementwise updates, functions of
// datasets, initializers, kernels, and worker functions on the thread of
// choir_strategy_run_workers. oneDNN and HDF5 may end the process if memory is exhausted.
#pragma once

#include "export.h"

CHOIR_C_BEGIN

// The result of a call.
typedef enum {
	CHOIR_OK = 0,
	CHOIR_END, // the data have ended; not a failure, has no text
	CHOIR_INVALID, // wrong in every state
	CHOIR_STATE, // wrong in this state: context, scope, stale read, diverged replicas
	CHOIR_NOT_FOUND, // no such file, device or name; the text lists those that exist
	CHOIR_NO_MEMORY, // no memory on the host or on a device
	CHOIR_IO, // the operating system refused a request
	CHOIR_CORRUPT, // a file or message is damaged, or of another format
	CHOIR_UNSUPPORTED, // a dtype, device or option that this build does not support
	CHOIR_CANCELLED, // another replica or worker failed first
	CHOIR_PEER_LOST, // another worker is lost
	CHOIR_TIMEOUT, // an operation took longer than its time limit
	CHOIR_INTERNAL // a bug in Choir
} choir_status;

// "CHOIR_IO", or "unknown status".
const char *choir_status_name(choir_status status);

// This thread's last failure: one line of at most 511 bytes, "" before any. Valid until the next
// failure.
const char *choir_error(void);

// The status of this thread's last failure, or CHOIR_OK.
CHOIR_MUST_CHECK choir_status choir_error_status(void);

// Records a failure of a program's function, and returns status. The arguments are those of
// printf, but every locale gives a decimal point. choir_error() may be an argument. Line ends
// become spaces. A long text is cut and ends in "...". An empty text becomes the status's name.
// CHOIR_OK and CHOIR_END record nothing. Allocates nothing and keeps errno.
choir_status choir_fail(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);

// Like choir_fail with the format "%s", for languages that cannot call functions like printf.
CHOIR_MUST_CHECK choir_status choir_fail_text(choir_status status, const char *text);

// Returns the status of expr from the enclosing function, unless it is CHOIR_OK.
#define CHOIR_TRY(expr) \
	do { \
		choir_status try_status_ = (expr); \
		if (try_status_ != CHOIR_OK) \
			return try_status_; \
	} while (0)

// For programs, not for libraries. CHOIR_CHECK takes an action, and counts CHOIR_END as a failure.
// CHOIR_CHECK_NEW takes a constructor. A failure prints "FILE:LINE: STATUS: TEXT" to stderr and
// calls exit(1).
#define CHOIR_CHECK(expr) choir_check((expr), __FILE__, __LINE__)
#define CHOIR_CHECK_NEW(object) choir_check_new((object), __FILE__, __LINE__)

// For the macros. choir_check prints the last failure's text only if it has this status.
void choir_check(choir_status status, const char *file, int line);

// Prints and exits if object is NULL.
void choir_check_new(const void *object, const char *file, int line);

CHOIR_C_END
