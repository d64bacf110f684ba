// The messages of a coordinator's job, and their fields.
#pragma once

#include "base/atomic.h"
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
	// The same question. The answer is VALUES, too: version u64, and the address u64 at which the
	// server keeps the rows until the worker asks again.
	CHI_MESSAGE_ROWS_THERE,
	// Worker to server: closure u64, ordinal u64, version u64 of the last values that it has read,
	// then what changes. The answer is ANSWER.
	CHI_MESSAGE_PUSH,
	CHI_MESSAGE_ASSIGN,
	// Worker to server: a PUSH that lies in the worker's memory (large_message.h): token u64,
	// address u64 of the token, which lies there as long as the message, and the message. The
	// answer is ANSWER, or DECLINED: it could not be read.
	CHI_MESSAGE_OFFER,
	CHI_MESSAGE_DECLINED,
	// Status u32, text; to a worker also staleness u64: the changes between its pull and its push.
	CHI_MESSAGE_ANSWER
};
#define CHI_ALL_ROWS UINT64_MAX
#define CHI_NO_STALENESS UINT64_MAX

// Where a server's values lie. Workers on its host read them without a message. Its address is in
// the server's welcome.
typedef struct {
	uint64_t incarnation; // tells a reader whether this is the right process
	chi_atomic64 changes; // odd while values change
	uint64_t version, n;
	const uint64_t *address; // of n variables' values
} chi_open_values;

// Of pushes: how many changes were made between their pulls and them.
typedef struct {
	uint64_t pushes, sum, max;
} chi_staleness;

enum { CHI_SERVERS_MAX = 16 }; // their addresses must fit in a welcome
