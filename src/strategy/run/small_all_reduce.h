// All-reduce of small tensors without a lock, if every device runs one replica in host memory.
// Each replica publishes its tensor, waits for the others, and sums all itself: one transfer
// between cores. A published tensor is kept until the next small all-reduce or the run's end, so
// no replica waits for readers.
#pragma once

#include "base/thresholds.h"
#include "strategy/run/run.h"

typedef struct {
	uint64_t hash; // dtype, shape and label
	chi_call_order order;
	const void *data;
} chi_small_all_reduce_part;

// A replica's published state. The gate's word: bit 0: the run has failed; bit 1: the replica has
// returned; then 15 bits count small all-reduces and 15 sync points, wrapping. Two parts
// alternate: one is overwritten only after all have come to the sum after it. Fields that others
// read are one cache line.
typedef struct chi_small_all_reduce {
	chi_gate gate;
	chi_small_all_reduce_part part[2];
	// private, except in messages
	_Alignas(CHI_LINE) uint32_t counts;
	chi_buffer *held[2];
	choir_dtype dtype[2];
	choir_shape shape[2];
	chi_label label[2];
} chi_small_all_reduce;

// run->small_all_reduce stays NULL if the strategy cannot have them.
choir_status chi_small_all_reduce_open(chi_run *run);
// After all replicas of a run have returned.
void chi_small_all_reduce_clear(chi_run *run);

// r has come to another sync point; r has returned; all must stop.
void chi_small_all_reduce_arrived(chi_replica *r);
void chi_small_all_reduce_returned(chi_replica *r);
void chi_small_all_reduce_stop(chi_run *run);

// The same answer in all replicas for equal tensors.
bool chi_small_all_reduce_takes(const chi_replica *r, choir_reduce_op op, const choir_tensor *t);
// In r's frame. Errors are recorded in the run, too.
choir_tensor *chi_small_all_reduce_sum(chi_replica *r, const choir_tensor *t);
