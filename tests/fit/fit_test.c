// The training loop: the bits of a loop by hand, history, callbacks, early stopping, checkpoints.
#include "fit/training.h"

#include "base/status.h"
#include "choir/trace.h"
#include "test.h"
#include "train/files.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- The loop by hand.

static choir_status train_step(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = choir_layer_apply(t->layers, choir_replica_arg(r, "x"));
	choir_tensor *losses =
			choir_sparse_softmax_cross_entropy(choir_replica_arg(r, "label"), scores);
	CHOIR_TRY(choir_metric_update(t->loss, losses, NULL));
	return choir_optimizer_minimize(t->optimizer, choir_replica_average_loss(r, losses), tape);
}

static double train_by_hand(training *t)
{
	choir_values *batch = NULL;
	choir_status status;
	must(choir_metric_reset(t->loss));
	while ((status = choir_distributed_dataset_next(t->train, &batch)) == CHOIR_OK)
		must(choir_strategy_run(t->strategy, train_step, t, batch, NULL));
	assert_int_equal(status, CHOIR_END);
	must(choir_distributed_dataset_rewind(t->train));
	choir_values_free(batch);
	return choir_metric_result(t->loss);
}

TEST(fit_has_the_bits_of_a_loop_by_hand)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	uint64_t hash[3];
	for (int i = 0; i < 3; i++) {
		training by_hand = training_open("cpu:0", 3), t = training_open(devices[i], 3);
		double losses[4];
		for (int epoch = 0; epoch < 4; epoch++)
			losses[epoch] = train_by_hand(&by_hand);
		must(choir_fit(t.model, t.train, CHOIR_OPTIONS(choir_fit_options, .epochs = 4)));
		hash[i] = choir_strategy_hash(t.strategy);
		assert_true(hash[i] == choir_strategy_hash(by_hand.strategy));
		assert_int_equal(choir_model_epochs(t.model), 4);
		for (int epoch = 1; epoch <= 4; epoch++)
			assert_true(choir_model_history(t.model, "loss", epoch) == losses[epoch - 1]);
		assert_true(losses[3] < losses[0]);
		assert_true(isnan(choir_model_history(t.model, "loss", 5)));
		assert_true(isnan(choir_model_history(t.model, "val_loss", 1)));
		choir_strategy_free(t.strategy);
		choir_strategy_free(by_hand.strategy);
	}
	assert_true(hash[0] == hash[1] && hash[1] == hash[2]);
}

// ---- Evaluation and prediction.

TEST(evaluate_measures_without_training)
{
	training t = training_open("cpu:0,cpu:1", 2);
	const uint64_t before = choir_strategy_hash(t.strategy);
	must(choir_evaluate(t.model, t.test));
	assert_true(choir_strategy_hash(t.strategy) == before);
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *scores = choir_predict(t.model, t.test, f);
	assert_shape(scores, CHOIR_SHAPE(20, CLASSES));
	const float *s = choir_tensor_data(scores);
	double loss = 0, right = 0;
	for (int i = 0; i < 20; i++) {
		double sum = 0;
		int best = 0;
		for (int k = 0; k < CLASSES; k++) {
			sum += exp(s[i * CLASSES + k]);
			best = s[i * CLASSES + k] > s[i * CLASSES + best] ? k : best;
		}
		loss += log(sum) - (double) s[i * CLASSES + training_labels[i]];
		right += best == training_labels[i];
	}
	assert_true(fabs(choir_model_log(t.model, "val_loss") - loss / 20) < 1e-5);
	assert_true(fabs(choir_model_log(t.model, "val_accuracy") - right / 20) < 1e-12);
	assert_true(isnan(choir_model_log(t.model, "loss")));
	assert_true(isnan(choir_model_log(t.model, "nothing")));
	choir_frame_free(f);
	choir_strategy_free(t.strategy);
}

TEST(a_prediction_needs_no_labels)
{
	static const float inputs[3][FEATURES] = { { 1 }, { 0, 1 }, { 0, 0, 1 } };
	training t = training_open("cpu:0,cpu:1", 2);
	const choir_column column = { "x", CHOIR_F32, CHOIR_SHAPE(FEATURES), inputs };
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(t.strategy,
			choir_dataset_batch(choir_memory_dataset_new(3, 1, &column, false), 2), NULL);
	assert_non_null(data);
	assert_failed(choir_evaluate(t.model, data), CHOIR_INVALID, "evaluate*1 columns*labels");
	choir_frame *f = choir_frame_new(NULL);
	assert_shape(choir_predict(t.model, data, f), CHOIR_SHAPE(3, CLASSES));
	choir_frame_free(f);
	choir_strategy_free(t.strategy);
}

