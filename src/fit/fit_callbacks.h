// Early stopping, and reductions of the learning rate.
#pragma once

#include "fit/model_logs.h"

typedef struct {
	int64_t log;
	bool larger_is_better;
	double min_delta;
} chi_fit_monitor;

typedef struct {
	choir_early_stopping stopping;
	choir_reduce_on_plateau plateau;
	chi_fit_monitor stops, reduces;
	int64_t validation_every;
} chi_fit_monitors;

choir_status chi_fit_monitors_open(
		chi_fit_monitors *w, const choir_model *m, const choir_fit_options *o);
choir_status chi_fit_stopping_see(const chi_fit_monitors *w, choir_model *m);
choir_status chi_fit_plateau_see(const chi_fit_monitors *w, choir_model *m);
bool chi_fit_has_patience(const chi_fit_monitors *w, const choir_model *m);
