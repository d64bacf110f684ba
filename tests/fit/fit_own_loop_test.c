// What a program with steps, checkpoints or workers of its own needs of choir_fit: the bits of the
// model's own steps, saves that may fail, progress that the program keeps, and data of workers.
#include "fit/training.h"

#include "base/atomic.h"
#include "base/status.h"
#include "choir/scope.h"
#include "choir/trace.h"
#include "test.h"
#include "train/files.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>

enum { EPOCHS = 4 };

typedef struct {
	training t;
	choir_metric *own, *accuracy; // own: the loss, whose log is "own"
	choir_model *model;
	choir_checkpoint_manager *checkpoints;
	// What the functions saw, and when they do something.
	int64_t stop_at, unsaved_at, saves[20], n_saves, lost, validations, steps;
	double loss_of_step;
	choir_distributed_dataset *data[2];
} program;

static choir_tensor *scores_of(const program *p, choir_replica *r)
{
	return choir_layer_apply(p->t.layers, choir_replica_arg(r, "x"));
}

static choir_status train_step(choir_replica *r, void *user)
{
	const program *p = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = scores_of(p, r), *labels = choir_replica_arg(r, "label");
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(labels, scores);
	CHOIR_TRY(choir_metric_update(p->own, losses, NULL));
	choir_tensor *loss = choir_replica_average_loss(r, losses);
	CHOIR_TRY(choir_replica_return(r, "loss", loss));
	return choir_optimizer_minimize(p->t.optimizer, loss, tape);
}

static choir_status test_step(choir_replica *r, void *user)
{
	const program *p = user;
	choir_tensor *scores = scores_of(p, r), *labels = choir_replica_arg(r, "label");
	CHOIR_TRY(
			choir_metric_update(p->own, choir_sparse_softmax_cross_entropy(labels, scores), NULL));
	return choir_metric_update(p->accuracy, labels, scores);
}

static choir_status step_ends(const choir_fit_event *e, void *user)
{
	program *p = user;
	const choir_tensor *loss = choir_strategy_reduce(
			p->t.strategy, CHOIR_SUM, choir_values_find(e->results, "loss"), CHOIR_NO_AXIS);
	assert_non_null(loss);
	p->loss_of_step = choir_tensor_number(loss);
	p->steps++;
	if (e->step == p->stop_at)
		choir_model_stop(e->model);
	return CHOIR_OK;
}

static choir_status validation_begins(const choir_fit_event *e, void *user)
{
	program *p = user;
	assert_int_equal(e->epoch, ++p->validations);
	return CHOIR_OK;
}

static choir_status save(const choir_fit_event *e, void *user)
{
	program *p = user;
	p->saves[p->n_saves++] = e->step;
	return e->step == p->unsaved_at ? choir_fail(CHOIR_IO, "no more paper")
									: choir_checkpoint_manager_save(p->checkpoints, NULL);
}

static choir_status unsaved(const choir_fit_event *e, void *user)
{
	program *p = user;
	assert_string_equal(choir_error(), "no more paper");
	p->lost = e->step;
	return CHOIR_OK;
}

// folder NULL: without checkpoints.
static program open_program(const char *devices, int replicas, const char *folder)
{
	program p = { .t = training_open(devices, replicas) };
	CHOIR_SCOPE (p.t.strategy) {
		p.own = choir_metric_new("own", CHOIR_METRIC_MEAN);
		p.accuracy = choir_metric_new("own_accuracy", CHOIR_METRIC_ACCURACY);
	}
	if (folder != NULL)
		p.checkpoints = choir_checkpoint_manager_new(p.t.strategy, folder, NULL);
	return p;
}

static choir_status fit(program *p, const choir_fit_options *like)
{
	if (p->model == NULL)
		CHOIR_SCOPE (p->t.strategy)
			p->model = choir_model_new(
					CHOIR_OPTIONS(choir_model_options, .name = "own", .optimizer = p->t.optimizer,
							.metrics = (choir_metric *[]){ p->own, p->accuracy }, .n_metrics = 2,
							.train_step = train_step, .test_step = test_step, .user = p,
							.saved = CHOIR_OFF));
	assert_non_null(p->model);
	const choir_callback c = {
		.size = sizeof c, .batch_end = step_ends, .validation_begin = validation_begins, .user = p
	};
	choir_fit_options o = *like;
	o.size = sizeof o;
	o.epochs = EPOCHS;
	o.validation = p->t.test;
	o.callbacks = &c;
	o.n_callbacks = o.train_steps == NULL;
	o.user = p;
	return choir_fit(p->model, o.worker_data || o.train_steps ? NULL : p->t.train, &o);
}