typedef struct {
	int64_t next;
	int calls;
} rows;

static choir_status see_rows(choir_tensor *results, int64_t first, void *user)
{
	rows *r = user;
	assert_int_equal(first, r->next);
	r->next += choir_tensor_shape(results)->dim[0];
	return ++r->calls == 3 ? choir_fail(CHOIR_IO, "the disk is full") : CHOIR_OK;
}

TEST(predictions_come_batch_by_batch)
{
	training t = training_open("cpu:0,cpu:1", 3);
	rows r = { 0 };
	assert_failed(choir_predict_batches(t.model, t.test, see_rows, &r), CHOIR_IO,
			"predict*the disk is full");
	assert_int_equal(r.next, 20);
	choir_strategy_free(t.strategy);
}

// ---- Callbacks.

static void note(training *t, const char *what)
{
	const size_t used = strlen(t->seen);
	snprintf(t->seen + used, sizeof t->seen - used, "%s", what);
}

static choir_status train_begins(const choir_fit_event *e, void *user)
{
	note(user, "[");
	assert_int_equal(e->step, 0);
	return CHOIR_OK;
}

static choir_status train_ends(const choir_fit_event *e, void *user)
{
	(void) e;
	note(user, "]");
	return CHOIR_OK;
}

static choir_status epoch_begins(const choir_fit_event *e, void *user)
{
	assert_int_equal(e->batch, 0);
	note(user, e->epoch == 1 ? "(1" : "(2");
	return CHOIR_OK;
}

static choir_status epoch_ends(const choir_fit_event *e, void *user)
{
	assert_true(choir_model_log(e->model, "val_loss") ==
			choir_model_history(e->model, "val_loss", e->epoch));
	note(user, e->epoch == 1 ? "1)" : "2)");
	return CHOIR_OK;
}

static choir_status batch_ends(const choir_fit_event *e, void *user)
{
	training *t = user;
	assert_int_equal(e->batches, BATCHES);
	assert_true(choir_model_log(e->model, "loss") > 0);
	assert_true(choir_model_log(e->model, "learning_rate") == 0.02);
	note(t, ".");
	if (e->step == t->stop_at)
		choir_model_stop(e->model);
	return e->step == t->fail_at ? choir_fail(CHOIR_IO, "no more paper") : CHOIR_OK;
}

static choir_callback callbacks_of(training *t)
{
	return (choir_callback){ .size = sizeof(choir_callback),
		.train_begin = train_begins,
		.train_end = train_ends,
		.epoch_begin = epoch_begins,
		.epoch_end = epoch_ends,
		.batch_end = batch_ends,
		.user = t };
}

TEST(callbacks_see_all_and_may_stop)
{
	static const struct {
		int64_t stop_at, fail_at, epochs;
		const char *seen;
	} cases[] = { { 0, 0, 2, "[(1......1)(2......2)]" }, { 8, 0, 1, "[(1......1)(2..]" },
		{ 0, 7, 1, "[(1......1)(2." }, { 6, 0, 0, "[(1......]" } };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		training t = training_open("cpu:0,cpu:1", 2);
		t.stop_at = cases[i].stop_at;
		t.fail_at = cases[i].fail_at;
		const choir_callback callback = callbacks_of(&t);
		const choir_status status = choir_fit(t.model, t.train,
				CHOIR_OPTIONS(choir_fit_options, .epochs = 2, .validation = t.test,
						.callbacks = &callback, .n_callbacks = 1));
		if (cases[i].fail_at == 0)
			must(status);
		else
			assert_failed(
					status, CHOIR_IO, "fit*epoch 2*batch 1*batch_end*callback 0*no more paper");
		assert_string_equal(t.seen, cases[i].seen);
		assert_int_equal(choir_model_epochs(t.model), cases[i].epochs);
		choir_strategy_free(t.strategy);
	}
}

static choir_status fit_again(const choir_fit_event *e, void *user)
{
	training *t = user;
	assert_int_equal(choir_evaluate(e->model, t->test), CHOIR_STATE);
	return choir_fit(e->model, t->train, NULL);
}

TEST(a_callback_cannot_fit_its_model)
{
	training t = training_open("cpu:0", 1);
	const choir_callback callback = {
		.size = sizeof callback, .batch_end = fit_again, .user = &t
	};
	assert_failed(
			choir_fit(t.model, t.train,
					CHOIR_OPTIONS(choir_fit_options, .callbacks = &callback, .n_callbacks = 1)),
			CHOIR_STATE, "fit*model");
	choir_strategy_free(t.strategy);
}

// ---- Early stopping.

