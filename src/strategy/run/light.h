// Small sums where every device carries one replica and all memory is the host's. Each replica
// says where its contribution lies, sums all of them by itself when all have come, says that it
// has read them, and leaves when all have: two hand-overs between processors, where a meeting and
// a collective need several.
#pragma once

#include "strategy/run/run.h"

enum { CHI_LIGHT_BYTES = 16 << 10, CHI_LIGHT_REPLICAS = 8 };

// How far a replica has come, for others to look at without a lock: bit 0: the run has failed; bit
// 1: it has returned; then 15 bits that count the steps of its light sums (come, and read), and 15
// that count its meetings. Counts wrap; replicas are never half way round apart.
typedef struct chi_light {
	chi_gate gate;
	uint64_t hash; // of dtype and shape
	const choir_tensor *tensor; // its contribution, from when it comes until all have read
	char rest_of_line[64];
} chi_light;

// Memory for a run's replicas, if its strategy can have light sums at all; run->light stays NULL
// if not.
choir_status chi_light_open(chi_run *run);
void chi_light_close(chi_run *run);
void chi_light_clear(chi_run *run); // between runs

// For the rest of the run: r has come to another meeting (sequence moved); r has returned; all
// must stop.
void chi_light_met(chi_replica *r);
void chi_light_returned(chi_replica *r);
void chi_light_stop(chi_run *run);

// Whether t is summed lightly: the same answer for equal tensors in all replicas.
bool chi_light_takes(const chi_replica *r, choir_reduce_op op, const choir_tensor *t);
// The sum as a new tensor of r's frame; NULL: recorded in the run and in the frame.
choir_tensor *chi_light_sum(chi_replica *r, choir_tensor *t);
