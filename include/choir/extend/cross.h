// The table of cross-device operations: how sums travel between the devices of a strategy. Each
// device joins a collective and gets a ticket; no slot assumes one caller, host memory or synchronous
// calls: one thread may join for several members, and wait for them in any order.
#pragma once

#include "../tensor.h"
#include "device.h"

CHOIR_C_BEGIN

typedef enum { CHOIR_REDUCE = 1, CHOIR_ALL_REDUCE, CHOIR_BROADCAST } choir_collective_kind;

// A maximal node of the canonical tree (docs/decisions/0012): the sum of replicas lo .. hi-1.
typedef struct {
	int lo, hi;
	void *data; // on the member's device
} choir_part;

typedef struct {
	size_t size;
	uint64_t sequence; // this and the rest down to root are equal for all members
	const char *name; // in messages
	choir_collective_kind kind;
	choir_dtype dtype;
	int64_t elements;
	int root; // the member that has (BROADCAST) or gets (REDUCE) the data
	double divisor; // the sum is divided by it (1: not at all); floating dtypes only
	size_t n; // parts of this member; their memory is not used after wait
	const choir_part *parts; // in ascending order
	void *stream; // of the device's table, on which the parts are made and the result is used
	// On the member's device, where this member wants the result; NULL: not wanted. Members of host
	// memory may name the same memory.
	void *result;
	// Called when elements first .. first+count-1 of the result are final, on any thread, each element
	// once over all members that share a result; NULL: nobody to call. data: the slice itself, which
	// may lie in scratch memory if result is NULL.
	choir_status (*done)(void *user, int64_t first, int64_t count, const void *data);
	void *user;
} choir_collective;

typedef struct { // who takes part; the strategy's own, never global
	size_t size;
	int members, replicas;
	choir_device *const *devices; // of the members
} choir_group;

typedef struct choir_cross_device_ops_table {
	size_t size;
	uint32_t version;
	const char *name; // "ring"
	size_t self_size;
	// 0: cannot, 100: made for it.
	int (*score)(const choir_group *group, choir_collective_kind kind, int64_t bytes);
	choir_status (*open)(void *self, const choir_group *group); // group outlives self
	void (*close)(void *self);
	// (any) Members join every collective in the same order. *c and its parts stay until wait returns.
	choir_status (*join)(void *self, int member, const choir_collective *c, uint64_t *ticket);
	// (any) Until this member's result is final and its parts are free, at most so many seconds.
	choir_status (*wait)(void *self, int member, uint64_t ticket, double seconds);
	void (*abort)(void *self); // (any) waits return CHOIR_CANCELLED
	void (*reset)(void *self); // after abort, when no member is inside: the next join starts clean
} choir_cross_device_ops_table;

// Copies the table; before the first strategy, from one thread.
choir_status choir_register_cross_device_ops(const choir_cross_device_ops_table *table);

CHOIR_C_END
