// What the workers of a strategy agree on and show each other, outside of sums. All workers make
// each of these calls at the same place. Without a process group, the calls of the first half do
// what is right for one worker, and nobody makes those of the second.
#pragma once

#include "strategy/run/results.h"

// Joins the workers of s's cluster: which has which replicas, and whether all were made with what
// must be equal. *local is the number of replicas that this worker would have if no number was
// asked for, and becomes the number that it has.
choir_status chi_strategy_open_process_group(choir_strategy *s, int *local);
void chi_strategy_close_process_group(choir_strategy *s);

// A variable that is about to be made: all workers make it, with the chief's values, which initial
// (chi_variable_bytes, host memory) becomes.
choir_status chi_strategy_agree_on_variable(
		choir_strategy *s, const chi_variable_plan *plan, void *initial, size_t bytes);
// The text must be the same on all workers.
choir_status chi_strategy_same(choir_strategy *s, const char *fmt, ...) CHOIR_PRINTF(2, 3);
// The same, but compared later: with values, after the first update and then as often as they are
// (worker_consistency.h), so that it takes no message of its own.
choir_status chi_strategy_note(choir_strategy *s, const char *fmt, ...) CHOIR_PRINTF(2, 3);
void chi_strategy_forget_notes(choir_strategy *s, size_t length); // all after length bytes
// *sum becomes the sum of all workers'.
choir_status chi_strategy_add_counts(choir_strategy *s, double *sum);
// Counts the examples of all workers in a set that knows only those of this one.
choir_status chi_strategy_count_examples(choir_strategy *s, choir_values *args);
// The parts of an ON_READ variable of all replicas that are in step, in the order of their ids:
// in_sync times chi_variable_bytes to out.
choir_status chi_strategy_all_parts(choir_variable *v, void *out);
// How many parts an ON_READ variable has, on all workers.
static inline int chi_strategy_parts(const choir_variable *v)
{
	return v->strategy->process_group == NULL ? v->copies : v->strategy->in_sync;
}
// How something went on each worker, here status with choir_error(): CHOIR_OK if it went well
// everywhere. Else all workers get the failure of the lowest that has one, which is named if it is
// another, and can go on.
choir_status chi_strategy_agree(choir_strategy *s, choir_status status, const char *what);
// The chief's *data of *bytes, on all workers: the others get memory of their own (chi_free),
// after a failure none.
choir_status chi_strategy_share(choir_strategy *s, void **data, size_t *bytes, const char *what);
// Makes a failure here one of all workers: of the cluster, unless all of them come here with the
// same. No other thread of this worker exchanges anything meanwhile. Returns its status.
choir_status chi_strategy_abort(choir_strategy *s, choir_status status);
// The same for a tensor that was to be made in f and is NULL. Returns t.
choir_tensor *chi_strategy_abort_if_null(choir_strategy *s, choir_frame *f, choir_tensor *t);

enum { CHI_SUM_NAME = 64 };
// The name of a sum in messages, in which is all that must be equal: other workers see it alone.
// dtype: of what was given, which t may have been cast from; numbers are added up as f64.
void chi_worker_sum_name(const char *call, choir_reduce_op op, choir_dtype dtype,
		const choir_tensor *t, char name[CHI_SUM_NAME]);
// Values that were merged of this worker's replicas, under names. A plain number that is no number
// on another worker, or another number, becomes a value of each replica, as it would be if all
// replicas were here. what: in messages.
choir_status chi_worker_agree_on_numbers(choir_strategy *s, choir_frame *f, const char *what,
		const chi_named_tensors *names, choir_value *values[]);
// Worker from's t, in frame f, on all workers; the others' t does not matter. NULL: recorded in f.
choir_tensor *chi_worker_broadcast(
		choir_strategy *s, choir_frame *f, int from, choir_tensor *t, const char *what);
// The worker that has a replica, by its id.
int chi_worker_of_replica(const choir_strategy *s, int replica);
// All workers' tensors, which may differ in size along an axis, in frame f; *first: where this
// worker's begins along that axis. NULL: recorded in f.
choir_tensor *chi_worker_concat(
		choir_strategy *s, choir_frame *f, choir_tensor *t, int axis, int64_t *first);
