// A metric's variables, and how an update counts.
#pragma once

#include "choir/metric.h"
#include "strategy/worker_sync.h"

typedef enum {
	CHI_METRIC_MEAN = CHOIR_METRIC_MEAN,
	CHI_METRIC_ACCURACY = CHOIR_METRIC_ACCURACY,
	CHI_METRIC_MSE = CHOIR_METRIC_MEAN_SQUARED_ERROR,
	CHI_METRIC_RMSE = CHOIR_METRIC_ROOT_MEAN_SQUARED_ERROR,
	CHI_METRIC_MAE = CHOIR_METRIC_MEAN_ABSOLUTE_ERROR,
	CHI_METRIC_R2 = CHOIR_METRIC_R2,
	CHI_METRIC_PERPLEXITY = CHOIR_METRIC_PERPLEXITY,
	CHI_METRIC_PRECISION,
	CHI_METRIC_RECALL,
	CHI_METRIC_CONFUSION,
	CHI_METRIC_F1,
	CHI_METRIC_TRUE_POSITIVES,
	CHI_METRIC_FALSE_POSITIVES,
	CHI_METRIC_TRUE_NEGATIVES,
	CHI_METRIC_FALSE_NEGATIVES,
	CHI_METRIC_TOP_K,
	CHI_METRIC_PER_CLASS,
	CHI_METRIC_AUC
} chi_metric_kind;

// In f64: single ones, then some of k elements each. Kinds without them have a total and a count.
enum { CHI_METRIC_SUMS = 4 };
typedef struct {
	size_t sums, of_k;
	// weights is NULL or broadcasts.
	choir_status (*add)(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
			choir_tensor *weights, choir_tensor *sum[]);
	double (*result)(const choir_metric *m, const double sum[]);
} chi_metric_sums;
const chi_metric_sums *chi_metric_sums_of(chi_metric_kind kind);
int64_t chi_metric_elements(const choir_metric *m, const chi_metric_sums *kind);

struct choir_metric {
	choir_strategy *strategy;
	chi_metric_kind kind;
	char *name;
	// ACCURACY: total counts wrong answers. CONFUSION: total is [classes, classes]; kinds with
	// sums: [sums]; both without count.
	choir_variable *total, *count;
	double threshold;
	int64_t classes, k; // k of top-k; or classes or thresholds
};

// *count is NULL for CONFUSION. Failures are the frame's.
choir_status chi_metric_count(const choir_metric *m, choir_tensor *values, choir_tensor *more,
		choir_tensor *weights, choir_tensor **total, choir_tensor **count);

choir_status chi_metric_check(const choir_metric *m, const char *what);
// Over all replicas or, if group is not NULL, a worker's (choir_strategy_run_workers). count may
// be NULL.
choir_status chi_metric_totals(
		const choir_metric *m, const choir_strategy *group, double total[], double *count);

// In the current strategy; like has the kind and its numbers.
choir_metric *chi_metric_make(const char *name, const choir_metric *like);
void chi_metric_free(void *self);
extern const chi_stateful_table chi_metric_state;
