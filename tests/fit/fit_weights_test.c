// Weights of samples and of classes in the loss: their shapes, and where they count.
#include "fit/training.h"

#include "base/status.h"
#include "test.h"

#include <math.h>

enum { ROWS = 6, STEPS = 3 }; // batches of 3: as many rows as steps

static float inputs[ROWS * STEPS], targets[ROWS * STEPS], weights[ROWS * STEPS];

static choir_tensor *identity(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_arg(r, "x");
}

static choir_tensor *loss_of_steps(choir_tensor *labels, choir_tensor *results)
{
	return choir_square(choir_subtract(results, labels));
}

// The loss of an evaluation; the first ROWS weights are those of the rows. NAN: it failed.
static double evaluate(choir_shape weights_of_a_row, choir_loss_fn *loss, int replicas)
{
	choir_strategy *s = mirrored("cpu:0", replicas);
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(STEPS), .data = inputs },
		{ .name = "y", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(STEPS), .data = targets },
		{ .name = "w", .dtype = CHOIR_F32, .shape = weights_of_a_row, .data = weights }
	};
	choir_distributed_dataset *d = choir_strategy_distribute_dataset(s,
			choir_dataset_batch(choir_memory_dataset_new(ROWS, 3, columns, false), 3 * replicas),
			NULL);
	double result = (double) NAN;
	CHOIR_SCOPE (s) {
		choir_model *m = choir_model_new(CHOIR_OPTIONS(choir_model_options, .name = "weighed",
				.forward = identity, .labels = "y", .sample_weights = "w", .loss = loss));
		if (choir_evaluate(m, d) == CHOIR_OK)
			result = choir_model_log(m, "val_loss");
	}
	choir_strategy_free(s);
	return result;
}

static double expected(bool by_step)
{
	double sum = 0;
	for (int i = 0; i < ROWS * STEPS; i++) {
		const double error = (double) inputs[i] - (double) targets[i];
		sum += error * error * (double) weights[by_step ? i : i / STEPS];
	}
	return sum / (ROWS * STEPS); // not divided by the weights
}

TEST(sample_weights_are_of_examples_or_of_losses)
{
	for (int i = 0; i < ROWS * STEPS; i++) {
		inputs[i] = (float) (i % 5);
		targets[i] = (float) (i % 3);
		weights[i] = (float) (i % 4) * 0.5f;
	}
	for (int replicas = 1; replicas <= 2; replicas++) {
		const choir_shape row[] = { CHOIR_SCALAR, CHOIR_SHAPE(1) };
		for (int i = 0; i < 2; i++) {
			assert_true(fabs(evaluate(row[i], loss_of_steps, replicas) - expected(false)) < 1e-6);
			assert_true(fabs(evaluate(row[i], choir_mean_squared_error, replicas) -
								expected(false)) < 1e-6);
		}
		const choir_shape each[] = { CHOIR_SHAPE(STEPS), CHOIR_SHAPE(STEPS, 1) };
		for (int i = 0; i < 2; i++)
			assert_true(fabs(evaluate(each[i], loss_of_steps, replicas) - expected(true)) < 1e-6);
		assert_true(isnan(evaluate(CHOIR_SHAPE(STEPS), choir_mean_squared_error, replicas)));
		assert_failed(choir_error_status(), CHOIR_INVALID,
				"\"weighed\": the sample weights \"w\" are [3, 3] and the losses [3];");
		assert_true(isnan(evaluate(CHOIR_SHAPE(1, 3), loss_of_steps, replicas)));
		assert_failed(choir_error_status(), CHOIR_INVALID, "\"w\" are [3, 1, 3]*[3, 3]");
	}
}

TEST(class_weights_count_only_in_training)
{
	static const double twice[] = { 2, 2, 2 };
	double loss[2], validation[2];
	for (int i = 0; i < 2; i++) {
		training t = training_open_with("cpu:0,cpu:1", 2,
				&(choir_model_options){
						.size = 0, .class_weights = twice, .n_classes = i == 0 ? 0 : 3 });
		must(choir_evaluate(t.model, t.test));
		validation[i] = choir_model_log(t.model, "val_loss");
		must(choir_fit(t.model, t.train, CHOIR_OPTIONS(choir_fit_options, .steps_per_epoch = 1)));
		loss[i] = choir_model_log(t.model, "loss");
		choir_strategy_free(t.strategy);
	}
	assert_true(validation[0] == validation[1]);
	assert_true(loss[1] == 2 * loss[0]);
}

TEST(labels_without_a_class_weight)
{
	static const double one[] = { 2 };
	training t = training_open_with(
			"cpu:0", 1, &(choir_model_options){ .size = 0, .class_weights = one, .n_classes = 1 });
	assert_failed(choir_fit(t.model, t.train, NULL), CHOIR_INVALID,
			"fit*class weights of the labels: index *rows are 0 to 0");
	must(choir_evaluate(t.model, t.test));
	choir_strategy_free(t.strategy);
}
