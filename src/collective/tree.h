// The canonical tree, by which every sum over replicas is made. A node over [lo, hi) splits at lo
// plus the largest power of two below its length. So a sum depends on the number of replicas and
// never on how many devices or workers carry them. A device adds the block of replicas that it
// carries up to the block's maximal nodes, at most twice the logarithm of its length, and others
// add these. All sums of the tree come from one recursion; what it adds is the caller's.
#pragma once

#include "base/alloc.h"
#include "choir/extend/cross_device_ops_table.h"
#include "tensor/tensor.h"

enum { CHI_CHUNK = 8192 }; // elements; chunks begin at multiples of it
enum { CHI_TREE_LEVEL = CHI_CHUNK * 8 }; // bytes of a chunk of the largest dtype

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
// The maximal nodes within [lo, hi) of the tree over [0, replicas), in ascending order: how many.
// node, unless NULL, has room for them.
int chi_tree_find_nodes(int replicas, int lo, int hi, choir_partial_sum node[]);

// What a sum over the tree is made of. A node's sum is made at a level: a left half at its node's,
// a right half at the next. Whatever is at a level is added before the level is used again.
typedef struct {
	// Whether the node [lo, hi) needs no halves. *sum becomes its sum, or NULL if it has none.
	bool (*find)(void *self, int lo, int hi, int level, const void **sum);
	// The sum of two halves that both have one.
	const void *(*add)(void *self, const void *left, const void *right, int level);
} chi_tree_adder;
// The sum of the node [lo, hi); NULL: none of its replicas has one. Level 0 is the caller's.
const void *chi_tree_sum(const chi_tree_adder *adder, void *self, int lo, int hi, int level);

// ---- Contributions, added as they come.

enum { CHI_MAX_PARTIAL_SUMS = 64 };

// The nodes of one device for one sum, in ascending order. Contributions may come in any order,
// each once; in ascending order they need few nodes.
typedef struct {
	int replicas;
	choir_dtype dtype;
	choir_shape shape;
	int n;
	choir_partial_sum node[CHI_MAX_PARTIAL_SUMS];
	// Holds the node's data; one reference is ours. NULL: the caller keeps the memory.
	chi_buffer *buffer[CHI_MAX_PARTIAL_SUMS];
	bool own[CHI_MAX_PARTIAL_SUMS]; // made here: may be added into
	// Takes memory that was made here when it is added up, if the caller releases that list after
	// it has waited for the stream. NULL: each addition waits.
	chi_buffer **spent;
} chi_partial_sums;

void chi_partial_sums_begin(
		chi_partial_sums *sums, int replicas, choir_dtype dtype, const choir_shape *shape);
// Takes a reference to buffer. data, of the sum's dtype and shape, lies in it and does not change
// any more. Additions are queued on stream.
choir_status chi_partial_sums_add(
		chi_partial_sums *sums, int replica, chi_buffer *buffer, void *data, chi_stream *stream);
// The same for a node of the tree; buffer may be NULL. own: no one else reads that memory, so it
// may be added into.
choir_status chi_partial_sums_add_node(chi_partial_sums *sums, choir_partial_sum node,
		chi_buffer *buffer, bool own, chi_stream *stream);
// Whether a replica's contribution has come.
bool chi_partial_sums_have(const chi_partial_sums *sums, int replica);
void chi_partial_sums_clear(chi_partial_sums *sums); // releases the buffers

// ---- Sums of what lies in host memory, chunk by chunk, small enough for the cache.

// Element first of packed memory.
static inline char *chi_element(const void *data, choir_dtype dtype, int64_t first)
{
	return (char *) (uintptr_t) data + (size_t) first * chi_dtype_size(dtype);
}
// Memory for the levels of a sum over so many replicas.
static inline size_t chi_tree_scratch(int replicas)
{
	return (size_t) chi_tree_depth(replicas) * CHI_TREE_LEVEL;
}

// One chunk of a sum over all parts of all members.
typedef struct {
	const choir_collective *const *c; // of each member; of the first dtype, divisor and name count
	int members, replicas;
	int64_t first, count; // at most CHI_CHUNK elements
	char *to; // room for them
	bool nontemporal; // to is part of more than the caches hold, and is not read soon
	char *scratch; // chi_tree_scratch(replicas) bytes
} chi_chunk_sum;
// *sum becomes to, or the only part where that is the sum. CHOIR_INTERNAL: parts are missing.
choir_status chi_chunk_sum_make(const chi_chunk_sum *s, chi_stream *stream, const void **sum);
// Divides n elements, f32 or f64, that lie in host memory. By 1: nothing.
choir_status chi_sum_divide(
		chi_stream *stream, choir_dtype dtype, void *data, double divisor, int64_t n);

// The nodes of one worker, summed from what its devices have, in memory that is kept.
typedef struct {
	int n;
	choir_partial_sum *node;
	chi_scratch memory;
} chi_tree_nodes;

choir_status chi_tree_nodes_open(chi_tree_nodes *nodes, int n, const choir_partial_sum node[]);
void chi_tree_nodes_close(chi_tree_nodes *nodes); // a zeroed one is fine
// Memory for a sum like c: each node's data becomes c->elements of c->dtype, one node after
// another. Several threads may call it one at a time while others sum, if all have the same c.
choir_status chi_tree_nodes_reserve(chi_tree_nodes *nodes, const choir_collective *c);
// Sums a chunk of every node from first on. The parts of c cover the nodes; CHOIR_INTERNAL if not.
// scratch: chi_tree_scratch(replicas) bytes.
choir_status chi_tree_nodes_sum(const chi_tree_nodes *nodes, const choir_collective *const c[],
		int members, int64_t first, char *scratch);
