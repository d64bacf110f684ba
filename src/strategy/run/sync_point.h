// What the replicas of a run agree on: the sequence of their meetings (merge calls, collectives,
// creations, updates). The first that comes to the n-th writes down what it is; every other must
// come with the same. So replicas that diverge are found at once and named, and nobody waits for
// ever.
#pragma once

#include "strategy/run/run.h"

typedef enum {
	CHI_MEET_MERGE = 1,
	CHI_MEET_COLLECTIVE,
	CHI_MEET_CREATE,
	CHI_MEET_UPDATE
} chi_meet_kind;

enum { CHI_MEET_NAME = 128 };

typedef struct chi_meet {
	chi_meet_kind kind;
	const void *what; // a function, a variable, an optimizer: equal for all
	uint64_t hash; // of the names, dtypes and shapes that must be equal
	chi_call_order order; // of the first to come
	char name[CHI_MEET_NAME]; // in messages: "merge call with gradient, loss"
	uint32_t number;
	int first; // the replica that came first
	int arrived; // replicas, under the run's lock
	chi_atomic32 left; // replicas that have what they need
	chi_atomic32 ready; // its result is there
	// Results, by kind.
	choir_variable *variable; // CREATE
	chi_buffer **buffer; // COLLECTIVE: of each lane, which may be the same
	int64_t count; // COLLECTIVE: the sum of the counts
	struct chi_instance *instance; // UPDATE
	struct chi_meet *next; // among the spare ones
} chi_meet;

// Replica r comes to its next meeting. NULL: it differs from what another came with, another has
// returned already, or the run has failed; recorded in the run. *last: r is the last to come.
// prepare (or NULL) is called by the first to come, under the run's lock; if it fails there is no
// meeting.
typedef choir_status chi_prepare_fn(chi_meet *m, chi_replica *r, void *user);
chi_meet *chi_meet_arrive(chi_replica *r, chi_meet_kind kind, const void *what, uint64_t hash,
		const char *name, chi_prepare_fn *prepare, void *user, bool *last);
// Two replicas differ: CHOIR_STATE, the lower one first, each with what it is in. number: of the
// meeting, from 0; or CHOIR_NONE.
choir_status chi_meet_diverged(int a, const char *in_a, int b, const char *in_b, int64_t number);
// What the others are in, or were, who have come to meeting number and so to none like r's.
void chi_meet_print(chi_run *run, uint32_t number, char text[2 * CHI_MEET_NAME]);
// The result is there: wakes who waits.
void chi_meet_ready(chi_run *run, chi_meet *m);
// r has what it needs; when all have, the meeting is forgotten. A run that failed forgets all.
void chi_meet_leave(chi_replica *r, chi_meet *m);
// Fails for r, which has given the same tensors as replica other, but not in the same order.
choir_status chi_meet_other_order(const chi_replica *r, int other, const char *name);
// r has returned: fails the run if others have come to meetings that r never came to.
void chi_meet_returned(chi_replica *r);
// With the run's lock held: the lowest replica that r, waiting in m (NULL: for an update), waits
// for because it has made fewer calls than r; CHOIR_NONE: no replica.
int chi_meet_missing(const chi_replica *r, const chi_meet *m);
// Forgets everything, between runs.
void chi_meet_clear(chi_run *run);
void chi_meet_free(chi_run *run);
