// Reductions to a destination, and the sums over all devices of which they consist. One thread
// makes the calls for all devices.
#pragma once

#include "collective/tree.h"
#include "strategy/cross/cross.h"
#include "strategy/strategy_options.h"

typedef struct {
	size_t n;
	const choir_partial_sum *part; // ascending
	void *result;
} chi_sum_device;

typedef struct {
	const char *name;
	choir_dtype dtype;
	double divisor;
	chi_sum_device *device;
	size_t packs;
	const int64_t *ends;
	int64_t batch_bytes; // as in choir_collective
	bool by_one; // no other thread helps, however large it is
} chi_sum;

// Makes a sum over all devices and waits for it. After a failure, s's communicators are reset. f:
// for scratch memory.
choir_status chi_sum_devices(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum);
// The same for a sum of one pack of a tensor of each replica. Sets the devices' parts.
choir_status chi_sum_replicas(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum, choir_tensor *const tensors[]);
// Adds the replicas' tensors to partial sums of each device, all devices concurrently. *sums is
// in f; chi_sum_clear releases what they hold, even after a failure.
choir_status chi_sum_add_up(
		choir_strategy *s, choir_frame *f, choir_tensor *const tensors[], chi_partial_sums **sums);
void chi_sum_clear(const choir_strategy *s, chi_partial_sums *sums); // may be NULL

typedef struct {
	choir_reduce_op op;
	choir_value *value, *to;
	// NULL at first if value is the same in all replicas
	choir_value *result;
	bool by_communicator; // cross-device operations can make it
	double divisor;
	chi_partial_sums *partial_sums; // in a pack
} chi_reduction;

// Checks a reduce_to call's context and op. Errors are recorded in x's frame.
choir_status chi_reduction_check_call(choir_cross *x, choir_reduce_op op, const char *what);
// Makes all other checks of a reduction and fills in j.
choir_status chi_reduction_check(
		choir_cross *x, choir_reduce_op op, const choir_reduction *given, chi_reduction *j);
// Makes a reduction to its destination. Errors are recorded in x's frame.
choir_status chi_reduction_do(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
// Begins a reduction to its destination, lazily if possible (lazy_reduce.h).
choir_status chi_reduction_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
choir_status chi_reduction_make_results(choir_cross *x, chi_reduction *j);
// Returns the reduction's destination on device d, or NULL.
void *chi_reduction_wanted(const choir_strategy *s, const chi_reduction *j, int d);
