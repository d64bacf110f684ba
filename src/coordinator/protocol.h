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
	// Coordinator to server: incarnation u64 of a lost worker.
	CHI_MESSAGE_FENCE,
	// Coordinator to server: closure u64 that is finished.
	CHI_MESSAGE_FORGET,
	// Coordinator to server, without fields. The answer STATE is the server's model.
	CHI_MESSAGE_SNAPSHOT,
	CHI_MESSAGE_STATE,
	// Coordinator to server: a model's state. The answer is ANSWER.
	CHI_MESSAGE_RESTORE,
	// Worker to server: the worker's version u64, count u32, numbers u32 of variables. The answer
	// VALUES: version u64, then their values unless the versions are equal.
	CHI_MESSAGE_PULL,
	// Worker to server: number u32 of a variable, rows u64, then each row i64; or CHI_ALL_ROWS.
	// The answer is VALUES.
	CHI_MESSAGE_ROWS,
	CHI_MESSAGE_VALUES,
	// As ROWS, but VALUES has version u64 and the address u64 at which the server keeps the rows
	// until the worker asks again.
	CHI_MESSAGE_ROWS_THERE,
	// Worker to server: closure u64, ordinal u64, version u64 of the last values read, then the
	// change. The answer is ANSWER.
	CHI_MESSAGE_PUSH,
	CHI_MESSAGE_ASSIGN,
	// Worker to server: a PUSH in the worker's memory (large_message.h): token u64, address u64 of
	// the token, as long as the message lasts, the message's place. The answer is ANSWER, or
	// DECLINED if the memory cannot be read.
	CHI_MESSAGE_OFFER,
	CHI_MESSAGE_DECLINED,
	// Status u32, text; to a worker also staleness u64 (changes between its pull and push).
	CHI_MESSAGE_ANSWER
};
#define CHI_ALL_ROWS UINT64_MAX
#define CHI_NO_STALENESS UINT64_MAX

// A server's values, for workers on its host. Its welcome has the address.
typedef struct {
	uint64_t incarnation; // proves the right process
	chi_atomic64 changes; // odd while values change
	uint64_t version, n;
	const uint64_t *address; // of n variables
} chi_open_values;

// Of pushes: the numbers of changes between their pulls and them.
typedef struct {
	uint64_t pushes, sum, max;
} chi_staleness;

enum { CHI_SERVERS_MAX = 16 }; // their addresses must fit in a welcome
