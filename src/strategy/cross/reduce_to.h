// One reduction to a destination on its way.
#pragma once

#include "strategy/cross/sum.h"

typedef struct {
	choir_reduce_op op;
	choir_value *value, *to;
	choir_value *result; // on the destination's devices; NULL yet for what is the same for all
	bool by_group; // cross-device operations make it
	double divisor;
	chi_partial_sums *fold; // of each lane; NULL: nothing is folded
} chi_job;

// Checks everything that can be, and changes nothing.
choir_status chi_job_check(choir_cross *x, choir_reduce_op op, choir_reduction *item, chi_job *j);
// The whole way by itself; a failure is in x's frame.
choir_status chi_job_do(choir_cross *x, choir_reduce_op op, const chi_ways *ways, chi_job *j);
// Of a job by_group: memory for its results, unless they have it, and what each lane brings. To be
// cleared.
choir_status chi_job_make_results(choir_cross *x, chi_job *j);
choir_status chi_job_fold(choir_cross *x, chi_job *j);
void chi_job_clear(const choir_strategy *s, chi_job *j);
// Where lane wants the sum: the destination's component on its memory; NULL: it wants none.
void *chi_job_wanted(const choir_strategy *s, const chi_job *j, int lane);
