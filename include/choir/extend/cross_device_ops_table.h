// The table of cross-device operations, which sum and copy tensors between a strategy's devices,
// the members of its group. A member joins a collective with its partial sums, then waits for the
// result. One thread may join for several members, then wait for them in any order.
//
// Sums follow the canonical tree over replicas (docs/glossary.md). Rules of all tables, and of
// slots marked (any): extend.h.
#pragma once

#include "../tensor.h"
#include "device_table.h"

CHOIR_C_BEGIN

// What a collective computes.
typedef enum {
	CHOIR_ALL_REDUCE = 1, // over all replicas, for members that want a result
	CHOIR_BROADCAST // root's only partial sum, unchanged, for members that want it
} choir_collective_kind;

// The sum over replicas lo to hi - 1, a node of the canonical tree. The member runs these
// replicas, but not all of the parent node's.
typedef struct {
	int lo, hi;
	void *data; // of the collective's dtype, packed, on the member's device
} choir_partial_sum;

// One member's part in a collective.
typedef struct {
	size_t size;
	// The fields up to divisor are equal in all members. If sequence, name, kind, dtype, elements
	// or root differ, all members fail with CHOIR_STATE and one text that names two devices and
	// collectives.
	uint64_t sequence;
	const char *name; // for error texts
	choir_collective_kind kind;
	choir_dtype dtype;
	int64_t elements; // of each partial sum and of the result; may be 0
	int root; // the member that broadcasts
	double divisor; // of the sum (1: none); floating dtypes only
	size_t n; // the number of this member's partial sums
	const choir_partial_sum *partial_sums; // in ascending order
	void *stream; // of the device; its tasks compute the partial sums and use the result
	// On the member's device; overlaps no partial sum. NULL: this member wants no result. Members
	// with host memory may pass the same memory, which is written once.
	void *result;
	// Called when the elements [first, first + count) of the result are final, on any thread
	// inside wait; may be NULL. Of members that share a result, only one's is called for each
	// element. first is a multiple of 8192, and so is count except in the last chunk. data is this
	// chunk, in scratch memory if result is NULL. If done fails, the collective fails.
	choir_status (*done)(void *user, int64_t first, int64_t count, const void *data);
	void *user;
	int64_t batch_bytes; // of all results of this collective's batch; 0: no batch
	// Equal in all members. True: done is NULL in all members, and wait may return before the
	// result is final. Work queued on stream after wait starts only when it is final and the
	// partial sums have been read. If the collective's queued work fails, the stream fails.
	bool in_stream;
} choir_collective;

// The devices of one strategy.
typedef struct {
	size_t size;
	int members; // number of devices; device 0 runs the first replicas, device 1 the next, ..
	int replicas; // of all members
	choir_device *const *devices;
} choir_group;

// Slots may be NULL: score gives 0, join and wait fail with CHOIR_UNSUPPORTED, others do nothing.
typedef struct choir_cross_device_ops_table {
	size_t size;
	uint32_t version;
	const char *name; // "ring", for choir_strategy_options.cross_device_ops
	size_t self_size; // bytes; one self for each group
	// How well the algorithm suits the group and a collective of this many bytes, from 0 (not at
	// all) to 100. A new strategy takes the named table, else that with the highest score for an
	// all-reduce of 1 MiB. "direct" has 100 if all members have host memory, else 0. "ring" has 20
	// with at least 32 KiB for each member and three separate memories (two if none is the
	// host's), "hierarchical_copy" 10 with four or more; else 1. "reduce_to_one_device" has 1.
	int (*score)(const choir_group *group, choir_collective_kind kind, int64_t bytes);
	choir_status (*open)(void *self, const choir_group *group); // group outlives self
	void (*close)(void *self);
	// (any) Joins the next collective for a member, and sets *request to a number for wait. A
	// member has at most 64 requests at a time. All members join every collective, in the same
	// order. *c and its partial sums are valid until wait returns.
	choir_status (*join)(void *self, int member, const choir_collective *c, uint64_t *request);
	// (any) Waits until the member's result is final and its partial sums are unused. May do other
	// members' work. CHOIR_TIMEOUT: no other member has joined for this number of seconds
	// (negative: no limit). Choir then calls abort and reset. It calls wait at most once for a
	// request, and not after a failure. After wait, even a failed one, the collective does not use
	// this member's *c, partial sums and result.
	choir_status (*wait)(void *self, int member, uint64_t request, double seconds);
	// (any) Makes the group's present and later joins and waits return CHOIR_CANCELLED, until
	// reset.
	void (*abort)(void *self);
	// Lets members join again. Called after an abort, when no member is in a call.
	void (*reset)(void *self);
} choir_cross_device_ops_table;

// Registers a table for .cross_device_ops of strategies.
CHOIR_MUST_CHECK choir_status choir_register_cross_device_ops(
		const choir_cross_device_ops_table *table);

CHOIR_C_END
