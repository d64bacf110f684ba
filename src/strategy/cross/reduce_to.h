// One reduction to a destination on its way.
#pragma once

#include "strategy/cross/sum.h"

typedef struct {
	choir_reduce_op op;
	choir_value *value, *to;
	choir_value *result; // on the destination's devices; NULL yet for what is the same for all
	bool by_communicator; // cross-device operations make it
	double divisor;
	chi_partial_sums *partial_sums; // of each device; NULL: nothing is folded
} chi_reduction;

// Checks everything that can be, and changes nothing.
choir_status chi_reduction_check(
		choir_cross *x, choir_reduce_op op, choir_reduction *item, chi_reduction *j);
// The whole way by itself; a failure is in x's frame.
choir_status chi_reduction_do(choir_cross *x, choir_reduce_op op,
		const chi_communication *communication, chi_reduction *j);
// Of one by_communicator: memory for its results, unless they have it, and what each device
// brings. To be cleared.
choir_status chi_reduction_make_results(choir_cross *x, chi_reduction *j);
choir_status chi_reduction_add_up(choir_cross *x, chi_reduction *j);
void chi_reduction_clear(const choir_strategy *s, chi_reduction *j);
// Where device d wants the sum: the destination's component on its memory; NULL: it wants none.
void *chi_reduction_wanted(const choir_strategy *s, const chi_reduction *j, int d);
