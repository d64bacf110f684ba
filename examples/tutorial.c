// The program of docs/tutorial.md. A network learns to predict an instrument's yield from three
// sensors, with any number of devices and processes. After an interruption, the training continues
// from its last checkpoint. With three numbers as arguments, the program predicts the yield.
// Run it in this folder: make && ./tutorial, then ./tutorial 0.1 0.2 0.3
#include <choir/choir.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXAMPLES = 1000, TRAIN = 800, SENSORS = 3, EPOCHS = 60, BATCH = 64 };

static float readings[EXAMPLES][SENSORS], yields[EXAMPLES][1];

struct model {
	choir_layer *net;
	choir_optimizer *adam;
	choir_metric *train_loss, *test_loss;
};

static void measure(void) // a real program reads an instrument
{
	for (int i = 0; i < EXAMPLES; i++) {
		float *x = readings[i];
		for (int k = 0; k < SENSORS; k++)
			x[k] = sinf((float) i * sqrtf((float) (k + 2)));
		yields[i][0] = x[0] * x[1] - 0.5f * x[2] + 0.25f * x[1];
	}
}

static choir_dataset *measurements(void)
{
	const choir_column columns[] = {
		{ "x", CHOIR_F32, CHOIR_SHAPE(SENSORS), readings },
		{ "y", CHOIR_F32, CHOIR_SHAPE(1), yields },
	};
	return choir_memory_dataset_new(EXAMPLES, 2, columns, false);
}

static choir_status train_step(choir_replica *r, void *user)
{
	struct model *m = (struct model *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *y = choir_layer_apply(m->net, choir_replica_arg(r, "x"));
	choir_tensor *errors = choir_mean_squared_error(choir_replica_arg(r, "y"), y);
	CHOIR_TRY(choir_metric_update(m->train_loss, errors, NULL));
	return choir_optimizer_minimize(m->adam, choir_replica_average_loss(r, errors), tape);
}

static choir_status test_step(choir_replica *r, void *user) // no tape: evaluation
{
	struct model *m = (struct model *) user;
	choir_tensor *y = choir_layer_apply(m->net, choir_replica_arg(r, "x"));
	choir_tensor *errors = choir_mean_squared_error(choir_replica_arg(r, "y"), y);
	return choir_metric_update(m->test_loss, errors, NULL);
}

static void make(struct model *m, choir_strategy *s)
{
	CHOIR_SCOPE (s) {
		choir_layer *layers[] = { choir_dense_new("hidden", SENSORS, 32, CHOIR_TANH),
			choir_dense_new("yield", 32, 1, CHOIR_LINEAR) };
		m->net = choir_sequential_new(2, layers);
		m->adam = choir_optimizer_new(
				CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1e-2));
		m->train_loss = choir_metric_new("train_loss", CHOIR_METRIC_MEAN);
		m->test_loss = choir_metric_new("test_loss", CHOIR_METRIC_MEAN);
	}
}

// Runs step on every batch of one pass.
static choir_status each_batch(choir_strategy *s, choir_distributed_dataset *data,
		choir_replica_fn *step, struct model *m)
{
	choir_values *batch = NULL;
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK &&
			(status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK)
		status = choir_strategy_run(s, step, m, batch, NULL);
	choir_values_free(batch);
	return status == CHOIR_END ? choir_distributed_dataset_rewind(data) : status;
}

static void train(choir_strategy *s, struct model *m)
{
	choir_dataset *first = choir_dataset_take(measurements(), TRAIN);
	choir_dataset *last = choir_dataset_skip(measurements(), TRAIN);
	first = choir_dataset_batch(choir_dataset_shuffle(first, TRAIN, 7), BATCH);
	choir_distributed_dataset *training = choir_strategy_distribute_dataset(s, first, NULL);
	choir_distributed_dataset *test =
			choir_strategy_distribute_dataset(s, choir_dataset_batch(last, BATCH), NULL);
	choir_checkpoint_manager *checkpoints = choir_checkpoint_manager_new(s, "run", NULL);
	CHOIR_CHECK_NEW(checkpoints);
	choir_status status = choir_checkpoint_manager_restore_latest(checkpoints);
	CHOIR_CHECK(status == CHOIR_NOT_FOUND ? CHOIR_OK : status); // the first start
	choir_input_position position;
	position.size = sizeof position;
	CHOIR_CHECK(choir_distributed_dataset_save(training, &position));
	for (int64_t epoch = position.pass + 1; epoch <= EPOCHS; epoch++) {
		CHOIR_CHECK(each_batch(s, training, train_step, m));
		CHOIR_CHECK(each_batch(s, test, test_step, m));
		const double train_loss = choir_metric_result(m->train_loss);
		const double test_loss = choir_metric_result(m->test_loss);
		if (choir_strategy_is_chief(s) && epoch % 20 == 0)
			printf("epoch %d: loss %.5f, test %.5f\n", (int) epoch, train_loss, test_loss);
		CHOIR_CHECK(choir_metric_reset(m->train_loss));
		CHOIR_CHECK(choir_metric_reset(m->test_loss));
		CHOIR_CHECK(choir_checkpoint_manager_save(checkpoints, NULL));
	}
	choir_checkpoint_manager_free(checkpoints);
	CHOIR_CHECK(choir_strategy_save(s, "yield.safetensors", NULL));
	const uint64_t hash = choir_strategy_hash(s);
	if (choir_strategy_is_chief(s))
		printf("weights %016llx\n", (unsigned long long) hash);
}

static void predict(choir_strategy *s, struct model *m, char **sensors)
{
	float x[SENSORS];
	for (int k = 0; k < SENSORS; k++)
		x[k] = strtof(sensors[k], NULL);
	CHOIR_CHECK(choir_strategy_restore(s, "yield.safetensors"));
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *y =
			choir_layer_apply(m->net, choir_constant(f, CHOIR_F32, CHOIR_SHAPE(1, SENSORS), x));
	CHOIR_CHECK(choir_frame_status(f));
	printf("yield %.3f\n", choir_tensor_number(y));
	choir_frame_free(f);
}

int main(int argc, char **argv)
{
	measure();
	choir_cluster *cluster = choir_cluster_new(NULL);
	CHOIR_CHECK_NEW(cluster);
	choir_strategy *s = choir_multi_worker_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .cluster = cluster, .replicas = 2));
	CHOIR_CHECK_NEW(s);
	struct model m = { NULL, NULL, NULL, NULL };
	make(&m, s);
	if (argc == 1 + SENSORS)
		predict(s, &m, argv + 1);
	else
		train(s, &m);
	choir_strategy_free(s);
	choir_cluster_free(cluster);
	return 0;
}