static void close_program(program *p)
{
	choir_checkpoint_manager_free(p->checkpoints);
	choir_strategy_free(p->t.strategy);
}

static uint64_t whole(void)
{
	training t = training_open("cpu:0", 2);
	must(choir_fit(t.model, t.train, CHOIR_OPTIONS(choir_fit_options, .epochs = EPOCHS)));
	const uint64_t hash = choir_strategy_hash(t.strategy);
	choir_strategy_free(t.strategy);
	return hash;
}

// ---- Steps.

TEST(own_steps_have_the_bits_of_the_model_s)
{
	training t = training_open("cpu:0", 2);
	program p = open_program("cpu:0,cpu:1", 2, NULL);
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = EPOCHS, .validation = t.test)));
	must(fit(&p, &(choir_fit_options){ .size = 0 }));
	assert_true(choir_strategy_hash(t.strategy) == choir_strategy_hash(p.t.strategy));
	static const char *const logs[][2] = { { "loss", "own" }, { "val_loss", "val_own" },
		{ "val_accuracy", "val_own_accuracy" }, { "learning_rate", "learning_rate" } };
	for (int i = 0; i < 4; i++)
		for (int64_t epoch = 1; epoch <= EPOCHS; epoch++)
			assert_true(choir_model_history(t.model, logs[i][0], epoch) ==
					choir_model_history(p.model, logs[i][1], epoch));
	assert_true(isnan(choir_model_log(p.model, "loss")));
	assert_int_equal(p.validations, EPOCHS);
	assert_false(choir_model_stopped(p.model));
	assert_int_equal(p.steps, EPOCHS * BATCHES);
	assert_true(p.loss_of_step > 0);
	choir_frame *f = choir_frame_new(NULL);
	assert_null(choir_predict(p.model, p.t.test, f));
	assert_failed(choir_error_status(), CHOIR_INVALID, "\"own\"*layer");
	choir_frame_free(f);
	choir_strategy_free(t.strategy);
	close_program(&p);
}

TEST(own_steps_have_no_loss_beside_them)
{
	program p = open_program("cpu:0", 1, NULL);
	CHOIR_SCOPE (p.t.strategy) {
		assert_null(choir_model_new(CHOIR_OPTIONS(choir_model_options, .name = "both",
				.train_step = train_step, .loss = choir_sparse_softmax_cross_entropy)));
		assert_failed(choir_error_status(), CHOIR_INVALID, "a loss and a train_step");
		assert_null(choir_model_new(CHOIR_OPTIONS(choir_model_options, .name = "weighed",
				.train_step = train_step, .sample_weights = "weight")));
		assert_failed(choir_error_status(), CHOIR_INVALID, "train_step and .sample_weights");
		assert_null(choir_model_new(CHOIR_OPTIONS(choir_model_options, .name = "half",
				.layer = p.t.layers, .test_step = test_step)));
		assert_failed(choir_error_status(), CHOIR_INVALID, "test_step");
	}
	close_program(&p);
}

// ---- Saves.

TEST(saves_may_be_lost_but_not_that_of_a_stop)
{
	program p = open_program("cpu:0", 2, files_path("lost"));
	p.unsaved_at = 6;
	p.stop_at = 9;
	choir_fit_options o = { .checkpoints = p.checkpoints,
		.checkpoint_every = 4,
		.save = save,
		.unsaved = unsaved,
		.save_at_stop = CHOIR_ON };
	must(fit(&p, &o));
	assert_true(choir_model_stopped(p.model));
	static const int64_t saves[] = { 4, 6, 8, 9 };
	assert_int_equal(p.n_saves, 4);
	assert_memory_equal(p.saves, saves, sizeof saves);
	assert_int_equal(p.lost, 6);
	assert_int_equal(choir_model_progress(p.model).batch, 9 - BATCHES);
	close_program(&p);
	for (int i = 0; i < 3; i++) { // of a stop; without .unsaved; without .save_at_stop
		p = open_program("cpu:0", 2, files_path(i == 2 ? "none" : i == 1 ? "error" : "stop"));
		p.unsaved_at = i == 1 ? 4 : 5;
		p.stop_at = 5;
		o.checkpoints = p.checkpoints;
		o.unsaved = i == 1 ? NULL : unsaved;
		o.save_at_stop = i == 2 ? CHOIR_OFF : CHOIR_ON;
		const choir_status status = fit(&p, &o);
		if (i == 2)
			must(status);
		else
			assert_failed(status, CHOIR_IO,
					i == 0 ? "fit*epoch 1, batch 5, step 5*no more paper" : "step 4*paper");
		assert_int_equal(p.n_saves, i == 0 ? 2 : 1);
		close_program(&p);
	}
}

