// What all ways of reducing have in common: a meeting of the members, and how a collective is cut
// into pieces, each of which whoever waits may do from beginning to end. So a way is a function
// that does one piece, and no piece waits for another.
#pragma once

#include "collective/rendezvous.h"
#include "tensor/tensor.h"

enum { CHI_CHUNK = 8192 }; // elements; pieces begin at multiples of it

typedef struct {
	chi_rendezvous rendezvous;
	const choir_group *group;
	chi_chunk_fn *do_chunk; // gets the chi_algorithm as self
	int max_chunks; // at most so many of about equal length; 0: each is a slice
} chi_algorithm;

choir_status chi_algorithm_open(
		chi_algorithm *w, const choir_group *group, chi_chunk_fn *chunk, int chunks);
// Of a table whose self begins with a chi_algorithm: the rest of the slots.
void chi_algorithm_close(void *self);
choir_status chi_algorithm_join(
		void *self, int member, const choir_collective *c, uint64_t *request);
choir_status chi_algorithm_wait(void *self, int member, uint64_t request, double seconds);
void chi_algorithm_abort(void *self);
void chi_algorithm_reset(void *self);

// The elements of a collective that are the index-th piece.
void chi_algorithm_chunk(const chi_algorithm *w, const choir_collective *c, int64_t index,
		int64_t *first, int64_t *count);
// Memories that members have of their own: 1 if all share theirs.
int chi_group_memories(const choir_group *group);
// Element first of packed memory.
static inline char *chi_element(const void *data, choir_dtype dtype, int64_t first)
{
	return (char *) (uintptr_t) data + (size_t) first * chi_dtype_size(dtype);
}
// Divides n elements, f32 or f64, that lie in host memory. By 1: nothing.
choir_status chi_algorithm_divide(
		chi_stream *stream, choir_dtype dtype, void *data, double divisor, int64_t n);

// One slice of a sum in host memory, in the canonical tree.
typedef struct {
	const choir_collective *const *c; // of each member; of the first dtype, divisor and name count
	int members, replicas;
	int64_t first, count; // at most CHI_CHUNK elements
	char *to; // room for them
	bool nontemporal; // to is part of more than the caches hold, and nobody looks at it soon
	char *scratch; // room for chi_tree_depth(replicas) slices of 8-byte elements
} chi_chunk_sum;
// *sum becomes to, or the one part there is where it is the sum. CHOIR_INTERNAL: parts are
// missing.
choir_status chi_chunk_sum_make(const chi_chunk_sum *s, chi_stream *stream, const void **sum);
