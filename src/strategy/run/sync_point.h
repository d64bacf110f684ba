// Calls that all replicas must make. The first replica at the n-th records its call, and the
// others must make the same one.
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
	const void *what; // function, variable or optimizer
	uint64_t hash; // names, dtypes and shapes
	chi_call_order order;
	char name[CHI_SYNC_POINT_NAME]; // "merge call with gradient, loss"
	uint32_t number;
	int first;
	int arrived; // under the run's lock
	chi_atomic32 last; // for traces
	chi_atomic32 left;
	chi_atomic32 ready;
	choir_variable *variable;
	chi_buffer **buffer;
	int64_t count;
	struct chi_sync_point *next;
} chi_sync_point;

// *last: r arrives last. prepare (may be NULL) is called for the first, under the run's lock; it
// may fail. NULL, recorded in the run: the replicas differ, one has returned, or the run has
// failed.
typedef choir_status chi_prepare_fn(chi_sync_point *point, chi_replica *r, void *user);
chi_sync_point *chi_sync_point_arrive(chi_replica *r, chi_sync_point_kind kind, const void *what,
		uint64_t hash, const char *name, chi_prepare_fn *prepare, void *user, bool *last);
// Names two replicas and their calls, the lower first. number: the sync point's, or CHOIR_NONE.
choir_status chi_sync_point_diverged(
		int a, const char *in_a, int b, const char *in_b, int64_t number);
void chi_sync_point_print(chi_run *run, uint32_t number, char text[2 * CHI_SYNC_POINT_NAME]);
void chi_sync_point_ready(chi_run *run, chi_sync_point *point);
void chi_sync_point_leave(chi_sync_point *point);
// r passed other's tensors to collectives in another order.
choir_status chi_sync_point_other_order(const chi_replica *r, int other, const char *name);
// The run fails if others have reached sync points that r did not.
void chi_sync_point_returned(chi_replica *r);
// The lowest replica with fewer calls than r, which waits at point (NULL: an update); or
// CHOIR_NONE. With the run's lock.
int chi_sync_point_missing(const chi_replica *r, const chi_sync_point *point);
void chi_sync_point_clear(chi_run *run);
void chi_sync_point_free(chi_run *run);
