// What choir_fit does with callbacks, with the logs of an epoch and with the parts of a model: a
// learning rate that is reduced on a plateau, averages of weights, and regularizers.
#include "fit/training.h"

#include "base/status.h"
#include "choir/op.h"
#include "choir/scope.h"
#include "test.h"
#include "train/files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- Each moment.

typedef struct {
	bool fails;
	int calls;
} actor;

static choir_status act(const choir_fit_event *e, void *user)
{
	actor *a = user;
	a->calls++;
	if (a->fails)
		return choir_fail(CHOIR_IO, "no more paper");
	choir_model_stop(e->model);
	return CHOIR_OK;
}

static choir_status act_once(const char *when, choir_callback c, training *t, actor *a)
{
	c.size = sizeof c;
	c.user = a;
	const choir_status status = choir_fit(t->model, t->train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = 3, .callbacks = &c, .n_callbacks = 1));
	if (a->calls != 1)
		fail_msg("%s: %d calls", when, a->calls);
	return status;
}

// The strategy and the model stay usable.
TEST(any_callback_may_stop_or_fail)
{
	static const struct {
		const char *when;
		choir_callback callback;
		int64_t epochs; // complete when it has stopped
	} cases[] = { { "train_begin", { .train_begin = act }, 0 },
		{ "epoch_begin", { .epoch_begin = act }, 0 }, { "batch_begin", { .batch_begin = act }, 0 },
		{ "batch_end", { .batch_end = act }, 0 }, { "epoch_end", { .epoch_end = act }, 1 },
		{ "train_end", { .train_end = act }, 3 } };
	training t = training_open("cpu:0,cpu:1", 2);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char facts[60];
		actor stops = { 0 }, fails = { .fails = true };
		must(act_once(cases[i].when, cases[i].callback, &t, &stops));
		assert_int_equal(choir_model_epochs(t.model), cases[i].epochs);
		snprintf(facts, sizeof facts, "fit:*%s%s of callback 0*no more paper",
				strncmp(cases[i].when, "train", 5) == 0 ? "" : "epoch 1*", cases[i].when);
		assert_failed(act_once(cases[i].when, cases[i].callback, &t, &fails), CHOIR_IO, facts);
		must(choir_distributed_dataset_rewind(t.train));
		must(choir_evaluate(t.model, t.test));
	}
	choir_strategy_free(t.strategy);
}

// ---- The plateau.

// Keras' rule, on the history of a training.
static void follow_plateau(choir_model *m, const choir_reduce_on_plateau *p, double rate)
{
	double best = (double) INFINITY;
	int64_t waited = 0, cooldown = 0, reductions = 0;
	for (int64_t epoch = 1; epoch <= choir_model_epochs(m); epoch++) {
		assert_true(choir_model_history(m, "learning_rate", epoch) == rate);
		const double value = choir_model_history(m, "val_loss", epoch);
		if (cooldown > 0) {
			cooldown--;
			waited = 0;
		}
		if (value < best - p->min_delta) {
			best = value;
			waited = 0;
		} else if (cooldown == 0 && ++waited >= p->patience) {
			reductions += rate > p->min_learning_rate;
			rate = fmax(rate * p->factor, p->min_learning_rate);
			cooldown = p->cooldown;
			waited = 0;
		}
	}
	assert_true(reductions >= 2);
}

static uint64_t fit_on_plateau(
		const choir_reduce_on_plateau *p, const char *folder, int64_t epochs)
{
	training t = training_open("cpu:0,cpu:1", 2);
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(t.strategy, folder, NULL);
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = epochs, .validation = t.test,
					.reduce_on_plateau = p, .checkpoints = m)));
	follow_plateau(t.model, p, 0.02);
	const uint64_t hash = choir_strategy_hash(t.strategy);
	choir_checkpoint_manager_free(m);
	choir_strategy_free(t.strategy);
	return hash;
}

TEST(the_rate_falls_on_a_plateau)
{
	const choir_reduce_on_plateau p = { .size = sizeof p,
		.factor = 0.5,
		.patience = 2,
		.min_delta = 0.3,
		.cooldown = 2,
		.min_learning_rate = 0.004 };
	const uint64_t whole = fit_on_plateau(&p, files_path("plateau"), 14);
	fit_on_plateau(&p, files_path("part"), 11);
	assert_true(fit_on_plateau(&p, files_path("part"), 14) == whole);
}

