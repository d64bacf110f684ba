// Merge calls: how replicas get into cross-replica context.
#pragma once

#include "strategy/replica/replica.h"

typedef struct {
	const char *name; // in messages
	choir_merge_fn *fn;
	void *user; // that of the replica that comes last is taken
	const void *what; // what and more must be equal for all replicas
	uint64_t more;
	const char *label; // the variable's name, for other workers; NULL: there is none
} chi_merge_call;

// A merge call of r with what it gave.
choir_status chi_merge(chi_replica *r, const chi_merge_call *c);

// A merge call that Choir makes itself, with leaves of r's; what the program gave stays given.
choir_status chi_merge_own(
		chi_replica *r, const chi_merge_call *c, size_t n, const chi_named leaves[]);
// The same with one leaf, "value".
choir_status chi_merge_one(chi_replica *r, const char *name, choir_tensor *value,
		choir_merge_fn *fn, void *user, const void *what, uint64_t more);
