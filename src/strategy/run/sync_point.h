// Sync points: calls that all replicas must make, namely merge calls, collectives, creations and
// updates. The first replica at the n-th sync point records its call, and all others must make
// the same call. So replicas that diverge are found and named at once, and no replica waits for
// ever.
#pragma once

#include "strategy/run/run.h"

typedef enum {
	CHI_SYNC_POINT_MERGE = 1,
	CHI_SYNC_POINT_COLLECTIVE,
	CHI_SYNC_POINT_CREATE,
	CHI_SYNC_POINT_UPDATE
} chi_sync_point_kind;

enum { CHI_SYNC_POINT_NAME = 128 };

typedef struct chi_sync_point {
	chi_sync_point_kind kind;
	const void *what; // function, variable or optimizer, equal in all replicas
	uint64_t hash; // of the names, dtypes and shapes that must be equal
	chi_call_order order; // of the first replica
	char name[CHI_SYNC_POINT_NAME]; // for messages: "merge call with gradient, loss"
	uint32_t number;
	int first; // the replica that came first
	int arrived; // number of replicas, under the run's lock
	chi_atomic32 left; // number of replicas that have their result
	chi_atomic32 ready; // not zero: the result is there
	// Results, by kind.
	choir_variable *variable; // CREATE
	chi_buffer **buffer; // COLLECTIVE: one for each device, possibly the same buffer
	int64_t count; // COLLECTIVE: the sum of the counts
	struct chi_pending_update *pending_update; // UPDATE
	struct chi_sync_point *next; // in the free list
} chi_sync_point;

// Enters replica r's next sync point. *last: r is the last to come. prepare, if not NULL, is
// called for the first replica, under the run's lock; if it fails, there is no sync point. NULL:
// the replicas differ, one has returned already, or the run has failed. The error is recorded in
// the run.
typedef choir_status chi_prepare_fn(chi_sync_point *point, chi_replica *r, void *user);
chi_sync_point *chi_sync_point_arrive(chi_replica *r, chi_sync_point_kind kind, const void *what,
		uint64_t hash, const char *name, chi_prepare_fn *prepare, void *user, bool *last);
// Fails with CHOIR_STATE, naming two replicas and the calls they are in, the lower replica first.
// number: of the sync point from 0, or CHOIR_NONE.
choir_status chi_sync_point_diverged(
		int a, const char *in_a, int b, const char *in_b, int64_t number);
// Prints the call at sync point number, which other replicas have reached.
void chi_sync_point_print(chi_run *run, uint32_t number, char text[2 * CHI_SYNC_POINT_NAME]);
// Marks the result as ready and wakes the waiting replicas.
void chi_sync_point_ready(chi_run *run, chi_sync_point *point);
// r has its result. After all have left, the sync point is reused. After a failure,
// chi_sync_point_clear frees all.
void chi_sync_point_leave(chi_replica *r, chi_sync_point *point);
// Fails because r passed the same tensors as replica other, in another order.
choir_status chi_sync_point_other_order(const chi_replica *r, int other, const char *name);
// Marks r as returned, and fails the run if others have come to sync points that r did not reach.
void chi_sync_point_returned(chi_replica *r);
// With the run's lock held: the lowest replica that r waits for at point (NULL: an update), as it
// has made fewer calls than r. CHOIR_NONE: no replica is missing.
int chi_sync_point_missing(const chi_replica *r, const chi_sync_point *point);
// Discards all sync points, between runs.
void chi_sync_point_clear(chi_run *run);
void chi_sync_point_free(chi_run *run);