TEST(a_wrong_plateau)
{
	static const struct {
		choir_reduce_on_plateau options;
		const char *text;
	} wrong[] = {
		{ { .log = "nothing" }, "reduce_on_plateau*\"nothing\"*loss, accuracy" },
		{ { .factor = 1 }, "reduce_on_plateau*factor 1," },
		{ { .patience = -1 }, "patience -1" },
		{ { .cooldown = -1 }, "cooldown -1" },
		{ { .min_delta = -0.5 }, "min_delta -0.5" },
		{ { .min_learning_rate = -1 }, "min_learning_rate -1" },
		{ { .monitor = (choir_monitor) 5 }, "monitor 5" },
		{ { .log = "val_loss" }, ".validation is needed" },
	};
	training t = training_open("cpu:0", 1);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		choir_reduce_on_plateau p = wrong[i].options;
		p.size = sizeof p;
		if (p.log == NULL)
			p.log = "loss";
		assert_failed(choir_fit(t.model, t.train,
							  CHOIR_OPTIONS(choir_fit_options, .reduce_on_plateau = &p)),
				CHOIR_INVALID, wrong[i].text);
	}
	choir_strategy_free(t.strategy);
}

// ---- Averages.

static choir_model *averaging_model(const training *t, const char *name)
{
	choir_model *m = NULL;
	CHOIR_SCOPE (t->strategy) {
		char metric[40];
		snprintf(metric, sizeof metric, "%s/accuracy", name);
		choir_optimizer *o = choir_optimizer_new(CHOIR_ADAM,
				CHOIR_OPTIONS(
						choir_optimizer_options, .learning_rate = 0.02, .ema_momentum = 0.9));
		m = choir_model_new(CHOIR_OPTIONS(choir_model_options, .name = name, .layer = t->layers,
				.loss = choir_sparse_softmax_cross_entropy, .optimizer = o));
	}
	assert_non_null(m);
	return m;
}

TEST(validations_use_averages)
{
	training t = training_open("cpu:0,cpu:1", 2), plain = training_open("cpu:0", 2);
	choir_model *m = averaging_model(&t, "averaging");
	const choir_fit_options o = {
		.size = sizeof o, .epochs = 3, .validation = t.test, .use_averages = CHOIR_ON
	};
	assert_failed(choir_fit(t.model, t.train, &o), CHOIR_INVALID, "use_averages*ema_momentum");
	must(choir_fit(m, t.train, &o));
	// The training is that of the weights; the end has the averages, which the validation saw.
	must(choir_fit(plain.model, plain.train, CHOIR_OPTIONS(choir_fit_options, .epochs = 3)));
	for (int64_t epoch = 1; epoch <= 3; epoch++)
		assert_true(choir_model_history(m, "loss", epoch) ==
				choir_model_history(plain.model, "loss", epoch));
	const uint64_t weights = choir_strategy_hash(plain.strategy);
	assert_true(choir_strategy_hash(t.strategy) != weights);
	const double seen = choir_model_log(m, "val_loss");
	must(choir_evaluate(m, t.test));
	assert_true(choir_model_log(m, "val_loss") == seen);
	// The next training swaps back.
	must(choir_fit(m, t.train, CHOIR_OPTIONS(choir_fit_options, .epochs = 1)));
	must(choir_fit(plain.model, plain.train, CHOIR_OPTIONS(choir_fit_options, .epochs = 1)));
	assert_true(choir_strategy_hash(t.strategy) == choir_strategy_hash(plain.strategy));
	choir_strategy_free(t.strategy);
	choir_strategy_free(plain.strategy);
}

// ---- Regularizers.

static choir_status step_by_hand(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = choir_layer_apply(t->layers, choir_replica_arg(r, "x"));
	choir_tensor *losses =
			choir_sparse_softmax_cross_entropy(choir_replica_arg(r, "label"), scores);
	choir_tensor *loss = choir_add(
			choir_replica_average_loss(r, losses), choir_layer_regularization_loss(t->layers, r));
	return choir_optimizer_minimize(t->optimizer, loss, tape);
}

static training open_regularized(void)
{
	training t = training_open("cpu:0", 2);
	CHOIR_SCOPE (t.strategy) {
		choir_scope scope;
		must(choir_scope_regularizer(&scope, 0.01, 0.1));
		t.layers = choir_dense_new("regular", FEATURES, CLASSES, CHOIR_LINEAR);
		must(choir_scope_exit(&scope));
		t.model = choir_model_new(
				CHOIR_OPTIONS(choir_model_options, .name = "regular", .layer = t.layers,
						.loss = choir_sparse_softmax_cross_entropy, .optimizer = t.optimizer));
	}
	assert_non_null(t.model);
	return t;
}

