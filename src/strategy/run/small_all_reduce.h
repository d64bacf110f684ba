// All-reduce of small tensors without a lock, where every device carries one replica and all
// memory is the host's. Each replica publishes its tensor, waits for the others, and sums all
// tensors itself. This takes one transfer between cores, where a sync point and a collective need
// several. No replica waits for readers: a published tensor keeps its memory until its replica
// knows that all have read it. That is when all have come to the next small all-reduce, or when
// the run ends.
#pragma once

#include "strategy/run/run.h"

enum { CHI_SMALL_ALL_REDUCE_BYTES = 16 << 10, CHI_SMALL_ALL_REDUCE_REPLICAS = 8 };

// What a replica publishes for one small all-reduce.
typedef struct {
	uint64_t hash; // of dtype, shape and label
	chi_call_order order;
	const void *data;
} chi_small_all_reduce_part;

// A replica's published state. The gate's word shows its progress without a lock: bit 0 says that
// the run has failed and bit 1 that the replica has returned. Then 15 bits count its small
// all-reduces and 15 its sync points. Counts wrap; replicas are never half the range apart. Even
// and odd small all-reduces use alternate parts. Before a replica overwrites a part, all replicas
// have come to the sum after it, so they have read the part. The fields that others poll and read
// are one cache line.
typedef struct chi_small_all_reduce {
	chi_gate gate;
	chi_small_all_reduce_part part[2];
	// Only the replica itself uses the fields below, except in error messages.
	_Alignas(CHI_LINE) uint32_t counts; // the counts in its word
	chi_buffer *held[2]; // references to the memory of the parts
	choir_dtype dtype[2];
	choir_shape shape[2];
	chi_label label[2];
} chi_small_all_reduce;

// Allocates the replicas' states. run->small_all_reduce stays NULL if the strategy cannot have
// small all-reduces.
choir_status chi_small_all_reduce_open(chi_run *run);
void chi_small_all_reduce_close(chi_run *run);
// Releases the tensors and resets the words, after all replicas of a run have returned.
void chi_small_all_reduce_clear(chi_run *run);

// Publish progress to the other replicas: r has come to another sync point (its sequence has
// moved); r has returned; all must stop.
void chi_small_all_reduce_arrived(chi_replica *r);
void chi_small_all_reduce_returned(chi_replica *r);
void chi_small_all_reduce_stop(chi_run *run);

// Whether t is summed by a small all-reduce. For equal tensors the answer is the same in all
// replicas.
bool chi_small_all_reduce_takes(const chi_replica *r, choir_reduce_op op, const choir_tensor *t);
// Sums t over all replicas into a new tensor of r's frame. NULL: the error is recorded in the run
// and in the frame.
choir_tensor *chi_small_all_reduce_sum(chi_replica *r, const choir_tensor *t);
