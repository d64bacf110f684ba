// The canonical tree, which fixes the order of every sum over replicas: a node over [lo, hi)
// splits at lo plus the largest power of two below its length. A device sums its replicas to the
// maximal nodes that they complete, at most 2 log2(length).
#pragma once

#include "base/alloc.h"
#include "choir/extend/cross_device_ops_table.h"
#include "tensor/tensor.h"

enum { CHI_CHUNK = 8192 }; // elements; chunks begin at its multiples
enum { CHI_TREE_LEVEL = CHI_CHUNK * 8 };

static inline int chi_tree_split(int lo, int hi)
{
	int half = 1;
	while (2 * half < hi - lo)
		half *= 2;
	return lo + half;
}

bool chi_tree_is_node(int replicas, int lo, int hi);
int chi_tree_depth(int replicas);
// The maximal nodes within [lo, hi), in ascending order. Returns their number. node may be NULL.
int chi_tree_find_nodes(int replicas, int lo, int hi, choir_partial_sum node[]);

// The left half is made at the node's level, the right half at the next.
typedef struct {
	// True: [lo, hi) needs no halves. *sum NULL: no replica has one.
	bool (*find)(void *self, int lo, int hi, int level, const void **sum);
	const void *(*add)(void *self, const void *left, const void *right, int level);
} chi_tree_adder;
// NULL: no replica has one. The caller passes level 0.
const void *chi_tree_sum(const chi_tree_adder *adder, void *self, int lo, int hi, int level);

enum { CHI_MAX_PARTIAL_SUMS = 64 };

// One device's nodes of the tree, ascending. Ascending contributions need the fewest nodes.
typedef struct {
	int replicas;
	choir_dtype dtype;
	choir_shape shape;
	int n;
	choir_partial_sum node[CHI_MAX_PARTIAL_SUMS];
	// Retained. NULL: the caller owns the data.
	chi_buffer *buffer[CHI_MAX_PARTIAL_SUMS];
	bool own[CHI_MAX_PARTIAL_SUMS];
	// Memory of added nodes, to release after waiting for the stream. NULL: each addition waits.
	chi_buffer **spent;
} chi_partial_sums;

void chi_partial_sums_begin(
		chi_partial_sums *sums, int replicas, choir_dtype dtype, const choir_shape *shape);
// Retains buffer, which holds data. data must not change.
choir_status chi_partial_sums_add(
		chi_partial_sums *sums, int replica, chi_buffer *buffer, void *data, chi_stream *stream);
// Rounds to the sums' dtype, and waits until data has been read.
choir_status chi_partial_sums_add_rounded(
		chi_partial_sums *sums, int replica, choir_dtype from, void *data, chi_stream *stream);
// buffer may be NULL. own: the memory may be overwritten.
choir_status chi_partial_sums_add_node(chi_partial_sums *sums, choir_partial_sum node,
		chi_buffer *buffer, bool own, chi_stream *stream);
bool chi_partial_sums_have(const chi_partial_sums *sums, int replica);
void chi_partial_sums_clear(chi_partial_sums *sums);

static inline char *chi_element(const void *data, choir_dtype dtype, int64_t first)
{
	return (char *) (uintptr_t) data + (size_t) first * chi_dtype_size(dtype);
}
static inline size_t chi_tree_scratch(int replicas)
{
	return (size_t) chi_tree_depth(replicas) * CHI_TREE_LEVEL;
}

typedef struct {
	const choir_collective *const *c; // per member; c[0] has dtype, divisor and name of all
	int members, replicas;
	int64_t first, count;
	char *to;
	bool nontemporal; // large, and not read soon
	char *scratch; // of chi_tree_scratch(replicas) bytes
} chi_chunk_sum;
// One chunk, divided. *sum: s->to, or the only part if that is the sum. CHOIR_INTERNAL: parts are
// missing.
choir_status chi_chunk_sum_make(const chi_chunk_sum *s, chi_stream *stream, const void **sum);
// f32 or f64 in host memory.
choir_status chi_sum_divide(
		chi_stream *stream, choir_dtype dtype, void *data, double divisor, int64_t n);

typedef struct {
	int n;
	choir_partial_sum *node;
	chi_scratch memory;
} chi_tree_nodes;

choir_status chi_tree_nodes_open(chi_tree_nodes *nodes, int n, const choir_partial_sum node[]);
void chi_tree_nodes_close(chi_tree_nodes *nodes);
// Threads: one at a time, even while others sum with the same c.
choir_status chi_tree_nodes_reserve(chi_tree_nodes *nodes, const choir_collective *c);
// One chunk of each node. scratch: as in chi_chunk_sum. CHOIR_INTERNAL: parts are missing.
choir_status chi_tree_nodes_sum(const chi_tree_nodes *nodes, const choir_collective *const c[],
		int members, int64_t first, char *scratch);