TEST(fit_adds_the_regularization_loss)
{
	training by_hand = open_regularized(), t = open_regularized();
	choir_values *batch = NULL;
	while (choir_distributed_dataset_next(by_hand.train, &batch) == CHOIR_OK)
		must(choir_strategy_run(by_hand.strategy, step_by_hand, &by_hand, batch, NULL));
	choir_values_free(batch);
	must(choir_fit(t.model, t.train, CHOIR_OPTIONS(choir_fit_options, .validation = t.test)));
	assert_true(choir_strategy_hash(t.strategy) == choir_strategy_hash(by_hand.strategy));
	// An evaluation adds the whole penalty to the mean loss.
	float w[FEATURES * CLASSES];
	fetch_variable(choir_layer_variable(t.layers, 0), w, sizeof w);
	double penalty = 0, loss = 0;
	for (int i = 0; i < FEATURES * CLASSES; i++)
		penalty += 0.01 * fabs((double) w[i]) + 0.1 * (double) w[i] * (double) w[i];
	choir_frame *f = choir_frame_new(NULL);
	const float *s = choir_tensor_data(choir_predict(t.model, t.test, f));
	for (int i = 0; i < TESTED; i++) {
		double sum = 0;
		for (int k = 0; k < CLASSES; k++)
			sum += exp((double) s[i * CLASSES + k]);
		loss += log(sum) - (double) s[i * CLASSES + training_labels[i]];
	}
	assert_true(penalty > 0.01);
	assert_true(fabs(choir_model_log(t.model, "val_loss") - (loss / TESTED + penalty)) < 1e-5);
	choir_frame_free(f);
	choir_strategy_free(t.strategy);
	choir_strategy_free(by_hand.strategy);
}

// ---- Best weights after a resume.

// Gives the hash of the weights, and the best epoch. folder NULL: without checkpoints.
static uint64_t train_with(
		int64_t epochs, const choir_early_stopping *e, const char *folder, int64_t *best)
{
	training t = training_open("cpu:0", 2);
	choir_checkpoint_manager *m =
			folder == NULL ? NULL : choir_checkpoint_manager_new(t.strategy, folder, NULL);
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(
					choir_fit_options, .epochs = epochs, .early_stopping = e, .checkpoints = m)));
	assert_true(
			choir_model_history(t.model, "loss", 4) < choir_model_history(t.model, "loss", 1) ||
			epochs < 4);
	*best = choir_model_best_epoch(t.model);
	const uint64_t hash = choir_strategy_hash(t.strategy);
	choir_checkpoint_manager_free(m);
	choir_strategy_free(t.strategy);
	return hash;
}

// A checkpoint has the best weights only if they were to be restored.
TEST(best_weights_that_no_checkpoint_has_are_not_restored)
{
	choir_early_stopping e = {
		.size = sizeof e, .log = "loss", .monitor = CHOIR_MONITOR_MAX, .patience = 50
	};
	int64_t best;
	const uint64_t last = train_with(4, NULL, NULL, &best);
	train_with(3, &e, files_path("best"), &best);
	assert_int_equal(best, 1);
	e.restore_best_weights = CHOIR_ON;
	for (int i = 0; i < 2; i++) { // the second has no epoch left
		assert_true(train_with(4, &e, files_path("best"), &best) == last);
		assert_int_equal(best, 4);
	}
}

TEST(best_weights_of_an_earlier_training_are_not_saved)
{
	choir_early_stopping e = { .size = sizeof e,
		.log = "loss",
		.monitor = CHOIR_MONITOR_MAX,
		.patience = 50,
		.restore_best_weights = CHOIR_ON };
	training t = training_open("cpu:0", 2);
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = 1, .early_stopping = &e)));
	choir_checkpoint_manager *m =
			choir_checkpoint_manager_new(t.strategy, files_path("earlier"), NULL);
	e.restore_best_weights = CHOIR_OFF;
	must(choir_fit(t.model, t.train,
			CHOIR_OPTIONS(
					choir_fit_options, .epochs = 3, .early_stopping = &e, .checkpoints = m)));
	assert_int_equal(choir_model_best_epoch(t.model), 1);
	choir_checkpoint_manager_free(m);
	choir_strategy_free(t.strategy);
	int64_t best;
	e.restore_best_weights = CHOIR_ON;
	train_with(4, &e, files_path("earlier"), &best);
	assert_int_equal(best, 4);
}

TEST_GROUP(NULL, files_teardown)
