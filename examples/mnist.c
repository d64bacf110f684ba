// Trains a classifier of handwritten digits with two replicas, tests it and saves its weights.
// Run it in the folder examples: make && ./mnist
#include <choir/choir.h>

#include <stdio.h>

enum { BATCH = 128, EPOCHS = 3, TRAIN = 8000 };

struct net {
	choir_layer *layers;
	choir_optimizer *adam;
	choir_metric *loss, *accuracy;
};

// Runs once for each replica, with that replica's part of the batch.
static choir_status train_step(choir_replica *r, void *user)
{
	struct net *net = (struct net *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = choir_layer_apply(net->layers, choir_replica_arg(r, "image"));
	choir_tensor *losses =
			choir_sparse_softmax_cross_entropy(choir_replica_arg(r, "label"), scores);
	CHOIR_TRY(choir_metric_update(net->loss, losses, NULL));
	return choir_optimizer_minimize(net->adam, choir_replica_average_loss(r, losses), tape);
}

static choir_status test_step(choir_replica *r, void *user) // no tape: evaluation
{
	struct net *net = (struct net *) user;
	choir_tensor *scores = choir_layer_apply(net->layers, choir_replica_arg(r, "image"));
	return choir_metric_update(net->accuracy, choir_replica_arg(r, "label"), scores);
}

static choir_dataset *digits(void)
{
	choir_dataset *images = choir_idx_dataset_new("data/mnist-10k-images-idx3-ubyte.gz", "image");
	choir_dataset *labels = choir_idx_dataset_new("data/mnist-10k-labels-idx1-ubyte.gz", "label");
	choir_dataset *both = choir_dataset_zip(images, labels);
	return choir_dataset_flatten(choir_dataset_to_float(both, "image", 1 / 255.0), "image");
}

// Runs step once on every batch of data.
static choir_status each_batch(choir_strategy *s, choir_distributed_dataset *data,
		choir_replica_fn *step, struct net *net)
{
	choir_values *batch = NULL;
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK &&
			(status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK)
		status = choir_strategy_run(s, step, net, batch, NULL);
	choir_values_free(batch);
	return status == CHOIR_END ? choir_distributed_dataset_rewind(data) : status;
}

int main(void)
{
	choir_strategy *both = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,cpu:1"));
	choir_dataset *first = choir_dataset_shuffle(choir_dataset_take(digits(), TRAIN), TRAIN, 42);
	choir_distributed_dataset *train =
			choir_strategy_distribute_dataset(both, choir_dataset_batch(first, BATCH), NULL);
	choir_distributed_dataset *test = choir_strategy_distribute_dataset(
			both, choir_dataset_batch(choir_dataset_skip(digits(), TRAIN), BATCH), NULL);
	struct net net = { NULL, NULL, NULL, NULL };
	CHOIR_SCOPE (both) { // variables made here are mirrored on both devices
		choir_layer *layers[] = { choir_dense_new("hidden", 784, 128, CHOIR_RELU),
			choir_dense_new("digits", 128, 10, CHOIR_LINEAR) };
		net.layers = choir_sequential_new(2, layers);
		net.adam = choir_optimizer_new(CHOIR_ADAM, NULL);
		net.loss = choir_metric_new("loss", CHOIR_METRIC_MEAN);
		net.accuracy = choir_metric_new("accuracy", CHOIR_METRIC_ACCURACY);
	}
	for (int epoch = 1; epoch <= EPOCHS; epoch++) {
		CHOIR_CHECK(each_batch(both, train, train_step, &net));
		CHOIR_CHECK(each_batch(both, test, test_step, &net));
		printf("epoch %d: loss %.4f, %.2f %% of the test set right\n", epoch,
				choir_metric_result(net.loss), 100 * choir_metric_result(net.accuracy));
		CHOIR_CHECK(choir_metric_reset(net.loss));
		CHOIR_CHECK(choir_metric_reset(net.accuracy));
	}
	CHOIR_CHECK(choir_strategy_save(both, "mnist.safetensors", NULL));
	choir_strategy_free(both); // also frees its variables, layers and metrics
	return 0;
}
