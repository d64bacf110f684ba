// A metric's variables, and how an update counts.
#pragma once

#include "choir/metric.h"
#include "strategy/worker_sync.h"

typedef enum {
	CHI_METRIC_MEAN = CHOIR_METRIC_MEAN,
	CHI_METRIC_ACCURACY = CHOIR_METRIC_ACCURACY,
	CHI_METRIC_PRECISION,
	CHI_METRIC_RECALL,
	CHI_METRIC_CONFUSION
} chi_metric_kind;

struct choir_metric {
	choir_strategy *strategy;
	chi_metric_kind kind;
	char *name;
	// ACCURACY: total counts wrong answers. CONFUSION: total is [classes, classes], count NULL.
	choir_variable *total, *count;
	double threshold;
	int64_t classes;
};

// Computes what a batch adds to a metric; *count is NULL for CONFUSION. Failures are the frame's.
choir_status chi_metric_count(const choir_metric *m, choir_tensor *values, choir_tensor *more,
		choir_tensor *weights, choir_tensor **total, choir_tensor **count);

// Frees a metric, and keeps it in checkpoints (metric_state.c).
void chi_metric_free(void *self);
extern const chi_stateful_table chi_metric_state;
