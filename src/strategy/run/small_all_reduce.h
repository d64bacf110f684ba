// Small sums where every device carries one replica and all memory is the host's. Each replica
// says where its contribution lies, and sums all of them by itself when all have come: one
// hand-over between processors, where a sync point and a collective need several. Nobody waits
// until others have read: a contribution keeps its memory until its replica knows that they have,
// which is when all have come to the next small all-reduce, or when the run ends.
#pragma once

#include "strategy/run/run.h"

enum { CHI_SMALL_ALL_REDUCE_BYTES = 16 << 10, CHI_SMALL_ALL_REDUCE_REPLICAS = 8 };

// What a replica contributes to a small all-reduce.
typedef struct {
	uint64_t hash; // of dtype and shape, and of the label
	chi_call_order order;
	const void *data;
} chi_small_all_reduce_part;

// How far a replica has come, for others to look at without a lock: bit 0: the run has failed; bit
// 1: it has returned; then 15 bits that count its small all-reduces, and 15 that count its sync
// points. Counts wrap; replicas are never half way round apart. Even and odd small all-reduces
// have a part each: who writes one knows that all have come to the sum between, and so have read
// what it held. What others look at is one line of the cache.
typedef struct chi_small_all_reduce {
	chi_gate gate;
	chi_small_all_reduce_part part[2];
	// What follows is its replica's own, but for errors.
	_Alignas(CHI_LINE) uint32_t counts; // the counts in its word
	chi_buffer *held[2]; // references to the memory of the parts
	choir_dtype dtype[2];
	choir_shape shape[2];
	chi_label label[2];
} chi_small_all_reduce;

// Memory for a run's replicas, if its strategy can have small all-reduces at all;
// run->small_all_reduce stays NULL if not.
choir_status chi_small_all_reduce_open(chi_run *run);
void chi_small_all_reduce_close(chi_run *run);
// When all replicas of a run have returned: contributions give their memory back, and words begin
// again.
void chi_small_all_reduce_clear(chi_run *run);

// For the rest of the run: r has come to another sync point (sequence moved); r has returned; all
// must stop.
void chi_small_all_reduce_arrived(chi_replica *r);
void chi_small_all_reduce_returned(chi_replica *r);
void chi_small_all_reduce_stop(chi_run *run);

// Whether t is summed like that: the same answer for equal tensors in all replicas.
bool chi_small_all_reduce_takes(const chi_replica *r, choir_reduce_op op, const choir_tensor *t);
// The sum as a new tensor of r's frame; NULL: recorded in the run and in the frame.
choir_tensor *chi_small_all_reduce_sum(chi_replica *r, const choir_tensor *t);