TEST(a_program_may_keep_the_progress)
{
	const uint64_t hash = whole();
	program p = open_program("cpu:0", 2, files_path("kept"));
	const choir_early_stopping early = {
		.size = sizeof early, .log = "val_own", .patience = 50, .restore_best_weights = CHOIR_ON
	};
	p.stop_at = 2 * BATCHES + 3;
	must(fit(&p, &(choir_fit_options){ .early_stopping = &early }));
	// The best epoch's weights are in place, so those of the stop are not.
	choir_fit_progress at = choir_model_progress(p.model);
	assert_true(at.epochs == 2 && at.batch == 3 && at.step == p.stop_at && at.best_epoch > 0);
	close_program(&p);
	p = open_program("cpu:0", 2, files_path("kept"));
	p.stop_at = at.step;
	must(fit(&p,
			&(choir_fit_options){
					.checkpoints = p.checkpoints, .save = save, .save_at_stop = CHOIR_ON }));
	close_program(&p);

	p = open_program("cpu:0,cpu:1", 2, files_path("kept"));
	must(choir_checkpoint_manager_restore_latest(p.checkpoints));
	CHOIR_SCOPE (p.t.strategy)
		p.model = choir_model_new(CHOIR_OPTIONS(choir_model_options, .name = "own",
				.optimizer = p.t.optimizer, .metrics = &p.own, .n_metrics = 1,
				.train_step = train_step, .test_step = test_step, .user = &p, .saved = CHOIR_OFF));
	at.best_epoch = 0;
	must(choir_model_set_progress(p.model, &at));
	p.validations = at.epochs;
	must(fit(&p, &(choir_fit_options){ .size = 0 }));
	assert_true(choir_strategy_hash(p.t.strategy) == hash);
	assert_int_equal(choir_model_epochs(p.model), EPOCHS);
	assert_true(isnan(choir_model_history(p.model, "own", 2)));
	assert_true(choir_model_history(p.model, "own", 3) > 0);
	close_program(&p);
}

// The weights at the call are the best, unless an epoch is better.
TEST(progress_has_the_best_weights)
{
	program p = open_program("cpu:0", 2, NULL);
	const choir_early_stopping early = {
		.size = sizeof early, .log = "own", .patience = 2, .restore_best_weights = CHOIR_ON
	};
	must(fit(&p, &(choir_fit_options){ .size = 0 }));
	const uint64_t best = choir_strategy_hash(p.t.strategy);
	must(choir_model_set_progress(
			p.model, CHOIR_OPTIONS(choir_fit_progress, .epochs = 1, .best_epoch = 1, .best = -1)));
	p.validations = 1;
	must(fit(&p, &(choir_fit_options){ .early_stopping = &early }));
	assert_int_equal(choir_model_epochs(p.model), 3);
	assert_int_equal(choir_model_best_epoch(p.model), 1);
	assert_true(choir_strategy_hash(p.t.strategy) == best);
	assert_failed(choir_model_set_progress(p.model,
						  CHOIR_OPTIONS(choir_fit_progress, .epochs = 2, .best_epoch = 3)),
			CHOIR_INVALID, "epochs 2*best epoch 3");
	assert_failed(choir_model_set_progress(
						  p.model, CHOIR_OPTIONS(choir_fit_progress, .epochs = 1, .step = -1)),
			CHOIR_INVALID, "step -1");
	assert_failed(choir_model_set_progress(
						  p.model, CHOIR_OPTIONS(choir_fit_progress, .epochs = 10000001)),
			CHOIR_INVALID, "epochs 10000001*at most 10000000");
	assert_failed(choir_model_set_progress(NULL, NULL), CHOIR_INVALID, "set_progress*model");
	close_program(&p);
}

// ---- Other loops over batches.

static choir_distributed_dataset *open_data(choir_strategy *group, int worker, void *user)
{
	program *p = user;
	(void) group;
	return p->data[worker] = p->t.train;
}

TEST(data_of_one_worker_have_the_bits_of_data)
{
	program p = open_program("cpu:0", 2, NULL);
	must(fit(&p, &(choir_fit_options){ .worker_data = open_data }));
	assert_true(choir_strategy_hash(p.t.strategy) == whole());
	assert_true(p.data[0] == p.t.train && p.data[1] == NULL);
	close_program(&p);
}

static choir_distributed_dataset *no_data(choir_strategy *group, int worker, void *user)
{
	(void) group, (void) worker, (void) user;
	return NULL;
}

