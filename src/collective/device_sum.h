// An all-reduce between workers in devices' memory, which the transport takes (GPU-aware MPI). The
// bits are those of sums in host memory.
#pragma once

#include "collective/process_group.h"
#include "collective/rendezvous.h"
#include "collective/tree.h"

typedef struct {
	const choir_group *group;
	chi_stream *stream; // of the first device; the owner frees it
	chi_partial_sums nodes; // of this worker
	chi_buffer *spent, *total;
} chi_device_sum;

// All devices are of one kind, whose memory the cluster's transport takes.
bool chi_device_sum_is_possible(const choir_group *group, const choir_cluster *c);
void chi_device_sum_close(chi_device_sum *s);

// Three steps, in this order. Afterwards no queued work uses the members' memory.
choir_status chi_device_sum_reduce(chi_device_sum *s, const chi_round *round);
choir_status chi_device_sum_exchange(
		chi_device_sum *s, const chi_round *round, chi_process_group *p);
choir_status chi_device_sum_deliver(chi_device_sum *s, const chi_round *round);
