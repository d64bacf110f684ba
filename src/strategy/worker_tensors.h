// What a strategy's workers show each other outside of sums: which values are the same in all of
// them, tensors of one for all, and those of all one behind another. Each is an exchange, which
// all workers make at the same place (collective/process_group.h). Without peers nobody calls
// these.
#pragma once

#include "strategy/replica/merge_call.h"

enum { CHI_SUM_NAME = 64 };

// The name of a sum in messages, in which is all that must be equal: other workers see it alone.
// dtype: of what was given, which t may have been cast from; numbers are added up as f64.
void chi_worker_sum_name(const char *call, choir_reduce_op op, choir_dtype dtype,
		const choir_tensor *t, char name[CHI_SUM_NAME]);

// Of values that were merged of this worker's replicas, under names: where a plain number is no
// number or another one elsewhere, it becomes a value of each replica, as it would be if all
// replicas were here. what: in messages.
choir_status chi_worker_agree_on_numbers(choir_strategy *s, choir_frame *f, const char *what,
		const chi_named_tensors *names, choir_value *values[]);
// Worker from's t, in frame f, everywhere; the others' t does not matter. NULL: recorded in f.
choir_tensor *chi_worker_broadcast(
		choir_strategy *s, choir_frame *f, int from, choir_tensor *t, const char *what);
// The worker that has a replica, by its id.
int chi_worker_of_replica(const choir_strategy *s, int replica);
// All workers' tensors, which may differ in size along an axis, in frame f; *first: along that
// axis, where this worker's begin. NULL: recorded in f.
choir_tensor *chi_worker_concat(
		choir_strategy *s, choir_frame *f, choir_tensor *t, int axis, int64_t *first);
