// The canonical tree, by which every sum over replicas is made: a node over [lo, hi) splits at lo
// plus the largest power of two below its length. The sum depends on the number of replicas alone,
// never on how many devices or workers carry them. A carrier folds the block of replicas that it
// has into the block's maximal nodes (at most 2 log2 of its length) and hands those on.
#pragma once

#include "choir/extend/cross.h"
#include "tensor/buffer.h"

static inline int chi_tree_split(int lo, int hi)
{
	int half = 1;
	while (2 * half < hi - lo)
		half *= 2;
	return lo + half;
}

// Whether [lo, hi) is a node of the tree over [0, replicas).
bool chi_tree_is_node(int replicas, int lo, int hi);
// Levels of the tree over so many replicas: 1 for one.
int chi_tree_depth(int replicas);

enum { CHI_MAX_PARTIAL_SUMS = 64 };

// The nodes of one carrier for one sum, in ascending order. Contributions may come in any order,
// each once; those that come about in order need few parts.
typedef struct {
	int replicas;
	choir_dtype dtype;
	choir_shape shape;
	int n;
	choir_part node[CHI_MAX_PARTIAL_SUMS];
	// Holds part's data; one reference is the fold's. NULL: memory of somebody who keeps it.
	chi_buffer *buffer[CHI_MAX_PARTIAL_SUMS];
	bool own[CHI_MAX_PARTIAL_SUMS]; // made here: may be added into
	// Where memory that was made here goes when it is added up, if the caller releases that list
	// after the stream has been waited for. NULL: the fold waits itself.
	chi_buffer **spent;
} chi_partial_sums;

void chi_partial_sums_begin(
		chi_partial_sums *sums, int replicas, choir_dtype dtype, const choir_shape *shape);
// Takes a reference to buffer; data (of the fold's dtype and shape) lies in it and does not change
// any more. Sums are queued on stream.
choir_status chi_partial_sums_add(
		chi_partial_sums *sums, int replica, chi_buffer *buffer, void *data, chi_stream *stream);
// The same for a node of the tree; buffer may be NULL. own: nobody else looks at that memory, so
// that it may be added into.
choir_status chi_partial_sums_add_node(
		chi_partial_sums *sums, choir_part node, chi_buffer *buffer, bool own, chi_stream *stream);
// Whether a replica's contribution has come.
bool chi_partial_sums_have(const chi_partial_sums *sums, int replica);
void chi_partial_sums_clear(chi_partial_sums *sums); // gives the buffers back
