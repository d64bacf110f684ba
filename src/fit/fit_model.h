// Steps, and the progress of a training.
#pragma once

#include "base/atomic.h"
#include "choir/fit.h"
#include "fit/best_weights.h"

struct choir_model {
	choir_strategy *strategy;
	choir_model_options o;
	choir_metric *loss;
	choir_metric **metric; // the loss, then those of the options
	size_t metrics;
	// The metrics, the learning rate, a validation's metrics.
	size_t logs;
	char **log_name;
	double *log;
	double *history; // [epochs][logs]
	size_t capacity;
	bool fitting, counting; // the metrics count the running epoch
	bool stopped;
	chi_atomic32 stop;

	// Saved in checkpoints.
	int64_t epochs;
	int64_t batch; // of the epoch that runs
	int64_t step;
	int64_t best_epoch, waited;
	double best;
	chi_best_weights best_weights;
	int64_t plateau_waited, plateau_cooldown;
	double plateau_best;
	bool restored;

	float *class_weights;
	choir_layer *regularized;
};

void chi_model_forget(choir_model *m);

// user is the model.
choir_status chi_model_train_step(choir_replica *r, void *user);
choir_status chi_model_test_step(choir_replica *r, void *user);
choir_status chi_model_predict_step(choir_replica *r, void *user); // returns "results"

// Sets the columns that the options left open.
choir_status chi_model_check(
		choir_model *m, choir_distributed_dataset *data, const char *call, bool labels);

extern const chi_stateful_table chi_model_state;
void chi_model_free(void *self);
