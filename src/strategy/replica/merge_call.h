// Merge calls, by which replicas enter cross-replica context.
#pragma once

#include "strategy/replica/replica.h"

typedef struct {
	const char *name;
	choir_merge_fn *fn;
	void *user; // the last replica's is passed
	const void *what;
	uint64_t more;
	const char *label;
} chi_merge_call;

choir_status chi_merge(chi_replica *r, const chi_merge_call *c);

// The library's call with these leaves. The program's arguments stay.
choir_status chi_merge_own(
		chi_replica *r, const chi_merge_call *c, size_t n, const chi_named leaves[]);
choir_status chi_merge_one(chi_replica *r, const char *name, choir_tensor *value,
		choir_merge_fn *fn, void *user, const void *what, uint64_t more);