static choir_tensor *growing_loss(choir_tensor *label, choir_tensor *results)
{
	return choir_add(choir_sparse_softmax_cross_entropy(label, results),
			choir_number(choir_tensor_frame(label), 0));
}

TEST(early_stopping_brings_the_best_weights_back)
{
	uint64_t best = 0;
	for (int with = 0; with < 2; with++) {
		training t = training_open_with(
				"cpu:0,cpu:1", 2, &(choir_model_options){ .size = 0, .loss = growing_loss });
		const choir_early_stopping e = { .size = sizeof e,
			.log = "loss",
			.min_delta = 10, // so only the first epoch improves
			.patience = 2,
			.restore_best_weights = with ? CHOIR_ON : CHOIR_OFF };
		if (!with) {
			must(choir_fit(t.model, t.train, NULL));
			best = choir_strategy_hash(t.strategy);
		}
		training other = with ? t : training_open("cpu:0", 2);
		must(choir_fit(other.model, other.train,
				CHOIR_OPTIONS(choir_fit_options, .epochs = 9, .early_stopping = &e)));
		assert_int_equal(choir_model_epochs(other.model), 3);
		assert_int_equal(choir_model_best_epoch(other.model), 1);
		assert_true((choir_strategy_hash(other.strategy) == best) == (with == 1));
		if (!with)
			choir_strategy_free(other.strategy);
		choir_strategy_free(t.strategy);
	}
}

TEST(a_larger_accuracy_is_better)
{
	training t = training_open("cpu:0", 1);
	const choir_early_stopping e = { .size = sizeof e, .log = "accuracy", .patience = 3 };
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = 12, .early_stopping = &e)));
	double best = -1;
	int64_t at = 0;
	for (int64_t i = 1; i <= choir_model_epochs(t.model); i++)
		if (choir_model_history(t.model, "accuracy", i) > best) {
			best = choir_model_history(t.model, "accuracy", i);
			at = i;
		}
	assert_true(at > 1);
	assert_int_equal(choir_model_best_epoch(t.model), at);
	choir_strategy_free(t.strategy);
}

// ---- Checkpoints.

typedef struct {
	uint64_t hash;
	double loss;
	int64_t epochs, best;
} outcome;

// A training that stops after the step stop (0: never).
static outcome train_to(const char *devices, const char *folder, int64_t stop)
{
	training t = training_open(devices, 2);
	t.stop_at = stop;
	const choir_callback callback = {
		.size = sizeof callback, .batch_end = batch_ends, .user = &t
	};
	const choir_early_stopping e = {
		.size = sizeof e, .min_delta = 0.02, .patience = 3, .restore_best_weights = CHOIR_ON
	};
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(t.strategy, folder, NULL);
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = 6, .validation = t.test,
					.callbacks = &callback, .n_callbacks = 1, .early_stopping = &e,
					.checkpoints = m, .checkpoint_every = 4)));
	const outcome o = { choir_strategy_hash(t.strategy),
		choir_model_history(t.model, "loss", choir_model_epochs(t.model)),
		choir_model_epochs(t.model), choir_model_best_epoch(t.model) };
	choir_checkpoint_manager_free(m);
	choir_strategy_free(t.strategy);
	return o;
}

TEST(a_stopped_training_goes_on_with_the_same_bits)
{
	const outcome whole = train_to("cpu:0", files_path("whole"), 0);
	// In an epoch, at its end (where the epoch's save is the newest), and before the first save.
	static const int64_t stops[] = { 9, 6, 17, 2 };
	for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
		char folder[200];
		snprintf(folder, sizeof folder, "%s%zu", files_path("parts"), i);
		train_to("cpu:0,cpu:1", folder, stops[i]);
		const outcome rest = train_to("cpu:0", folder, 0);
		assert_true(rest.hash == whole.hash && rest.loss == whole.loss);
		assert_int_equal(rest.epochs, whole.epochs);
		assert_int_equal(rest.best, whole.best);
	}
	// A training that is over stays as it is.
	const outcome again = train_to("cpu:0", files_path("whole"), 0);
	assert_true(again.hash == whole.hash && again.loss == whole.loss);
}

