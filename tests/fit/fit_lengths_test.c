// Models of sequences of different lengths: losses, metrics and weights as without padding.
#include "fit/fit_model.h"
#include "fit/training.h"
#include "tensor/tensor.h"

#include "base/status.h"
#include "test.h"

#include <math.h>

enum { N = 6, T = 4, WIDE = 7, IN = 2, KINDS = 3 };

static const int32_t lengths[N] = { 4, 1, 3, 0, 2, 4 };

// Examples [t, IN] with labels [t], and numbers as padding that must not count.
static choir_distributed_dataset *examples(choir_strategy *s, int64_t t, float padding)
{
	static float x[N * WIDE * IN], weight[N * WIDE];
	static int32_t label[N * WIDE], last[N];
	for (int64_t i = 0; i < N * t; i++) {
		const int64_t row = i / t, at = i % t, seed = row * WIDE + at;
		const bool real = at < lengths[row];
		for (int64_t k = 0; k < IN; k++)
			x[i * IN + k] = real ? (float) ((seed * 7 + k * 5) % 11) * 0.2f - 1 : padding;
		label[i] = real ? (int32_t) (seed % KINDS) : -1;
		weight[i] = real ? 0.5f + (float) (seed % 3) : 50;
		last[row] = (int32_t) (row % KINDS);
	}
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(t, IN), .data = x },
		{ .name = "steps", .dtype = CHOIR_I32, .shape = CHOIR_SHAPE(t), .data = label },
		{ .name = "class", .dtype = CHOIR_I32, .shape = CHOIR_SCALAR, .data = last },
		{ .name = "w", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(t), .data = weight },
		{ .name = "n", .dtype = CHOIR_I32, .shape = CHOIR_SCALAR, .data = lengths }
	};
	return choir_strategy_distribute_dataset(
			s, choir_dataset_batch(choir_memory_dataset_new(N, 5, columns, true), 4), NULL);
}

typedef struct {
	double before, after, accuracy, predicted; // losses, a result
} outcome;

static outcome train(bool steps, const char *sample_weights, int64_t t, float padding)
{
	static const double class_weights[] = { 1, 2, 0.5 };
	choir_strategy *s = mirrored("cpu:0", 2);
	outcome found = { 0 };
	CHOIR_SCOPE (s) {
		choir_distributed_dataset *data = examples(s, t, padding);
		choir_layer *layers[] = { choir_bidirectional_new(
										  choir_lstm_new("a", IN, 3), choir_gru_new("b", IN, 3)),
			steps ? choir_activation_new(CHOIR_TANH) : choir_last_timestep_new(),
			choir_dense_new("c", 6, KINDS, CHOIR_LINEAR) };
		choir_metric *accuracy = choir_metric_new("accuracy", CHOIR_METRIC_ACCURACY);
		choir_model *m = choir_model_new(
				CHOIR_OPTIONS(choir_model_options, .layer = choir_sequential_new(3, layers),
						.input = "x", .labels = steps ? "steps" : "class", .lengths = "n",
						.sample_weights = sample_weights, .class_weights = class_weights,
						.n_classes = KINDS, .loss = choir_sparse_softmax_cross_entropy,
						.optimizer = choir_optimizer_new(CHOIR_SGD,
								CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5)),
						.metrics = &accuracy, .n_metrics = 1));
		must(choir_evaluate(m, data));
		found.before = choir_model_log(m, "val_loss");
		must(choir_fit(m, data, CHOIR_OPTIONS(choir_fit_options, .epochs = 3)));
		must(choir_evaluate(m, data));
		found.after = choir_model_log(m, "val_loss");
		found.accuracy = choir_model_log(m, "val_accuracy");
		float result[N * WIDE * KINDS];
		choir_frame *f = choir_frame_new(NULL);
		choir_tensor *y = choir_predict(m, data, f);
		must(choir_tensor_to_host(y, result, chi_tensor_bytes(y)));
		found.predicted = (double) result[KINDS];
		choir_frame_free(f);
	}
	choir_strategy_free(s);
	return found;
}

