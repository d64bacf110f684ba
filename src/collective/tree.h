// The canonical tree, which fixes the order of every sum over replicas. A node over [lo, hi)
// splits at lo plus the largest power of two below its length. So a sum depends on the number of
// replicas, not on the devices and workers that run them. A device sums its replicas up to their
// maximal nodes, at most 2 log2(length) of them; others sum these.
#pragma once

#include "base/alloc.h"
#include "choir/extend/cross_device_ops_table.h"
#include "tensor/tensor.h"

enum { CHI_CHUNK = 8192 }; // elements; chunks begin at its multiples
enum { CHI_TREE_LEVEL = CHI_CHUNK * 8 }; // bytes of a chunk of the largest dtype

static inline int chi_tree_split(int lo, int hi)
{
	int half = 1;
	while (2 * half < hi - lo)
		half *= 2;
	return lo + half;
}

// Returns whether [lo, hi) is a node of the tree over [0, replicas).
bool chi_tree_is_node(int replicas, int lo, int hi);
// Returns the number of levels of the tree; 1 for one replica.
int chi_tree_depth(int replicas);
// Finds the maximal nodes within [lo, hi) of the tree over [0, replicas), in ascending order.
// Returns their number. node: NULL, or with room for them.
int chi_tree_find_nodes(int replicas, int lo, int hi, choir_partial_sum node[]);

// The operations of a sum. A node's left half is made at the node's level, its right half at the
// next one. A value is added before its level is used again.
typedef struct {
	// True: the node [lo, hi) needs no halves. *sum becomes its sum; NULL: no replica has one.
	bool (*find)(void *self, int lo, int hi, int level, const void **sum);
	// Adds two halves.
	const void *(*add)(void *self, const void *left, const void *right, int level);
} chi_tree_adder;
// Returns the sum of the node [lo, hi), made at level; NULL: no replica has one. The caller passes
// level 0.
const void *chi_tree_sum(const chi_tree_adder *adder, void *self, int lo, int hi, int level);

// ---- Partial sums, of contributions in any order.

enum { CHI_MAX_PARTIAL_SUMS = 64 };

// One device's partial sums: nodes in ascending order. Each contribution comes once, in any order;
// ascending order needs the fewest nodes.
typedef struct {
	int replicas;
	choir_dtype dtype;
	choir_shape shape;
	int n;
	choir_partial_sum node[CHI_MAX_PARTIAL_SUMS];
	// Retained, holds the node's data. NULL: the caller owns the memory.
	chi_buffer *buffer[CHI_MAX_PARTIAL_SUMS];
	bool own[CHI_MAX_PARTIAL_SUMS]; // allocated here, so it may be written
	// Receives allocated memory that has been added up. The caller releases the list after it has
	// waited for the stream. NULL: each addition waits.
	chi_buffer **spent;
} chi_partial_sums;

void chi_partial_sums_begin(
		chi_partial_sums *sums, int replicas, choir_dtype dtype, const choir_shape *shape);
// Adds a replica's contribution and retains buffer, which holds data. data has the sum's dtype and
// shape and does not change any more. Additions are queued on stream.
choir_status chi_partial_sums_add(
		chi_partial_sums *sums, int replica, chi_buffer *buffer, void *data, chi_stream *stream);
// Adds a node of the tree; buffer may be NULL. own: nobody else reads the memory, so it may be
// overwritten.
choir_status chi_partial_sums_add_node(chi_partial_sums *sums, choir_partial_sum node,
		chi_buffer *buffer, bool own, chi_stream *stream);
// Returns whether a replica has contributed.
bool chi_partial_sums_have(const chi_partial_sums *sums, int replica);
void chi_partial_sums_clear(chi_partial_sums *sums); // releases the buffers

// ---- Sums in host memory, by chunks that fit into the cache.

// Returns the address of an element.
static inline char *chi_element(const void *data, choir_dtype dtype, int64_t first)
{
	return (char *) (uintptr_t) data + (size_t) first * chi_dtype_size(dtype);
}
// Returns the scratch bytes of a sum.
static inline size_t chi_tree_scratch(int replicas)
{
	return (size_t) chi_tree_depth(replicas) * CHI_TREE_LEVEL;
}

// One chunk of a sum over all members' parts.
typedef struct {
	const choir_collective *const *c; // one per member; c[0] has dtype, divisor and name of all
	int members, replicas;
	int64_t first, count; // at most CHI_CHUNK
	char *to; // room for count elements
	bool nontemporal; // larger than the caches and not read soon
	char *scratch; // of chi_tree_scratch(replicas) bytes
} chi_chunk_sum;
// Sums and divides a chunk. *sum becomes s->to, or the only part if that is the sum.
// CHOIR_INTERNAL: parts are missing.
choir_status chi_chunk_sum_make(const chi_chunk_sum *s, chi_stream *stream, const void **sum);
// Divides n elements (f32 or f64) in host memory; by 1: nothing.
choir_status chi_sum_divide(
		chi_stream *stream, choir_dtype dtype, void *data, double divisor, int64_t n);

// One worker's nodes, summed from its devices' parts. The memory is reused.
typedef struct {
	int n;
	choir_partial_sum *node;
	chi_scratch memory;
} chi_tree_nodes;

choir_status chi_tree_nodes_open(chi_tree_nodes *nodes, int n, const choir_partial_sum node[]);
void chi_tree_nodes_close(chi_tree_nodes *nodes); // may be zeroed
// Reserves memory for a sum like c: each node's data becomes c->elements of c->dtype, one node
// after another. While others sum with the same c, threads may call it one at a time.
choir_status chi_tree_nodes_reserve(chi_tree_nodes *nodes, const choir_collective *c);
// Sums one chunk of every node, from element first on. scratch: chi_tree_scratch(replicas) bytes.
// CHOIR_INTERNAL: the parts do not cover the nodes.
choir_status chi_tree_nodes_sum(const chi_tree_nodes *nodes, const choir_collective *const c[],
		int members, int64_t first, char *scratch);
