// A ring of rounds, one per collective in progress. The first gate opens after all members have
// joined. Then waiting threads claim chunks and complete them, and the second gate opens after
// the last. Chunks never wait for each other.
//
// Any thread may join and wait for any member, and one may serve all. A wait, even a failed one,
// returns after the last thread has stopped reading the member's data.
#pragma once

#include "base/atomic.h"
#include "collective/cross_device_ops.h"

enum { CHI_RENDEZVOUS_ROUNDS = 2 * CHI_COMMUNICATOR_WINDOW, CHI_RENDEZVOUS_TEXT = 400 };

// Fills a cache line.
typedef struct {
	chi_atomic32 claimed;
	char rest_of_line[64 - sizeof(chi_atomic32)];
} chi_work_range;

typedef struct {
	const choir_collective **c;
	// Position in each member's stream, for memory the host cannot read.
	uint64_t *event;
	// Twice the number of openings; the lowest bit: aborted.
	chi_gate joined, complete;
	chi_atomic32 arrived; // members, until all have joined
	int32_t last; // the track of the last of them, for traces
	int64_t chunks; // 0: the members' collectives differ
	chi_work_range *range;
	chi_atomic32 finished, left; // chunks done; members gone
	chi_atomic32 busy; // threads that may read c; highest bit: aborted
	chi_atomic32 status;
	char failure[CHI_RENDEZVOUS_TEXT];
} chi_round;

// Fills a cache line.
typedef struct {
	uint64_t joined; // collectives so far
	bool last; // it was the last to join
	char rest_of_line[64 - sizeof(uint64_t) - sizeof(bool)];
} chi_rendezvous_member;

typedef struct chi_rendezvous {
	int members;
	int ranges; // of chunks
	bool spin;
	chi_round round[CHI_RENDEZVOUS_ROUNDS];
	chi_rendezvous_member *member;
	chi_atomic32 aborted;
	// Called with self after a failed wait, before other threads can see the failure. Aborts what
	// depends on this rendezvous; the reason is the last error. May be NULL.
	void (*end)(void *self);
} chi_rendezvous;

typedef choir_status chi_chunk_fn(void *self, const chi_round *round, int member, int64_t chunk);

choir_status chi_rendezvous_open(chi_rendezvous *m, int members);
void chi_rendezvous_close(chi_rendezvous *m);
// chunks: at least 1, and the same for equal collectives.
choir_status chi_rendezvous_join(chi_rendezvous *m, int member, const choir_collective *c,
		int64_t chunks, uint64_t *request);
// Before a join: chunks wait for the event of the member's stream.
choir_status chi_rendezvous_record_event(
		chi_rendezvous *m, int member, choir_device *d, const choir_collective *c);
// Helps with the chunks. A cancelled wait or timeout aborts the rendezvous, because the caller
// may then free what it joined with.
choir_status chi_rendezvous_wait(chi_rendezvous *m, int member, uint64_t request, double seconds,
		chi_chunk_fn *fn, void *self);
const choir_collective *chi_rendezvous_joined(chi_rendezvous *m, int member, uint64_t request);
void chi_rendezvous_abort(chi_rendezvous *m);
// After an abort, until no thread reads what was joined with this request. Chunks are short, so
// there is no timeout.
void chi_rendezvous_drain(chi_rendezvous *m, uint64_t request);
void chi_rendezvous_reset(chi_rendezvous *m);

// The lowest member that shares member's result.
int chi_round_first_with(const chi_round *round, int member);
// Copies to the results in host memory and calls the done functions.
choir_status chi_round_deliver(const chi_round *round, int members, const void *data,
		int64_t first, int64_t count, size_t size);

// It has one rendezvous, and is the first field of its table's self. The functions below are the
// table's.
typedef struct {
	chi_rendezvous rendezvous;
	const choir_group *group;
	chi_chunk_fn *do_chunk; // gets the chi_algorithm as self
	int max_chunks; // of about equal size; 0: chunks of CHI_CHUNK elements
} chi_algorithm;

choir_status chi_algorithm_open(
		chi_algorithm *a, const choir_group *group, chi_chunk_fn *chunk, int max_chunks);
void chi_algorithm_close(void *self);
choir_status chi_algorithm_join(
		void *self, int member, const choir_collective *c, uint64_t *request);
choir_status chi_algorithm_wait(void *self, int member, uint64_t request, double seconds);
void chi_algorithm_abort(void *self);
void chi_algorithm_reset(void *self);
void chi_algorithm_chunk(const chi_algorithm *a, const choir_collective *c, int64_t index,
		int64_t *first, int64_t *count);
