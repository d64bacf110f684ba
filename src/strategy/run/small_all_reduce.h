// All-reduce of small tensors without a lock, if every device runs one replica in host memory. A
// replica publishes its tensor, waits, and sums all. The tensor stays until the next small
// all-reduce or the run's end.
#pragma once

#include "base/thresholds.h"
#include "strategy/run/run.h"

typedef struct {
	uint64_t hash;
	chi_call_order order;
	const void *data;
} chi_small_all_reduce_part;

// The gate's word: bit 0: the run has failed; bit 1: the replica has returned; 15 bits count small
// all-reduces and 15 sync points, wrapping. Two parts alternate: one is overwritten only after all
// have arrived at the next sum.
typedef struct chi_small_all_reduce {
	chi_gate gate;
	chi_small_all_reduce_part part[2];
	_Alignas(CHI_LINE) uint32_t counts;
	chi_buffer *held[2];
	choir_dtype dtype[2];
	choir_shape shape[2];
	chi_label label[2];
} chi_small_all_reduce;

// Without them run->small_all_reduce stays NULL.
choir_status chi_small_all_reduce_open(chi_run *run);
void chi_small_all_reduce_clear(chi_run *run);

void chi_small_all_reduce_arrived(chi_replica *r);
void chi_small_all_reduce_returned(chi_replica *r);
void chi_small_all_reduce_stop(chi_run *run);

// Equal in all replicas for equal tensors.
bool chi_small_all_reduce_takes(const chi_replica *r, choir_reduce_op op, const choir_tensor *t);
// In r's frame. Errors are recorded in the run, too.
choir_tensor *chi_small_all_reduce_sum(chi_replica *r, const choir_tensor *t);
