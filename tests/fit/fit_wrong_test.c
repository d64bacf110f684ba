// What the training loop refuses, and what it does without memory.
#include "fit/training.h"

#include "base/alloc.h"
#include "base/status.h"
#include "test.h"
#include "train/files.h"

#include <stdio.h>

// ---- Little memory.

static choir_status fit_once(training *t, choir_checkpoint_manager *m)
{
	const choir_early_stopping e = {
		.size = sizeof e, .log = "loss", .restore_best_weights = CHOIR_ON
	};
	CHOIR_TRY(choir_fit(t->model, t->train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = 1, .validation = t->test,
					.early_stopping = &e, .checkpoints = m, .resume = CHOIR_OFF)));
	choir_frame *f = choir_frame_new(NULL);
	const choir_status status =
			choir_predict(t->model, t->test, f) == NULL ? choir_error_status() : CHOIR_OK;
	choir_frame_free(f);
	return status;
}

TEST(every_allocation_may_fail)
{
	training t = training_open("cpu:0", 2);
	choir_checkpoint_manager *m =
			choir_checkpoint_manager_new(t.strategy, files_path("memory"), NULL);
	uint64_t n = 1;
	for (bool failed = true; failed; n += 1 + n / 16) {
		chi_alloc_fail(n, false);
		const choir_status status = fit_once(&t, m);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_true(status == CHOIR_OK || status == CHOIR_NO_MEMORY);
		must(choir_distributed_dataset_rewind(t.train));
		must(choir_distributed_dataset_rewind(t.test));
	}
	assert_true(n > 20);
	choir_checkpoint_manager_free(m);
	choir_strategy_free(t.strategy);
}

TEST(a_model_needs_memory)
{
	training t = training_open("cpu:0", 1);
	bool failed = true;
	CHOIR_SCOPE (t.strategy)
		for (uint64_t n = 1; failed; n++) {
			char name[20];
			snprintf(name, sizeof name, "model %d", (int) n);
			chi_alloc_fail(n, false);
			const choir_model *m = choir_model_new(CHOIR_OPTIONS(choir_model_options, .name = name,
					.layer = t.layers, .metrics = &t.accuracy, .n_metrics = 1));
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_true(failed == (m == NULL));
		}
	choir_strategy_free(t.strategy);
}

// ---- What is refused.

static choir_tensor *forward(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_arg(r, "x");
}

static choir_status never(const choir_fit_event *e, void *user)
{
	(void) user;
	fail_msg("epoch %d", (int) e->epoch);
	return CHOIR_OK;
}

TEST(options_out_of_range)
{
	training t = training_open("cpu:0", 1), other = training_open("cpu:0", 1);
	const choir_early_stopping unknown = { .size = sizeof unknown, .log = "lost" },
							   unvalidated = { .size = sizeof unvalidated },
							   negative = {
								   .size = sizeof negative, .log = "loss", .patience = -1
							   };
	const struct {
		choir_fit_options o;
		const char *facts;
	} wrong[] = { { { .size = sizeof(choir_fit_options), .epochs = -1 }, "fit*epochs*-1*0" },
		{ { .size = sizeof(choir_fit_options), .steps_per_epoch = -2 }, "steps_per_epoch*-2" },
		{ { .size = sizeof(choir_fit_options), .early_stopping = &unknown },
				"lost*val_accuracy*learning_rate" },
		{ { .size = sizeof(choir_fit_options), .early_stopping = &unvalidated },
				"val_loss*.validation" },
		{ { .size = sizeof(choir_fit_options), .early_stopping = &negative }, "patience -1" },
		{ { .size = sizeof(choir_fit_options), .n_callbacks = 1 }, "callbacks" },
		{ { .size = sizeof(choir_fit_options), .validation = other.test }, "strategy" },
		{ { .size = 3 }, "options*3" } };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_failed(choir_fit(t.model, t.train, &wrong[i].o), CHOIR_INVALID, wrong[i].facts);
	assert_failed(choir_fit(t.model, other.train, NULL), CHOIR_INVALID, "fit*strategy");
	assert_failed(choir_fit(NULL, t.train, NULL), CHOIR_INVALID, "fit*model*NULL");
	assert_failed(choir_fit(t.model, NULL, NULL), CHOIR_INVALID, "fit*data*NULL");
	assert_failed(
			choir_fit(other.model, NULL, CHOIR_OPTIONS(choir_fit_options, .train_steps = never)),
			CHOIR_INVALID, "model*columns*.input");
	assert_failed(choir_evaluate(t.model, NULL), CHOIR_INVALID, "evaluate*data");
	assert_failed(choir_predict_batches(t.model, t.test, NULL, NULL), CHOIR_INVALID, "predict");
	choir_strategy_free(t.strategy);
	choir_strategy_free(other.strategy);
}

TEST(models_that_cannot_be)
{
	training t = training_open("cpu:0", 1);
	const double negative[] = { 1, -2 };
	choir_metric *mean = NULL;
	CHOIR_SCOPE (t.strategy) {
		mean = choir_metric_new("mean", CHOIR_METRIC_MEAN);
		const struct {
			choir_model_options o;
			const char *facts;
		} wrong[] = { { { .size = sizeof(choir_model_options) }, "model*layer*forward" },
			{ { .size = sizeof(choir_model_options), .layer = t.layers, .forward = forward },
					"layer*forward" },
			{ { .size = sizeof(choir_model_options),
					  .layer = t.layers,
					  .metrics = &mean,
					  .n_metrics = 1 },
					"\"mean\"" },
			{ { .size = sizeof(choir_model_options), .layer = t.layers, .n_metrics = 1 },
					"metrics" },
			{ { .size = sizeof(choir_model_options),
					  .layer = t.layers,
					  .class_weights = negative,
					  .n_classes = 2 },
					"class 1*-2" },
			{ { .size = sizeof(choir_model_options), .layer = t.layers }, "\"model/loss\"" } };
		for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
			assert_null(choir_model_new(&wrong[i].o));
			assert_failed(choir_error_status(), CHOIR_INVALID, wrong[i].facts);
		}
		choir_layer *failed = choir_dense_new("failed", -1, 1, CHOIR_LINEAR);
		assert_null(choir_model_new(CHOIR_OPTIONS(choir_model_options, .layer = failed)));
		assert_failed(choir_error_status(), CHOIR_INVALID, "neither*last failure*\"failed\"");
		choir_model *bare = choir_model_new(
				CHOIR_OPTIONS(choir_model_options, .layer = t.layers, .name = "bare"));
		assert_failed(choir_fit(bare, t.train, NULL), CHOIR_INVALID, "\"bare\"*loss");
		assert_failed(choir_evaluate(bare, t.train), CHOIR_INVALID, "\"bare\"*loss");
	}
	choir_strategy_free(t.strategy);
}

TEST_GROUP(NULL, files_teardown)
