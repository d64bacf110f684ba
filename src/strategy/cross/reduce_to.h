// Reductions to a destination, and the sums over all devices that they are made of. One thread
// makes each of these for all devices.
#pragma once

#include "collective/tree.h"
#include "strategy/cross/cross.h"
#include "strategy/strategy_options.h"

// What a device brings and gets.
typedef struct {
	size_t n;
	const choir_partial_sum *part; // in ascending order
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

// Sums and waits; after a failure the communicators of s start over. Scratch memory is f's.
choir_status chi_sum_devices(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum);

// One reduction on its way.
typedef struct {
	choir_reduce_op op;
	choir_value *value, *to;
	choir_value *result; // on the destination's devices; NULL yet for what is the same for all
	bool by_communicator; // cross-device operations make it
	double divisor;
	chi_partial_sums *partial_sums; // of each device; NULL: nothing is folded
} chi_reduction;

// What every call checks first: its context, and that op is SUM or MEAN. A failure is in x's
// frame.
choir_status chi_reduction_check_call(choir_cross *x, choir_reduce_op op, const char *what);
// Checks everything that can be, and changes nothing.
choir_status chi_reduction_check(
		choir_cross *x, choir_reduce_op op, const choir_reduction *given, chi_reduction *j);
// The whole reduction by itself; a failure is in x's frame.
choir_status chi_reduction_do(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
// The same, or, where that is possible, only a value that waits until it is needed
// (lazy_reduce.h).
choir_status chi_reduction_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
// Where by_communicator: makes memory for the results that have none, and folds what each device
// has; then chi_reduction_clear.
choir_status chi_reduction_make_results(choir_cross *x, chi_reduction *j);
choir_status chi_reduction_add_up(choir_cross *x, chi_reduction *j);
void chi_reduction_clear(const choir_strategy *s, chi_reduction *j);
// Where device d wants the sum: the destination's component on its memory; NULL: it wants none.
void *chi_reduction_wanted(const choir_strategy *s, const chi_reduction *j, int d);
