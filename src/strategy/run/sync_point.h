// What the replicas of a run agree on: the sequence of their sync points (merge calls,
// collectives, creations, updates). The first that comes to the n-th writes down what it is; every
// other must come with the same. So replicas that diverge are found at once and named, and nobody
// waits for ever.
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
	const void *what; // a function, a variable, an optimizer: equal for all
	uint64_t hash; // of the names, dtypes and shapes that must be equal
	chi_call_order order; // of the first to come
	char name[CHI_SYNC_POINT_NAME]; // in messages: "merge call with gradient, loss"
	uint32_t number;
	int first; // the replica that came first
	int arrived; // replicas, under the run's lock
	chi_atomic32 left; // replicas that have what they need
	chi_atomic32 ready; // its result is there
	// Results, by kind.
	choir_variable *variable; // CREATE
	chi_buffer **buffer; // COLLECTIVE: of each device, which may be the same
	int64_t count; // COLLECTIVE: the sum of the counts
	struct chi_pending_update *pending_update; // UPDATE
	struct chi_sync_point *next; // among the spare ones
} chi_sync_point;

// Replica r comes to its next sync point. NULL: it differs from what another came with, another
// has returned already, or the run has failed; recorded in the run. *last: r is the last to come.
// prepare (or NULL) is called by the first to come, under the run's lock; if it fails there is no
// sync point.
typedef choir_status chi_prepare_fn(chi_sync_point *point, chi_replica *r, void *user);
chi_sync_point *chi_sync_point_arrive(chi_replica *r, chi_sync_point_kind kind, const void *what,
		uint64_t hash, const char *name, chi_prepare_fn *prepare, void *user, bool *last);
// Two replicas differ: CHOIR_STATE, the lower one first, each with what it is in. number: of the
// sync point, from 0; or CHOIR_NONE.
choir_status chi_sync_point_diverged(
		int a, const char *in_a, int b, const char *in_b, int64_t number);
// What the others are in, or were, who have come to sync point number and so to none like r's.
void chi_sync_point_print(chi_run *run, uint32_t number, char text[2 * CHI_SYNC_POINT_NAME]);
// The result is there: wakes who waits.
void chi_sync_point_ready(chi_run *run, chi_sync_point *point);
// r has what it needs; when all have, the sync point is forgotten. A run that failed forgets all.
void chi_sync_point_leave(chi_replica *r, chi_sync_point *point);
// Fails for r, which has given the same tensors as replica other, but not in the same order.
choir_status chi_sync_point_other_order(const chi_replica *r, int other, const char *name);
// r has returned: fails the run if others have come to sync points that r never came to.
void chi_sync_point_returned(chi_replica *r);
// With the run's lock held: the lowest replica that r, waiting in m (NULL: for an update), waits
// for because it has made fewer calls than r; CHOIR_NONE: no replica.
int chi_sync_point_missing(const chi_replica *r, const chi_sync_point *point);
// Forgets everything, between runs.
void chi_sync_point_clear(chi_run *run);
void chi_sync_point_free(chi_run *run);
