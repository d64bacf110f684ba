// The messages of a coordinator's job, and their fields.
#pragma once

#include "net/hub.h"

enum {
	// Coordinator to worker: closure u64, attempt u32, function u32, arguments bytes.
	CHI_MESSAGE_RUN = CHI_NET_OWN,
	// Worker to coordinator: closure u64, status u32, text, result bytes, then
	// of its pushes: count u64, sum u64 and maximum u64 of their staleness; changes u64.
	CHI_MESSAGE_DONE,
	// Coordinator to server: incarnation u64 of a worker that was given up.
	CHI_MESSAGE_FENCE,
	// Coordinator to server: closure u64, which is finished.
	CHI_MESSAGE_FORGET,
	// Coordinator to server: nothing; the answer STATE has the server's model.
	CHI_MESSAGE_SNAPSHOT,
	CHI_MESSAGE_STATE,
	// Coordinator to server: a model's state. The answer is ANSWER.
	CHI_MESSAGE_RESTORE,
	// Worker to server: version u64 that it has, count u32, numbers u32 of variables. The answer
	// VALUES: version u64, then their values, unless the versions are equal.
	CHI_MESSAGE_PULL,
	// Worker to server: number u32 of a variable, rows u64, then each row i64; or CHI_ALL_ROWS.
	// The answer is VALUES, too.
	CHI_MESSAGE_ROWS,
	CHI_MESSAGE_VALUES,
	// Worker to server: closure u64, ordinal u64, then what changes. The answer is ANSWER.
	CHI_MESSAGE_PUSH,
	CHI_MESSAGE_ASSIGN,
	// Status u32, text; to a worker also staleness u64: the changes between its pull and its push.
	CHI_MESSAGE_ANSWER
};
#define CHI_ALL_ROWS UINT64_MAX
#define CHI_NO_STALENESS UINT64_MAX

// Of pushes: how many changes were made between their pulls and them.
typedef struct {
	uint64_t pushes, sum, max;
} chi_staleness;

enum { CHI_SERVERS_MAX = 16 }; // their addresses must fit in a welcome
