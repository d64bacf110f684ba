// How calls fail. There are four shapes of function, each with one way to fail. An action returns
// a choir_status. A constructor returns the object or NULL. An expression returns a tensor (or
// another object that its frame owns) or NULL; NULL that comes in goes out as NULL and never
// replaces the first cause, which the frame keeps, so that a formula of twenty operations needs
// one check at its end. A getter or a destructor cannot fail; destructors take NULL. Each failure
// is also one line of text on the thread that it happened on, subject first, with what was found
// and what was needed: "matmul: [16, 784] times [10, 784] does not fit". Nothing in Choir prints
// it, and nothing but choir_check ends the program. Threads: any; each has a last failure of its
// own.
//
// A function of the program's that Choir calls ends by returning. In C++ it catches exceptions and
// returns choir_fail(..., e.what()); declared noexcept, a forgotten exception ends in
// std::terminate. Replica, merge and update functions that end otherwise:
// - A C++ exception or longjmp, caught outside of Choir on the thread that called Choir: later
//   calls on that thread that need cross-replica context are CHOIR_STATE until the same thread
//   calls choir_strategy_free, which is all that the strategy can still do. Replicas on other
//   threads go on until that returns: what they use must live as long.
// - pthread_exit on the thread that called Choir: the strategy can only be freed, by any thread.
// - pthread_exit on one of Choir's threads: the run fails with CHOIR_STATE, naming the replica,
//   and the strategy can run again. A C++ exception there ends the program (std::terminate).
// - pthread_cancel of one of Choir's threads has no effect.
// All else is undefined: so to leave an elementwise update, a function of a dataset, an
// initializer, a kernel, or a worker function on the thread of choir_strategy_run_workers.
// C++ libraries that Choir uses (oneDNN, HDF5) may end the process where there is no memory left.
#pragma once

#include "export.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_OK = 0,
	CHOIR_END, // no more data: not a failure, and it has no text
	CHOIR_INVALID, // an argument or a use that can never work
	CHOIR_STATE, // right call, wrong moment: context, scope, stale read, replicas diverged
	CHOIR_NOT_FOUND, // no such file, device, leaf; the text lists those that exist
	CHOIR_NO_MEMORY, // of the host or of a device
	CHOIR_IO, // the system refused; the text says what and why
	CHOIR_CORRUPT, // a file or message is not what it says it is
	CHOIR_UNSUPPORTED, // a dtype, device or option that this build cannot do
	CHOIR_CANCELLED, // stopped because another replica or worker failed first
	CHOIR_PEER_LOST, // a worker is gone
	CHOIR_TIMEOUT, // something took longer than its deadline
	CHOIR_INTERNAL // a bug in Choir
} choir_status;

// The name of a status as it is written here, "CHOIR_IO", or "unknown status". Constant text.
const char *choir_status_name(choir_status status);

// The text of the last failure on this thread: one line of at most 511 bytes, "" before the first
// one. Calls that work leave it alone, so it means something only after a call that failed. It
// belongs to the thread and stays as it is until the thread's next failure.
const char *choir_error(void);

// The status that goes with choir_error; CHOIR_OK before the first failure.
CHOIR_MUST_CHECK choir_status choir_error_status(void);

// Records a failure of one's own, as callbacks do before they return, and returns status. fmt and
// what follows are as printf's, with a decimal point whatever the locale says. The arguments may
// contain choir_error() itself. Line ends become spaces, text that is too long is cut and ends in
// "...", and an empty text becomes the status's name. CHOIR_OK and CHOIR_END record nothing. It
// allocates nothing, cannot fail and leaves errno alone.
choir_status choir_fail(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);

// Returns from the function around it with the status of expr, unless that is CHOIR_OK.
#define CHOIR_TRY(expr) \
	do { \
		choir_status try_status_ = (expr); \
		if (try_status_ != CHOIR_OK) \
			return try_status_; \
	} while (0)

// For programs only: if an action (CHOIR_CHECK) or a constructor (CHOIR_CHECK_NEW) has failed,
// print where and why to stderr and exit(1). CHOIR_END counts as failed.
#define CHOIR_CHECK(expr) choir_check((expr), __FILE__, __LINE__)
#define CHOIR_CHECK_NEW(object) choir_check_new((object), __FILE__, __LINE__)

// What CHOIR_CHECK calls. Prints "FILE:LINE: STATUS: TEXT" and ends the program unless status is
// CHOIR_OK; the text is that of the thread's last failure if it has this status.
void choir_check(choir_status status, const char *file, int line);

// What CHOIR_CHECK_NEW calls: the same for an object that is NULL, with the thread's last failure.
void choir_check_new(const void *object, const char *file, int line);

CHOIR_C_END