TEST(metadata_has_the_logs)
{
	training t = training_open("cpu:0", 1);
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(t.strategy, files_path("metadata"),
			CHOIR_OPTIONS(
					choir_checkpoint_options, .best_metric = "val_loss", .best_is_lowest = true));
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = 2, .validation = t.test, .checkpoints = m,
					.checkpoint_every = 4, .metadata = "author=me")));
	choir_checkpoint_list *l = choir_checkpoint_list_new(files_path("metadata"));
	static const int64_t saves[] = { 4, 6, 8, 12 }; // 12 once, though 4 divides it
	const size_t last = sizeof saves / sizeof saves[0] - 1;
	assert_int_equal(choir_checkpoint_list_steps(l), last + 1);
	for (size_t i = 0; i <= last; i++) {
		assert_int_equal(choir_checkpoint_list_step(l, i), saves[i]);
		const double value = strtod(choir_checkpoint_list_metadata(l, i, "val_loss"), NULL);
		assert_int_equal(isnan(value), saves[i] % BATCHES != 0);
	}
	assert_string_equal(choir_checkpoint_list_metadata(l, last, "epoch"), "2");
	assert_string_equal(choir_checkpoint_list_metadata(l, last, "step"), "12");
	assert_string_equal(choir_checkpoint_list_metadata(l, last, "author"), "me");
	assert_true(strtod(choir_checkpoint_list_metadata(l, last, "val_loss"), NULL) ==
			choir_model_history(t.model, "val_loss", 2));
	choir_checkpoint_list_free(l);
	choir_checkpoint_manager_free(m);
	choir_strategy_free(t.strategy);
}

// ---- Event files.

static bool holds(const char *bytes, size_t size, const char *word)
{
	for (size_t i = 0; i + strlen(word) <= size; i++)
		if (memcmp(bytes + i, word, strlen(word)) == 0)
			return true;
	return false;
}

TEST(event_files_have_the_logs)
{
	training t = training_open("cpu:0", 1);
	char path[400];
	must(choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .log = files_path("log"))));
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(choir_fit_options, .validation = t.test, .log_every = 4)));
	must(choir_trace_stop());
	DIR *folder = opendir(files_path("log"));
	const struct dirent *entry = NULL;
	while (folder != NULL && (entry = readdir(folder)) != NULL && entry->d_name[0] == '.')
		;
	assert_non_null(entry);
	snprintf(path, sizeof path, "%s/%.200s", files_path("log"), entry->d_name);
	closedir(folder);
	size_t size;
	char *bytes = files_read(path, &size);
	static const char *const tags[] = { "train/loss", "train/learning_rate", "epoch/loss",
		"epoch/val_loss", "epoch/val_accuracy" };
	for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
		assert_true(holds(bytes, size, tags[i]));
	free(bytes);
	choir_strategy_free(t.strategy);
}

// ---- Weights of examples and classes, batches in an epoch, other kinds of models.

TEST(weights_scale_the_loss)
{
	training plain = training_open("cpu:0,cpu:1", 2);
	training t = training_open_with(
			"cpu:0,cpu:1", 2, &(choir_model_options){ .size = 0, .sample_weights = "weight" });
	choir_frame *f = choir_frame_new(NULL);
	const float *s = choir_tensor_data(choir_predict(plain.model, plain.test, f));
	double loss = 0;
	for (int i = 0; i < 20; i++) {
		double sum = 0;
		for (int k = 0; k < CLASSES; k++)
			sum += exp(s[i * CLASSES + k]);
		loss += (log(sum) - (double) s[i * CLASSES + training_labels[i]]) *
				(double) training_weights[i];
	}
	must(choir_evaluate(t.model, t.test));
	assert_true(fabs(choir_model_log(t.model, "val_loss") - loss / 20) < 1e-5);
	must(choir_fit(t.model, t.train, NULL));
	choir_frame_free(f);
	choir_strategy_free(plain.strategy);
	choir_strategy_free(t.strategy);
}

TEST(an_epoch_may_be_some_batches)
{
	training by_hand = training_open("cpu:0", 2), t = training_open("cpu:0", 2);
	train_by_hand(&by_hand);
	train_by_hand(&by_hand);
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = 3, .steps_per_epoch = 4)));
	assert_int_equal(choir_model_epochs(t.model), 3);
	assert_true(choir_strategy_hash(t.strategy) == choir_strategy_hash(by_hand.strategy));
	choir_strategy_free(t.strategy);
	choir_strategy_free(by_hand.strategy);
}

static choir_tensor *forward(choir_replica *r, void *user)
{
	choir_layer **layers = user;
	return choir_layer_apply(*layers, choir_replica_arg(r, "x"));
}

TEST(a_function_may_be_the_model)
{
	choir_layer *layers = NULL;
	training by_hand = training_open("cpu:0", 2);
	training t = training_open_with(
			"cpu:0", 2, &(choir_model_options){ .size = 0, .forward = forward, .user = &layers });
	layers = t.layers;
	train_by_hand(&by_hand);
	must(choir_fit(t.model, t.train, NULL));
	assert_true(choir_strategy_hash(t.strategy) == choir_strategy_hash(by_hand.strategy));
	choir_strategy_free(t.strategy);
	choir_strategy_free(by_hand.strategy);
}

TEST_GROUP(NULL, files_teardown)