static choir_status stop_at_the_end(const choir_fit_event *e, void *user)
{
	(void) user;
	choir_model_stop(e->model);
	return CHOIR_END;
}

TEST(data_that_cannot_be)
{
	program p = open_program("cpu:0", 1, NULL);
	chi_error_clear();
	assert_failed(fit(&p, &(choir_fit_options){ .worker_data = no_data }), CHOIR_INVALID,
			"fit*worker_data*no reason");
	assert_failed(choir_fit(p.model, p.t.train,
						  CHOIR_OPTIONS(choir_fit_options, .worker_data = open_data, .user = &p)),
			CHOIR_INVALID, "fit*.worker_data and data");
	assert_failed(fit(&p,
						  &(choir_fit_options){
								  .worker_data = open_data, .train_steps = stop_at_the_end }),
			CHOIR_INVALID, "fit*.worker_data and .train_steps");
	CHOIR_SCOPE (p.t.strategy)
		p.model = choir_model_new(CHOIR_OPTIONS(choir_model_options, .name = "half",
				.optimizer = p.t.optimizer, .train_step = train_step, .user = &p));
	assert_failed(fit(&p, &(choir_fit_options){ .size = 0 }), CHOIR_INVALID,
			"fit*.validation*\"half\"*.test_step");
	close_program(&p);
}

TEST(a_stop_at_an_epoch_s_end_counts_the_epoch)
{
	program p = open_program("cpu:0", 1, NULL);
	must(fit(&p, &(choir_fit_options){ .train_steps = stop_at_the_end }));
	assert_int_equal(choir_model_epochs(p.model), 1);
	assert_true(choir_model_stopped(p.model));
	must(fit(&p, &(choir_fit_options){ .worker_data = open_data }));
	choir_model_stop(p.model); // no fit runs
	assert_false(choir_model_stopped(p.model));
	close_program(&p);
	p = open_program("cpu:0", 1, files_path("end")); // save fails in step 0
	assert_failed(fit(&p,
						  &(choir_fit_options){ .train_steps = stop_at_the_end,
								  .checkpoints = p.checkpoints,
								  .save = save,
								  .unsaved = unsaved }),
			CHOIR_IO, "fit*epoch 1*no more paper");
	close_program(&p);
}

// Three of the batches in each call.
static choir_status train_some(const choir_fit_event *e, void *user)
{
	program *p = user;
	choir_values *batch = NULL;
	choir_status status = CHOIR_OK;
	for (int i = 0; i < 3 && status == CHOIR_OK; i++) {
		status = choir_distributed_dataset_next(p->t.train, &batch);
		if (status == CHOIR_OK)
			status = choir_strategy_run(p->t.strategy, train_step, p, batch, NULL);
		p->steps += status == CHOIR_OK;
	}
	choir_values_free(batch);
	if (p->steps == p->stop_at)
		choir_model_stop(e->model);
	if (status == CHOIR_END)
		CHOIR_TRY(choir_distributed_dataset_rewind(p->t.train));
	return p->steps == p->lost ? choir_fail(CHOIR_IO, "no more ink") : status;
}

TEST(a_function_may_train_the_steps)
{
	program p = open_program("cpu:0", 2, NULL);
	must(fit(&p, &(choir_fit_options){ .train_steps = train_some }));
	assert_true(choir_strategy_hash(p.t.strategy) == whole());
	assert_int_equal(choir_model_epochs(p.model), EPOCHS);
	assert_true(choir_model_log(p.model, "own") > 0);
	p.steps = 0;
	p.stop_at = BATCHES + 3;
	must(fit(&p, &(choir_fit_options){ .train_steps = train_some }));
	assert_int_equal(choir_model_epochs(p.model), 1);
	assert_int_equal(p.steps, p.stop_at);
	must(choir_distributed_dataset_rewind(p.t.train));
	p.lost = p.steps + 3;
	assert_failed(fit(&p, &(choir_fit_options){ .train_steps = train_some }), CHOIR_IO,
			"fit*no more ink");
	close_program(&p);
}

// ---- Workers of a parameter server.

typedef struct {
	int64_t rows[2], fails; // fails: this worker's data
	int64_t stop_at, steps; // of worker 0
	uint64_t stop_of_all;
	int64_t epochs;
	chi_atomic64 all;
	choir_model *model;
} crew;
static crew *counted;

static choir_distributed_dataset *rows_of(choir_strategy *group, int worker, void *user)
{
	const crew *c = user;
	static const float ones[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(1), .data = ones },
		{ .name = "y", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(1), .data = ones }
	};
	if (c->fails == worker) {
		choir_fail(CHOIR_IO, "no more paper");
		return NULL;
	}
	return choir_strategy_distribute_dataset(group,
			choir_dataset_batch(choir_memory_dataset_new(c->rows[worker], 2, columns, false), 1),
			NULL);
}

