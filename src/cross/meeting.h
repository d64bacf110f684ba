// Where the members of a collective meet: a ring of slots, each with a gate that opens when all
// have joined, work that is dealt out in pieces to whoever waits, and a gate that opens when all
// is done. Any thread may join and wait for any member; one thread may do it for all. Nobody
// returns from a wait while another thread may still look at what it joined with, however the wait
// ends.
#pragma once

#include "base/atomic.h"
#include "cross/group.h"

enum { CHI_MEETING_SLOTS = 2 * CHI_GROUP_WINDOW, CHI_MEETING_TEXT = 400 };

// Pieces that lie behind each other, in a cache line of its own.
typedef struct {
	chi_atomic32 dealt;
	char rest_of_line[64 - sizeof(chi_atomic32)];
} chi_share;

typedef struct {
	const choir_collective **c; // of each member
	uint64_t *mark; // of each member's stream when it joined, where the host cannot see the memory
	// How often all have joined, and all was done: twice the number, and the lowest bit for an
	// abort.
	chi_gate joined, complete;
	chi_atomic32 arrived; // members that have joined, until all have
	int64_t pieces; // of this collective; 0: its members differ, and nothing is done
	chi_share *share;
	chi_atomic32 finished, left; // pieces done; members that are through
	chi_atomic32 busy; // threads that may be looking at what members joined with; a bit: aborted
	chi_atomic32 status; // the first failure
	char failure[CHI_MEETING_TEXT]; // its text, for all members
} chi_slot;

// What only one member looks at, in a cache line of its own.
typedef struct {
	uint64_t joined; // collectives
	bool last; // it was the last to join the latest
	char rest_of_line[64 - sizeof(uint64_t) - sizeof(bool)];
} chi_member;

typedef struct chi_meeting {
	int members;
	int shares; // into which the pieces are cut, so that each member begins with one of its own
	bool spin;
	chi_slot slot[CHI_MEETING_SLOTS];
	chi_member *member;
	chi_atomic32 aborted;
	// Called with self where a wait has failed, before anybody else can know of it: aborts what
	// must not go on then, for the reason that the thread has recorded. NULL: only the meeting
	// ends.
	void (*end)(void *self);
} chi_meeting;

// One piece of a collective, done by whoever deals with member.
typedef choir_status chi_piece_fn(void *self, const chi_slot *slot, int member, int64_t piece);

choir_status chi_meeting_open(chi_meeting *m, int members);
void chi_meeting_close(chi_meeting *m);
// pieces: into how many the work is cut, at least 1; the same number for equal collectives.
choir_status chi_meeting_join(
		chi_meeting *m, int member, const choir_collective *c, int64_t pieces, uint64_t *ticket);
// Before a join: notes in the next slot how far the member's stream is. Only the joining thread
// may mark it; the thread that does a piece waits for that mark.
choir_status chi_meeting_mark(
		chi_meeting *m, int member, choir_device *d, const choir_collective *c);
// A wait that is cancelled or too late aborts the meeting: who gives up takes its memory away, so
// nothing that it has joined may go on.
choir_status chi_meeting_wait(
		chi_meeting *m, int member, uint64_t ticket, double seconds, chi_piece_fn *fn, void *self);
void chi_meeting_abort(chi_meeting *m);
// Of a meeting that is aborted: returns when nobody looks at what was joined with this ticket.
// Pieces are short and Choir's own (or the caller's slice function), so there is no deadline.
void chi_meeting_drain(chi_meeting *m, uint64_t ticket);
void chi_meeting_reset(chi_meeting *m);

// The lowest member whose result is that of member.
int chi_slot_first_with(const chi_slot *slot, int member);
