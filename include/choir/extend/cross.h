// The table of cross-device operations: how sums travel between the devices of a strategy. Each
// device, a member of the strategy's group, joins a collective with the partial sums that it has
// and gets a ticket; who wants the result waits with the ticket. No slot assumes one caller, host
// memory or synchronous calls: each member may have a thread, or one thread may join for several
// members and wait for them in any order. Sums are made in the canonical tree over replicas, so
// that the bits are those of the number of replicas and not of who carries them
// (docs/decisions/0012): the node over [lo, hi) is the sum of its halves [lo, m) and [m, hi),
// added in this order, where m is lo plus the largest power of two below hi - lo.
#pragma once

#include "../tensor.h"
#include "device.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_ALL_REDUCE = 1, // the sum over all replicas, for every member that has a result
	CHOIR_BROADCAST // root's one part, unchanged, for every member that has a result
} choir_collective_kind;

// A maximal node of the canonical tree within a member's replicas: the sum of replicas lo .. hi-1.
typedef struct {
	int lo, hi;
	void *data; // elements of the collective's dtype, packed, on the member's device
} choir_part;

typedef struct {
	size_t size; // of this struct
	// From here down to divisor all members' are equal; where sequence, name, kind, dtype,
	// elements or root differ, replicas have diverged: CHOIR_STATE in all members, with the same
	// text, which names two devices and what they joined.
	uint64_t sequence;
	const char *name; // in messages
	choir_collective_kind kind;
	choir_dtype dtype;
	int64_t elements; // of each part and of the result; may be 0
	int root; // the member that has what is broadcast
	double divisor; // the sum is divided by it (1: not at all); floating dtypes only
	size_t n; // parts of this member; their memory is not used after wait
	const choir_part *parts; // in ascending order
	void *stream; // of the device's table, on which the parts are made and the result is used
	// On the member's device, where this member wants the result; NULL: not wanted. Members of
	// host memory may name the same memory; it is written once. It overlaps no part.
	void *result;
	// Called when elements first .. first+count-1 of the result are final, on any thread that is
	// inside wait, each element once over all members that share a result; NULL: nobody to call.
	// first is a multiple of 8192 and, except at the end, so is count. data is the slice itself,
	// which may lie in scratch memory if result is NULL. What it fails with, the collective fails
	// with.
	choir_status (*done)(void *user, int64_t first, int64_t count, const void *data);
	void *user;
	int64_t batch_bytes; // of all results of the batch that this one belongs to; 0: it is alone
} choir_collective;

// Who takes part; the strategy's own, never global.
typedef struct {
	size_t size; // of this struct
	int members; // devices that carry replicas, in contiguous blocks, in order
	int replicas; // of all members together
	choir_device *const *devices; // of the members
} choir_group;

// Missing slots (NULL): score 0, join and wait that fail with CHOIR_UNSUPPORTED, the others do
// nothing. A failure leaves a text by choir_fail.
typedef struct choir_cross_device_ops_table {
	size_t size; // of this struct
	uint32_t version; // CHOIR_TABLE_VERSION
	const char *name; // "ring"; what choir_strategy_options.cross_device_ops names
	size_t self_size; // bytes, zeroed, for each group
	// How well it suits the group and a collective of so many bytes; 0: cannot, 100: made for it.
	// The table of a group is chosen when its strategy is made: by name, or by the best score for
	// an all-reduce of 1 MiB. "direct" says 100 where all members have host memory, else 0;
	// "reduce_to_one_device" says 1 always, "ring" more from three separate memories on,
	// "hierarchical_copy" a little more from four on.
	int (*score)(const choir_group *group, choir_collective_kind kind, int64_t bytes);
	choir_status (*open)(void *self, const choir_group *group); // group outlives self
	void (*close)(void *self); // once, also after a failed open
	// (any) Member, 0 to members - 1, takes part in the next collective and gets a ticket for it;
	// not more than 64 are open for a member. All members join every collective, in the same
	// order. *c and its parts stay until wait returns.
	choir_status (*join)(void *self, int member, const choir_collective *c, uint64_t *ticket);
	// (any) Until this member's result is final and its parts are free, or so many seconds have
	// passed in which no other joined (negative: for ever), then CHOIR_TIMEOUT. May do the work of
	// others meanwhile. Comes at most once for a ticket, and not any more after a failure. However
	// it returns, nobody looks at this member's *c, parts and result any more: so one that is too
	// late ends the collective for all, and is followed by abort and reset.
	choir_status (*wait)(void *self, int member, uint64_t ticket, double seconds);
	// (any) The group's waits and joins, those under way and later ones, return CHOIR_CANCELLED.
	void (*abort)(void *self);
	// After an abort, when no member is inside: the next join starts clean.
	void (*reset)(void *self);
} choir_cross_device_ops_table;

// Makes cross-device operations known by name. The table is copied; its name is not, and lives as
// long as the program. CHOIR_INVALID: a size or version that cannot be, no name, a name that is
// known already ("direct", "ring", "hierarchical_copy" and "reduce_to_one_device" are), or more
// than 16. Threads: one, before the first strategy.
CHOIR_MUST_CHECK choir_status choir_register_cross_device_ops(
		const choir_cross_device_ops_table *table);

CHOIR_C_END
