// Sums over all lanes, made by one thread for all of them: reductions in cross-replica context.
#pragma once

#include "collective/tree.h"
#include "strategy/replica/merge_call.h"

// What a lane brings and gets.
typedef struct {
	size_t n;
	const choir_part *part; // in ascending order
	void *result; // on the lane's device; NULL: it wants none
} chi_sum_lane;

// A sum that travels in one or several packs.
typedef struct {
	const char *name; // in messages
	choir_dtype dtype;
	double divisor;
	chi_sum_lane *lane; // of each
	size_t packs;
	const int64_t *ends; // in elements
} chi_sum;

// The options of a call, with the strategy's where it says nothing.
typedef struct {
	chi_communicator *group;
	double timeout;
	int64_t bytes_per_pack, num_packs; // 0: not packed by it
	choir_slices_result slices;
} chi_ways;

// Checks o (NULL: the strategy's) and finds, or opens, what it names.
choir_status chi_ways_find(
		choir_strategy *s, const choir_communication_options *o, chi_ways *ways);
// Sums everything and waits; after a failure all ways of s start over. Scratch memory is f's.
choir_status chi_sum_lanes(
		choir_strategy *s, choir_frame *f, const chi_ways *ways, const chi_sum *sum);
