// A ring of rounds, one per collective in progress. The first gate opens when all members have
// joined. Then waiting threads claim chunks, and the second gate opens after the last.
//
// Any thread may serve any members. Every wait, even a failed one, returns after the last thread
// has read the member's data.
#pragma once

#include "base/gate.h"
#include "collective/cross_device_ops.h"
#include "tensor/tensor.h"

enum { CHI_RENDEZVOUS_ROUNDS = 2 * CHI_COMMUNICATOR_WINDOW, CHI_RENDEZVOUS_TEXT = 400 };

static inline size_t chi_collective_bytes(const choir_collective *c)
{
	return (size_t) c->elements * chi_dtype_size(c->dtype);
}

// On a cache line of its own.
typedef struct {
	chi_atomic32 claimed;
	char rest_of_line[64 - sizeof(chi_atomic32)];
} chi_work_range;

typedef struct {
	const choir_collective **c;
	// For memory the host cannot read.
	uint64_t *event;
	// Twice the number of openings; the lowest bit: aborted.
	chi_gate joined, complete;
	chi_atomic32 arrived;
	int32_t last;
	int64_t chunks; // 0: the members' collectives differ
	chi_work_range *range;
	chi_atomic32 finished, left;
	chi_atomic32 busy; // threads that may read c; highest bit: aborted
	chi_atomic32 status;
	char failure[CHI_RENDEZVOUS_TEXT];
} chi_round;

typedef struct {
	uint64_t joined;
	bool last;
	char rest_of_line[64 - sizeof(uint64_t) - sizeof(bool)];
} chi_rendezvous_member;

typedef struct chi_rendezvous {
	int members;
	int ranges;
	bool spin;
	chi_round round[CHI_RENDEZVOUS_ROUNDS];
	chi_rendezvous_member *member;
	chi_atomic32 aborted;
	// After a failed wait, before others see the failure: aborts what depends on this rendezvous.
	// The last error is the reason. May be NULL.
	void (*end)(void *self);
} chi_rendezvous;

typedef choir_status chi_chunk_fn(void *self, const chi_round *round, int member, int64_t chunk);

choir_status chi_rendezvous_open(chi_rendezvous *m, int members);
void chi_rendezvous_close(chi_rendezvous *m);
// chunks: at least 1.
choir_status chi_rendezvous_join(chi_rendezvous *m, int member, const choir_collective *c,
		int64_t chunks, uint64_t *request);
choir_status chi_rendezvous_record_event(
		chi_rendezvous *m, int member, choir_device *d, const choir_collective *c);
// Helps with the chunks. A cancelled wait or timeout aborts: the caller may free what it joined
// with.
choir_status chi_rendezvous_wait(chi_rendezvous *m, int member, uint64_t request, double seconds,
		chi_chunk_fn *fn, void *self);
const choir_collective *chi_rendezvous_joined(chi_rendezvous *m, int member, uint64_t request);
void chi_rendezvous_abort(chi_rendezvous *m);
// After an abort, until no thread uses this request. Chunks are short, so there is no timeout.
void chi_rendezvous_drain(chi_rendezvous *m, uint64_t request);
void chi_rendezvous_reset(chi_rendezvous *m);

int chi_round_first_with(const chi_round *round, int member);
choir_status chi_round_deliver(const chi_round *round, int members, const void *data,
		int64_t first, int64_t count, size_t size);
