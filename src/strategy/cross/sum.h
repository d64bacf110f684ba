// Sums over all devices, made by one thread for all of them: reductions in cross-replica context.
#pragma once

#include "collective/tree.h"
#include "strategy/replica/merge_call.h"

// What a device brings and gets.
typedef struct {
	size_t n;
	const choir_part *part; // in ascending order
	void *result; // on the device; NULL: it wants none
} chi_sum_device;

// A sum that travels in one or several packs.
typedef struct {
	const char *name; // in messages
	choir_dtype dtype;
	double divisor;
	chi_sum_device *device; // of each
	size_t packs;
	const int64_t *ends; // in elements
} chi_sum;

// The options of a call, with the strategy's where it says nothing.
typedef struct {
	chi_communicator *communicator;
	double timeout;
	int64_t bytes_per_pack, num_packs; // 0: not packed by it
	choir_slices_result slices;
} chi_communication;

// Checks o (NULL: the strategy's) and finds, or opens, what it names.
choir_status chi_communication_resolve(
		choir_strategy *s, const choir_communication_options *o, chi_communication *communication);
// Sums everything and waits; after a failure all ways of s start over. Scratch memory is f's.
choir_status chi_sum_devices(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum);
