// A program that trains a small net and says what came out. It is built twice, plainly and with
// -ffast-math, which makes the processor take very small numbers for zero from the first line of
// main on. The weights must be the same. The logits go through such numbers on their way, there
// and back, so that flushing them would end the training.
#include <choir/choir.h>
#include <stdio.h>

enum { EXAMPLES = 256, BATCH = 24, PASSES = 8 };

struct net {
	choir_layer *hidden, *digits;
	choir_optimizer *adam;
	choir_metric *loss;
};

static const char *flushes(void)
{
	volatile float small = 1e-30f;
	volatile float smaller = small * 1e-10f;
	return smaller == 0 ? "yes" : "no";
}

// x, by way of numbers around 1e-39. (Gradients go the other way, by way of 1e37.)
static choir_tensor *through_small_numbers(choir_tensor *x)
{
	x = choir_scale(choir_scale(x, 1e-20), 1e-19);
	return choir_scale(choir_scale(x, 1e19), 1e20);
}

static choir_status step(choir_replica *r, void *user)
{
	struct net *net = (struct net *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *h = choir_layer_apply(net->hidden, choir_replica_arg(r, "image"));
	choir_tensor *logits = through_small_numbers(choir_layer_apply(net->digits, h));
	choir_tensor *losses =
			choir_sparse_softmax_cross_entropy(choir_replica_arg(r, "label"), logits);
	CHOIR_TRY(choir_metric_update(net->loss, losses, NULL));
	return choir_optimizer_minimize(net->adam, choir_replica_average_loss(r, losses), tape);
}

static void pass(choir_strategy *s, choir_distributed_dataset *data, struct net *net)
{
	choir_values *batch = NULL;
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK &&
			(status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK)
		status = choir_strategy_run(s, step, net, batch, NULL);
	choir_values_free(batch);
	CHOIR_CHECK(status == CHOIR_END ? choir_distributed_dataset_rewind(data) : status);
	printf("loss %.9g\n", choir_metric_result(net->loss));
	CHOIR_CHECK(choir_metric_reset(net->loss));
}

int main(void)
{
	printf("flushes %s\n", flushes());
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .replicas = 3, .devices = "cpu:0,cpu:1", .seed = 11));
	choir_dataset *d = choir_dataset_to_float(
			choir_synthetic_digits_dataset_new(EXAMPLES, 5), "image", 1 / 255.0);
	d = choir_dataset_batch(
			choir_dataset_shuffle(choir_dataset_flatten(d, "image"), EXAMPLES, 6), BATCH);
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(s, d, NULL);
	struct net net = { NULL, NULL, NULL, NULL };
	CHOIR_SCOPE (s) {
		net.hidden = choir_dense_new("hidden", 784, 16, CHOIR_TANH);
		net.digits = choir_dense_new("digits", 16, 10, CHOIR_LINEAR);
		net.adam = choir_optimizer_new(CHOIR_ADAM, NULL);
		net.loss = choir_metric_new("loss", CHOIR_METRIC_MEAN);
	}
	CHOIR_CHECK_NEW(net.loss);
	for (int i = 0; i < PASSES; i++)
		pass(s, data, &net);
	printf("weights %016llx\n", (unsigned long long) choir_strategy_hash(s));
	choir_strategy_free(s);
	printf("flushes %s\n", flushes()); // as before
	return 0;
}
