// Algorithms of collectives: elements are cut into chunks, which the members of a rendezvous
// claim.
#pragma once

#include "collective/rendezvous.h"

// The first field of a table's self; the functions below are for the table.
typedef struct {
	chi_rendezvous rendezvous;
	const choir_group *group;
	chi_chunk_fn *do_chunk;
	int max_chunks; // 0: chunks of CHI_CHUNK elements
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
