// Trains a classifier of handwritten digits on two replicas by choir_fit, until the validation
// loss stops improving. Run it in the folder examples: make && ./fit
#include <choir/choir.h>

#include <stdio.h>

enum { BATCH = 128, TRAIN = 8000 };

static choir_dataset *digits(void)
{
	choir_dataset *images = choir_idx_dataset_new("data/mnist-10k-images-idx3-ubyte.gz", "image");
	choir_dataset *labels = choir_idx_dataset_new("data/mnist-10k-labels-idx1-ubyte.gz", "label");
	choir_dataset *both = choir_dataset_zip(images, labels);
	return choir_dataset_flatten(choir_dataset_to_float(both, "image", 1 / 255.0), "image");
}

static choir_distributed_dataset *distribute(choir_strategy *s, choir_dataset *d)
{
	return choir_strategy_distribute_dataset(s, choir_dataset_batch(d, BATCH), NULL);
}

static choir_status print_epoch(const choir_fit_event *e, void *user)
{
	(void) user;
	printf("epoch %d of at most %d: loss %.4f, on the test set loss %.4f, %.2f %% right\n",
			(int) e->epoch, (int) e->epochs, choir_model_log(e->model, "loss"),
			choir_model_log(e->model, "val_loss"),
			100 * choir_model_log(e->model, "val_accuracy"));
	return CHOIR_OK;
}

int main(void)
{
	choir_strategy *both = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,cpu:1"));
	choir_distributed_dataset *train = distribute(
			both, choir_dataset_shuffle(choir_dataset_take(digits(), TRAIN), TRAIN, 42));
	choir_distributed_dataset *test = distribute(both, choir_dataset_skip(digits(), TRAIN));
	choir_model *model = NULL;
	CHOIR_SCOPE (both) {
		choir_layer *layers[] = { choir_dense_new("hidden", 784, 128, CHOIR_RELU),
			choir_dense_new("digits", 128, 10, CHOIR_LINEAR) };
		choir_metric *accuracy = choir_metric_new("accuracy", CHOIR_METRIC_ACCURACY);
		model = choir_model_new(
				CHOIR_OPTIONS(choir_model_options, .layer = choir_sequential_new(2, layers),
						.loss = choir_sparse_softmax_cross_entropy,
						.optimizer = choir_optimizer_new(CHOIR_ADAM, NULL), .metrics = &accuracy,
						.n_metrics = 1));
	}
	const choir_callback printer = *CHOIR_OPTIONS(choir_callback, .epoch_end = print_epoch);
	const choir_early_stopping patient =
			*CHOIR_OPTIONS(choir_early_stopping, .patience = 2, .restore_best_weights = CHOIR_ON);
	CHOIR_CHECK(choir_fit(model, train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = 5, .validation = test,
					.callbacks = &printer, .n_callbacks = 1, .early_stopping = &patient)));
	CHOIR_CHECK(choir_evaluate(model, test));
	printf("the weights of epoch %d: %.2f %% right\n", (int) choir_model_best_epoch(model),
			100 * choir_model_log(model, "val_accuracy"));
	CHOIR_CHECK(choir_strategy_save(both, "fit.safetensors", NULL));
	choir_strategy_free(both);
	return 0;
}
