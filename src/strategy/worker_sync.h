// Exchanges between workers other than sums, in one order. chi_worker functions need a process
// group.
#pragma once

#include "strategy/run/merge_results.h"

// *local: this worker's number of replicas: the default becomes the actual one.
choir_status chi_strategy_open_process_group(choir_strategy *s, int *local);
void chi_strategy_close_process_group(choir_strategy *s);

// initial (host memory) becomes the chief's values.
choir_status chi_strategy_agree_on_variable(
		choir_strategy *s, const chi_variable_plan *plan, void *initial, size_t bytes);
choir_status chi_strategy_same(choir_strategy *s, const char *fmt, ...) CHOIR_PRINTF(2, 3);
choir_status chi_strategy_note(choir_strategy *s, const char *fmt, ...) CHOIR_PRINTF(2, 3);
// Keeps the first length bytes.
void chi_strategy_forget_notes(choir_strategy *s, size_t length);
choir_status chi_strategy_add_counts(choir_strategy *s, double *sum);
// args know only this worker's.
choir_status chi_strategy_count_examples(choir_strategy *s, choir_values *args);
// From all replicas in step, in the order of ids: in_sync times chi_variable_bytes.
choir_status chi_strategy_all_parts(choir_variable *v, void *out);
static inline int chi_strategy_parts(const choir_variable *v)
{
	return v->strategy->process_group == NULL ? v->copies : v->strategy->in_sync;
}
// status and choir_error(): how it ended here. All return CHOIR_OK or the lowest worker's failure,
// and can continue.
choir_status chi_strategy_agree(choir_strategy *s, choir_status status, const char *what);
// The chief's. The others get their own memory (chi_free), or none after a failure.
choir_status chi_strategy_share(choir_strategy *s, void **data, size_t *bytes, const char *what);
// Fails the cluster, unless all workers have the same failure. No other thread may communicate.
// Returns status.
choir_status chi_strategy_abort(choir_strategy *s, choir_status status);
choir_tensor *chi_strategy_abort_if_null(choir_strategy *s, choir_frame *f, choir_tensor *t);

enum { CHI_SUM_NAME = 64 };
// Workers compare only this name. dtype: before casts; plain numbers count as f64.
void chi_worker_sum_name(const char *call, choir_reduce_op op, choir_dtype dtype,
		const choir_tensor *t, char name[CHI_SUM_NAME]);
// A plain number that differs between workers becomes a per-replica value.
choir_status chi_worker_agree_on_numbers(choir_strategy *s, choir_frame *f, const char *what,
		const chi_named_tensors *names, choir_value *values[]);
// Worker from's t, in f; other t are ignored.
choir_tensor *chi_worker_broadcast(
		choir_strategy *s, choir_frame *f, int from, choir_tensor *t, const char *what);
int chi_worker_of_replica(const choir_strategy *s, int replica);
// Sizes along axis may differ. *first: where this worker's begins.
choir_tensor *chi_worker_concat(
		choir_strategy *s, choir_frame *f, choir_tensor *t, int axis, int64_t *first);
