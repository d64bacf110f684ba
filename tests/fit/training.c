// A small classification problem.
#include "fit/training.h"

#include "test.h"

float training_weights[EXAMPLES];
uint8_t training_labels[EXAMPLES];
static float inputs[EXAMPLES][FEATURES];

static void make_data(void)
{
	for (int i = 0; i < EXAMPLES; i++) {
		training_labels[i] = (uint8_t) (i * 7 % CLASSES);
		training_weights[i] = (float) (i % 4) / 2;
		for (int k = 0; k < FEATURES; k++)
			inputs[i][k] =
					(float) ((i * 31 + k * 17) % 23) / 11 - 1 + (float) (k == training_labels[i]);
	}
}
static choir_dataset *data_of(int64_t examples)
{
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(FEATURES), .data = inputs },
		{ .name = "label", .dtype = CHOIR_U8, .shape = CHOIR_SCALAR, .data = training_labels },
		{ .name = "weight", .dtype = CHOIR_F32, .shape = CHOIR_SCALAR, .data = training_weights }
	};
	return choir_memory_dataset_new(examples, 3, columns, false);
}

training training_open_with(const char *devices, int replicas, const choir_model_options *like)
{
	make_data();
	training t = { .strategy = mirrored(devices, replicas) };
	choir_dataset *d = choir_dataset_batch(choir_dataset_shuffle(data_of(EXAMPLES), 64, 3), BATCH);
	t.train = choir_strategy_distribute_dataset(t.strategy, d, NULL);
	t.test = choir_strategy_distribute_dataset(
			t.strategy, choir_dataset_batch(data_of(TESTED), BATCH), NULL);
	CHOIR_SCOPE (t.strategy) {
		choir_layer *layers[] = { choir_dense_new("hidden", FEATURES, 8, CHOIR_TANH),
			choir_dropout_new("drop", 0.2), choir_dense_new("scores", 8, CLASSES, CHOIR_LINEAR) };
		t.layers = choir_sequential_new(3, layers);
		t.optimizer = choir_optimizer_new(
				CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.02));
		t.accuracy = choir_metric_new("accuracy", CHOIR_METRIC_ACCURACY);
		t.loss = choir_metric_new("by_hand", CHOIR_METRIC_MEAN);
		choir_model_options o = *like;
		o.size = sizeof o;
		o.optimizer = t.optimizer;
		o.metrics = &t.accuracy;
		o.n_metrics = 1;
		if (o.forward == NULL)
			o.layer = t.layers;
		if (o.loss == NULL)
			o.loss = choir_sparse_softmax_cross_entropy;
		t.model = choir_model_new(&o);
	}
	if (t.train == NULL || t.test == NULL || t.model == NULL)
		fail_msg("%s", choir_error());
	return t;
}

training training_open(const char *devices, int replicas)
{
	return training_open_with(devices, replicas, &(choir_model_options){ .size = 0 });
}

void must(choir_status status)
{
	if (status != CHOIR_OK)
		fail_msg("%s", choir_error());
}
