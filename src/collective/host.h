// Sums of what lies in host memory, slice by slice, small enough for the cache: what the ways have
// in common that do not send anything from device to device.
#pragma once

#include "collective/way.h"

// A walk over all parts of all members, in the order of replicas, at elements first .. first +
// count - 1.
typedef struct {
	const choir_collective *const *c; // of each member
	int members, member;
	size_t index;
	choir_dtype dtype;
	size_t size; // of an element
	int64_t first, count;
	bool nontemporal; // a sum of two parts goes past the caches
	bool broken; // the parts are not those of the tree
} chi_tree_sum;

chi_tree_sum chi_tree_sum_begin(const choir_collective *const c[], int members, choir_dtype dtype,
		int64_t first, int64_t count);
// The part that comes next; NULL: there is none.
const choir_part *chi_tree_sum_next(chi_tree_sum *w);
// The sum of the node [lo, hi): a part as it is, or the sum of its halves in to. spare has room
// for a slice on each level of the tree, CHI_TREE_SUM_LEVEL bytes apart.
const void *chi_tree_sum_node(chi_tree_sum *w, int lo, int hi, char *to, char *spare);
enum { CHI_TREE_SUM_LEVEL = CHI_CHUNK * 8 }; // bytes
// The sums of n nodes, which the parts of c cover, at the elements of a slice from first on: each
// to where that node lies in memory, one behind another. spare as above. CHOIR_INTERNAL: they do
// not.
choir_status chi_tree_sum_nodes(const choir_collective *const c[], int members, int64_t first,
		size_t n, const choir_part node[], char *memory, char *spare);
// Gives a finished slice to every result in host memory and calls those who wait for it.
choir_status chi_deliver(const chi_round *round, int members, const void *data, int64_t first,
		int64_t count, size_t size);
