// Where the members of a collective, the devices of one process, meet: a ring of rounds, one for
// each collective under way. A gate opens when all members have joined, chunks of the work are
// claimed by whoever waits, and another gate opens when all chunks are done. Any thread may join
// and wait for any member; one thread may do it for all. However a wait ends, it returns only
// after the last thread has stopped reading what the member joined with.
//
// An algorithm is a function that does one chunk from beginning to end, so no chunk waits for
// another.
#pragma once

#include "base/atomic.h"
#include "collective/cross_device_ops.h"

enum { CHI_RENDEZVOUS_ROUNDS = 2 * CHI_COMMUNICATOR_WINDOW, CHI_RENDEZVOUS_TEXT = 400 };

// Consecutive chunks, in a cache line of their own.
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
	chi_atomic32 finished, left; // chunks that are done; members that are through
	chi_atomic32 busy; // threads that may read what members joined with; a bit: aborted
	chi_atomic32 status; // the first failure
	char failure[CHI_RENDEZVOUS_TEXT]; // its text, for all members
} chi_round;

// What only one member reads, in a cache line of its own.
typedef struct {
	uint64_t joined; // collectives
	bool last; // it was the last to join the latest
	char rest_of_line[64 - sizeof(uint64_t) - sizeof(bool)];
} chi_rendezvous_member;

typedef struct chi_rendezvous {
	int members;
	int ranges; // of chunks, so that each member begins with one of its own
	bool spin;
	chi_round round[CHI_RENDEZVOUS_ROUNDS];
	chi_rendezvous_member *member;
	chi_atomic32 aborted;
	// Called with self where a wait has failed, before anybody else can know of it: aborts what
	// must not go on then, for the reason that the thread has recorded. NULL: only the rendezvous
	// ends.
	void (*end)(void *self);
} chi_rendezvous;

// Does one chunk of a collective, for a thread that waits as member.
typedef choir_status chi_chunk_fn(void *self, const chi_round *round, int member, int64_t chunk);

choir_status chi_rendezvous_open(chi_rendezvous *m, int members);
void chi_rendezvous_close(chi_rendezvous *m);
// chunks: at least 1, the same number for equal collectives.
choir_status chi_rendezvous_join(chi_rendezvous *m, int member, const choir_collective *c,
		int64_t chunks, uint64_t *request);
// Before a join, by the joining thread: notes in the next round how far the member's stream is.
// The thread that does a chunk waits for that event.
choir_status chi_rendezvous_record_event(
		chi_rendezvous *m, int member, choir_device *d, const choir_collective *c);
// A wait that is cancelled or too late aborts the rendezvous: its caller takes its memory away, so
// nothing that it has joined may go on.
choir_status chi_rendezvous_wait(chi_rendezvous *m, int member, uint64_t request, double seconds,
		chi_chunk_fn *fn, void *self);
void chi_rendezvous_abort(chi_rendezvous *m);
// After an abort: returns when no thread reads what was joined with this request. Chunks are short
// and Choir's own, or the caller's done function, so there is no deadline.
void chi_rendezvous_drain(chi_rendezvous *m, uint64_t request);
void chi_rendezvous_reset(chi_rendezvous *m);

// The lowest member whose result is that of member.
int chi_round_first_with(const chi_round *round, int member);
// Gives a finished chunk to every result in host memory and calls done of its members.
choir_status chi_round_deliver(const chi_round *round, int members, const void *data,
		int64_t first, int64_t count, size_t size);

// An algorithm of one rendezvous. The self of its table begins with it, and the slots of the table
// are these functions.
typedef struct {
	chi_rendezvous rendezvous;
	const choir_group *group;
	chi_chunk_fn *do_chunk; // gets the chi_algorithm as self
	int max_chunks; // of about equal length; 0: each has CHI_CHUNK elements
} chi_algorithm;

choir_status chi_algorithm_open(
		chi_algorithm *a, const choir_group *group, chi_chunk_fn *chunk, int max_chunks);
void chi_algorithm_close(void *self);
choir_status chi_algorithm_join(
		void *self, int member, const choir_collective *c, uint64_t *request);
choir_status chi_algorithm_wait(void *self, int member, uint64_t request, double seconds);
void chi_algorithm_abort(void *self);
void chi_algorithm_reset(void *self);
// The elements of a collective that are its index-th chunk.
void chi_algorithm_chunk(const chi_algorithm *a, const choir_collective *c, int64_t index,
		int64_t *first, int64_t *count);
