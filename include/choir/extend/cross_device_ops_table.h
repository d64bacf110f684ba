// The table of cross-device operations: algorithms that sum and copy tensors between the devices
// of a strategy. Each device is a member of the strategy's group. A member joins a collective
// with its partial sums, and waits for the result. Each member may have a thread, or one thread
// may join for several members and wait for them in any order.
//
// Sums are computed in the canonical tree over replicas, which docs/glossary.md defines.
#pragma once

#include "../tensor.h"
#include "device_table.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_ALL_REDUCE = 1, // the sum over all replicas, for members that want a result
	CHOIR_BROADCAST // root's only part, unchanged, for members that want a result
} choir_collective_kind;

// The sum over the replicas lo to hi - 1: a node of the canonical tree, one of the largest that
// contain only replicas of one member.
typedef struct {
	int lo, hi;
	void *data; // elements of the collective's dtype, packed, on the member's device
} choir_partial_sum;

typedef struct {
	size_t size;
	// The fields from here to divisor are equal in all members. If sequence, name, kind, dtype,
	// elements or root differ, replicas have diverged. All members then fail with CHOIR_STATE and
	// the same text, which names two devices and what they joined.
	uint64_t sequence;
	const char *name; // in messages
	choir_collective_kind kind;
	choir_dtype dtype;
	int64_t elements; // of each part and of the result; may be 0
	int root; // the member that broadcasts
	double divisor; // divides the sum (1: no division); floating dtypes only
	size_t n; // parts of this member; their memory is not used after wait
	const choir_partial_sum *partial_sums; // in ascending order
	void *stream; // of the device; the parts are made and the result is used on it
	// Memory for the result, on the member's device; NULL: this member wants no result. Members
	// with host memory may give the same memory, which is written once. The result overlaps no
	// part.
	void *result;
	// Called after elements first to first + count - 1 of the result are final, on any thread
	// inside of wait; NULL: not called. If members share a result, only one of them is called for
	// each element. first is a multiple of 8192, and so is count except at the end. data is this
	// chunk of the result, in scratch memory if result is NULL. If done fails, the collective
	// fails.
	choir_status (*done)(void *user, int64_t first, int64_t count, const void *data);
	void *user;
	int64_t batch_bytes; // of all results in this collective's batch; 0: it has no batch
} choir_collective;

// The members. Each strategy has its own group.
typedef struct {
	size_t size;
	int members; // devices; each carries the next block of replicas
	int replicas; // of all members
	choir_device *const *devices; // of the members
} choir_group;

// Missing slots: score is 0, join and wait fail with CHOIR_UNSUPPORTED, and the others do
// nothing. Rules of all tables: extend.h.
typedef struct choir_cross_device_ops_table {
	size_t size;
	uint32_t version;
	const char *name; // "ring", for choir_strategy_options.cross_device_ops
	size_t self_size; // for each group
	// How well the algorithm suits the group and a collective of this many bytes. 0: not at all,
	// 100: best. A new strategy takes a table by name, or by the highest score for an all-reduce
	// of 1 MiB. The built-in scores: "direct": 100 if all members have host memory, else 0.
	// "ring": 20 with three or more separate memories and at least 32 KiB for each member, else
	// 1. "hierarchical_copy": 10 with four or more separate memories, else 1.
	// "reduce_to_one_device": 1.
	int (*score)(const choir_group *group, choir_collective_kind kind, int64_t bytes);
	choir_status (*open)(void *self, const choir_group *group); // group outlives self
	void (*close)(void *self);
	// (any) Joins the next collective for a member, 0 to members - 1, and returns its request. A
	// member has at most 64 requests at a time. All members join every collective, in the same
	// order. *c and its parts are valid until wait returns.
	choir_status (*join)(void *self, int member, const choir_collective *c, uint64_t *request);
	// (any) Waits until the member's result is final and its parts are free. CHOIR_TIMEOUT: no
	// other member has joined for that many seconds (negative: no limit). wait may do the work of
	// other members. It is called at most once for a request, and not after a failure. After it
	// returns, even with a failure, the collective does not use this member's *c, parts and
	// result. So a wait that times out ends the collective for all members; abort and reset
	// follow.
	choir_status (*wait)(void *self, int member, uint64_t request, double seconds);
	// (any) All present and later joins and waits of the group return CHOIR_CANCELLED.
	void (*abort)(void *self);
	// Called after an abort, when no member is in a call. The next join starts anew.
	void (*reset)(void *self);
} choir_cross_device_ops_table;

CHOIR_MUST_CHECK choir_status choir_register_cross_device_ops(
		const choir_cross_device_ops_table *table);

CHOIR_C_END
