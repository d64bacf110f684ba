// Reductions to a destination.
#pragma once

#include "collective/tree.h"
#include "strategy/cross/cross.h"
#include "strategy/strategy_options.h"

typedef struct {
	size_t n;
	const choir_partial_sum *part;
	void *result;
} chi_sum_device;

typedef struct {
	const char *name;
	choir_dtype dtype;
	double divisor;
	chi_sum_device *device;
	size_t packs;
	const int64_t *ends;
	int64_t batch_bytes;
	bool by_one;
} chi_sum;

// After a failure, s's communicators are reset. f: for scratch memory.
choir_status chi_sum_devices(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum);
choir_status chi_sum_replicas(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum, choir_tensor *const tensors[]);
// *sums is in f. Call chi_sum_clear even after a failure.
choir_status chi_sum_add_up(
		choir_strategy *s, choir_frame *f, choir_tensor *const tensors[], chi_partial_sums **sums);
void chi_sum_clear(const choir_strategy *s, chi_partial_sums *sums);

typedef struct {
	choir_reduce_op op;
	choir_value *value, *to;
	choir_value *result;
	bool by_communicator;
	double divisor;
	chi_partial_sums *partial_sums;
} chi_reduction;

choir_status chi_reduction_check_call(choir_cross *x, choir_reduce_op op, const char *what);
choir_status chi_reduction_check(
		choir_cross *x, choir_reduce_op op, const choir_reduction *given, chi_reduction *j);
choir_status chi_reduction_do(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
choir_status chi_reduction_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
choir_status chi_reduction_make_results(choir_cross *x, chi_reduction *j);
void *chi_reduction_wanted(const choir_strategy *s, const chi_reduction *j, int d);
