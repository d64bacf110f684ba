// Where the members of a collective meet: a ring of slots, each with a gate that counts who has
// joined, work that is dealt out in pieces to whoever waits, and a gate that opens when all is done.
// Any thread may join and wait for any member; one thread may do it for all.
#pragma once

#include "base/atomic.h"
#include "cross/group.h"

enum { CHI_MEETING_SLOTS = 2 * CHI_GROUP_WINDOW };

typedef struct {
	const choir_collective **c; // of each member
	chi_gate joined, complete; // times joined; generations completed
	chi_atomic32 next, finished, left; // pieces dealt and done; members that are through
	chi_atomic32 status; // the first failure of a piece
} chi_slot;

typedef struct chi_meeting {
	int members;
	bool spin;
	chi_slot slot[CHI_MEETING_SLOTS];
	uint64_t *count; // collectives joined by each member
	chi_atomic32 aborted;
} chi_meeting;

// One piece of a collective, done by whoever deals with member.
typedef choir_status chi_piece_fn(void *self, const chi_slot *slot, int member, int64_t piece);

choir_status chi_meeting_open(chi_meeting *m, int members);
void chi_meeting_close(chi_meeting *m);
choir_status chi_meeting_join(chi_meeting *m, int member, const choir_collective *c,
		uint64_t *ticket);
// pieces: into how many the work is cut.
choir_status chi_meeting_wait(chi_meeting *m, int member, uint64_t ticket, double seconds,
		int64_t pieces, chi_piece_fn *fn, void *self);
void chi_meeting_abort(chi_meeting *m);
void chi_meeting_reset(chi_meeting *m);
const choir_collective *chi_meeting_own(const chi_meeting *m, int member, uint64_t ticket);

// The lowest member whose result is that of member.
int chi_slot_first_with(const chi_slot *slot, int member);