TEST(padding_changes_nothing)
{
	for (int i = 0; i < 3; i++) {
		const char *weights = i == 2 ? "w" : NULL;
		const outcome a = train(i > 0, weights, T, 0), b = train(i > 0, weights, WIDE, 9);
		assert_true(fabs(a.before - b.before) < 1e-6 && fabs(a.after - b.after) < 1e-5);
		assert_true(fabs(a.after - a.before) > 1e-4 && a.accuracy == b.accuracy);
		if (i == 0)
			assert_true(fabs(a.predicted - b.predicted) < 1e-5);
	}
}

// A result that is its input, so that the losses are known.
static choir_tensor *identity(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_arg(r, "x");
}

// A layer that takes the axis of time away leaves [n, 2, 1], whose axis 1 has no time steps.
TEST(last_time_steps_of_matrices_are_no_sequences)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	static float x[2][3][2][1] = { { { { 9 }, { 9 } }, { { 1 }, { 2 } }, { { 9 }, { 9 } } },
		{ { { 3 }, { 4 } }, { { 9 }, { 9 } }, { { 9 }, { 9 } } } };
	static float y[2][2][1] = { { { 0 }, { 0 } }, { { 0 }, { 0 } } };
	static uint8_t n[2] = { 2, 1 };
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(3, 2, 1), .data = x },
		{ .name = "y", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(2, 1), .data = y },
		{ .name = "n", .dtype = CHOIR_U8, .shape = CHOIR_SCALAR, .data = n }
	};
	CHOIR_SCOPE (s) {
		choir_metric *error = choir_metric_new("error", CHOIR_METRIC_MEAN_ABSOLUTE_ERROR);
		choir_model *m = choir_model_new(CHOIR_OPTIONS(choir_model_options, .input = "x",
				.layer = choir_last_timestep_new(), .labels = "y", .lengths = "n",
				.loss = choir_mean_squared_error, .metrics = &error, .n_metrics = 1));
		must(choir_evaluate(m,
				choir_strategy_distribute_dataset(s,
						choir_dataset_batch(choir_memory_dataset_new(2, 3, columns, false), 2),
						NULL)));
		assert_true(fabs(choir_model_log(m, "val_loss") - (1 + 4 + 9 + 16) / 4.0) < 1e-6);
		assert_true(fabs(choir_model_log(m, "val_error") - (1 + 2 + 3 + 4) / 4.0) < 1e-6);
	}
	choir_strategy_free(s);
}

TEST(a_loss_is_the_mean_over_the_time_steps_of_each_sequence)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	static float x[2][3][1] = { { { 1 }, { 2 }, { 9 } }, { { 3 }, { 9 }, { 9 } } };
	static float y[2][3][1] = { { { 0 }, { 0 }, { 0 } }, { { 1 }, { 0 }, { 0 } } };
	static uint8_t n[2] = { 2, 1 };
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(3, 1), .data = x },
		{ .name = "y", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(3, 1), .data = y },
		{ .name = "n", .dtype = CHOIR_U8, .shape = CHOIR_SCALAR, .data = n }
	};
	CHOIR_SCOPE (s) {
		choir_metric *error = choir_metric_new("error", CHOIR_METRIC_MEAN_ABSOLUTE_ERROR);
		choir_model *m = choir_model_new(CHOIR_OPTIONS(choir_model_options, .forward = identity,
				.labels = "y", .lengths = "n", .loss = choir_mean_squared_error, .metrics = &error,
				.n_metrics = 1));
		must(choir_evaluate(m,
				choir_strategy_distribute_dataset(s,
						choir_dataset_batch(choir_memory_dataset_new(2, 3, columns, false), 2),
						NULL)));
		assert_true(fabs(choir_model_log(m, "val_loss") - (2.5 + 4) / 2) < 1e-6);
		assert_true(fabs(choir_model_log(m, "val_error") - (1 + 2 + 2) / 3.0) < 1e-6);
		assert_null(
				choir_model_new(CHOIR_OPTIONS(choir_model_options, .lengths = "n", .name = "other",
						.train_step = chi_model_train_step, .test_step = chi_model_test_step)));
		assert_failed(choir_error_status(), CHOIR_INVALID, "train_step*.lengths");
	}
	choir_strategy_free(s);
}