static choir_status count(const choir_fit_event *e, void *user)
{
	crew *c = user;
	c->steps++;
	if (e->step == c->stop_at)
		choir_model_stop(e->model);
	return CHOIR_OK;
}

static choir_tensor *sum_of(choir_tensor *labels, choir_tensor *results)
{
	if (chi_atomic64_add(&counted->all, 1) + 1 == counted->stop_of_all)
		choir_model_stop(counted->model);
	(void) labels; // each example adds -1 to the gradient of the bias
	return choir_reshape(
			choir_scale(results, -1), CHOIR_SHAPE(choir_tensor_shape(results)->dim[0]));
}

// Gives the bias, which is the number of steps of all workers.
static double train_crew(crew *c, int64_t epochs, const char *folder, choir_status *status)
{
	choir_strategy *s = choir_parameter_server_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .workers = 2, .devices = "cpu:0,cpu:1"));
	choir_model *m = NULL;
	choir_layer *layer = NULL;
	CHOIR_SCOPE (s) {
		layer = choir_dense_new("y", 1, 1, CHOIR_LINEAR);
		m = choir_model_new(CHOIR_OPTIONS(choir_model_options, .layer = layer, .loss = sum_of,
				.input = "x", .labels = "y",
				.optimizer = choir_optimizer_new(
						CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1))));
	}
	counted = c;
	c->model = m;
	chi_atomic64_store(&c->all, 0);
	const choir_callback callback = { .size = sizeof callback, .batch_end = count, .user = c };
	choir_checkpoint_manager *checkpoints =
			folder == NULL ? NULL : choir_checkpoint_manager_new(s, folder, NULL);
	*status = choir_fit(m, NULL,
			CHOIR_OPTIONS(choir_fit_options, .epochs = epochs, .callbacks = &callback,
					.n_callbacks = 1, .worker_data = rows_of, .user = c,
					.checkpoints = checkpoints));
	choir_frame *f = choir_frame_new(NULL);
	const double bias = choir_tensor_number(
			choir_reshape(choir_variable_read(choir_layer_variable(layer, 1), f), CHOIR_SCALAR));
	choir_frame_free(f);
	c->epochs = choir_model_epochs(m);
	choir_checkpoint_manager_free(checkpoints);
	choir_strategy_free(s);
	return bias;
}

TEST(each_worker_trains_its_own_data)
{
	choir_status status;
	crew c = { .rows = { 3, 16 }, .fails = -1 };
	const double bias = train_crew(&c, 2, NULL, &status);
	must(status);
	if (bias != 2 * (3 + 16))
		fail_msg("%g steps", bias);
	assert_int_equal(c.steps, 2 * 3);
	c.steps = 0;
	c.stop_at = 5;
	assert_true(train_crew(&c, 4, NULL, &status) < 4 * (3 + 16));
	must(status);
	assert_int_equal(c.steps, 5);
	c.stop_at = 0;
	c.stop_of_all = 12; // worker 0 has ended
	train_crew(&c, 4, NULL, &status);
	must(status);
	assert_int_equal(c.epochs, 0);
	c.stop_of_all = 0;
	c.fails = 1;
	train_crew(&c, 1, NULL, &status);
	assert_failed(status, CHOIR_IO, "fit*worker 1*no more paper");
	c.fails = -1;
	train_crew(&c, 1, files_path("crew"), &status);
	assert_failed(status, CHOIR_UNSUPPORTED, "checkpoints*2 workers");
}

// ---- Without records.

static int64_t bytes_of_events(const char *folder, int64_t log_every)
{
	training t = training_open("cpu:0", 1);
	char path[800];
	must(choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .log = folder)));
	must(choir_fit(t.model, t.train, CHOIR_OPTIONS(choir_fit_options, .log_every = log_every)));
	must(choir_trace_stop());
	choir_strategy_free(t.strategy);
	int64_t bytes = 0;
	DIR *d = opendir(folder);
	const struct dirent *entry;
	while (d != NULL && (entry = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "%s/%.200s", folder, entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
		if (file == NULL)
			continue;
		fseek(file, 0, SEEK_END);
		bytes += ftell(file);
		fclose(file);
	}
	closedir(d);
	return bytes;
}

TEST(records_may_be_left_to_the_program)
{
	assert_true(bytes_of_events(files_path("none"), CHOIR_NONE) <
			bytes_of_events(files_path("some"), 1) / 2);
}

TEST_GROUP(NULL, files_teardown)
