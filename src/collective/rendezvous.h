// Where the members of a collective meet: a ring of slots, each with a gate that opens when all
// have joined, work that is dealt out in pieces to whoever waits, and a gate that opens when all
// is done. Any thread may join and wait for any member; one thread may do it for all. Nobody
// returns from a wait while another thread may still look at what it joined with, however the wait
// ends.
#pragma once

#include "base/atomic.h"
#include "collective/cross_device_ops.h"

enum { CHI_RENDEZVOUS_ROUNDS = 2 * CHI_COMMUNICATOR_WINDOW, CHI_RENDEZVOUS_TEXT = 400 };

// Pieces that lie behind each other, in a cache line of its own.
typedef struct {
	chi_atomic32 claimed;
	char rest_of_line[64 - sizeof(chi_atomic32)];
} chi_work_range;

typedef struct {
	const choir_collective **c; // of each member
	// Of each member's stream when it joined, where the host cannot see the memory.
	uint64_t *event;
	// How often all have joined, and all was done: twice the number, and the lowest bit for an
	// abort.
	chi_gate joined, complete;
	chi_atomic32 arrived; // members that have joined, until all have
	int64_t chunks; // of this collective; 0: its members differ, and nothing is done
	chi_work_range *range;
	chi_atomic32 finished, left; // pieces done; members that are through
	chi_atomic32 busy; // threads that may be looking at what members joined with; a bit: aborted
	chi_atomic32 status; // the first failure
	char failure[CHI_RENDEZVOUS_TEXT]; // its text, for all members
} chi_round;

// What only one member looks at, in a cache line of its own.
typedef struct {
	uint64_t joined; // collectives
	bool last; // it was the last to join the latest
	char rest_of_line[64 - sizeof(uint64_t) - sizeof(bool)];
} chi_rendezvous_member;

typedef struct chi_rendezvous {
	int members;
	int ranges; // into which the pieces are cut, so that each member begins with one of its own
	bool spin;
	chi_round round[CHI_RENDEZVOUS_ROUNDS];
	chi_rendezvous_member *member;
	chi_atomic32 aborted;
	// Called with self where a wait has failed, before anybody else can know of it: aborts what
	// must not go on then, for the reason that the thread has recorded. NULL: only the meeting
	// ends.
	void (*end)(void *self);
} chi_rendezvous;

// One piece of a collective, done by whoever deals with member.
typedef choir_status chi_chunk_fn(void *self, const chi_round *round, int member, int64_t chunk);

choir_status chi_rendezvous_open(chi_rendezvous *m, int members);
void chi_rendezvous_close(chi_rendezvous *m);
// pieces: into how many the work is cut, at least 1; the same number for equal collectives.
choir_status chi_rendezvous_join(chi_rendezvous *m, int member, const choir_collective *c,
		int64_t chunks, uint64_t *request);
// Before a join: notes in the next slot how far the member's stream is. Only the joining thread
// may mark it; the thread that does a piece waits for that mark.
choir_status chi_rendezvous_record_event(
		chi_rendezvous *m, int member, choir_device *d, const choir_collective *c);
// A wait that is cancelled or too late aborts the meeting: who gives up takes its memory away, so
// nothing that it has joined may go on.
choir_status chi_rendezvous_wait(chi_rendezvous *m, int member, uint64_t request, double seconds,
		chi_chunk_fn *fn, void *self);
void chi_rendezvous_abort(chi_rendezvous *m);
// Of a meeting that is aborted: returns when nobody looks at what was joined with this ticket.
// Pieces are short and Choir's own (or the caller's slice function), so there is no deadline.
void chi_rendezvous_drain(chi_rendezvous *m, uint64_t request);
void chi_rendezvous_reset(chi_rendezvous *m);

// The lowest member whose result is that of member.
int chi_round_first_with(const chi_round *round, int member);
