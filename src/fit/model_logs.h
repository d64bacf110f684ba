// The logs of a model: the results of its metrics and the learning rate, by epoch.
#pragma once

#include "fit/fit_model.h"

static inline size_t chi_model_rate_log(const choir_model *m)
{
	return m->metrics;
}
// Of a training, or of a validation.
static inline size_t chi_model_metric_log(const choir_model *m, size_t i, bool validation)
{
	return validation ? m->metrics + 1 + i : i;
}
int64_t chi_model_find_log(const choir_model *m, const char *name);
choir_status chi_model_add_history(choir_model *m);
choir_status chi_model_take_metrics(choir_model *m, bool validation);
bool chi_model_name_logs(choir_model *m);
