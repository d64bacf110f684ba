// Trainings through public headers on 1, 2 and 4 GPUs of the stand-in: the same bits, whatever the
// number of GPUs and the way of summing, and a loss close to the CPU's. The convolutional net has
// operations that run on the host.
#include <choir/choir.h>

#include "short.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

enum { REPLICAS = 5, BATCH = 3, SIDE = 6, CLASSES = 4, STEPS = 3 };

typedef struct {
	bool convolutional;
	choir_layer *layers;
	choir_optimizer *optimizer;
	choir_metric *loss;
} net;

typedef struct {
	uint64_t hash;
	double loss;
} result;

static choir_status train_step(choir_replica *r, void *user)
{
	net *n = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	const choir_shape images = CHOIR_SHAPE(BATCH, SIDE, SIDE, 1);
	const choir_shape rows = CHOIR_SHAPE(BATCH, SIDE * SIDE);
	const double numbers[] = { 1, 0, 3 };
	choir_tensor *x =
			choir_random_normal(r->frame, CHOIR_F64, n->convolutional ? images : rows, 3);
	choir_tensor *labels = choir_cast(
			choir_constant(r->frame, CHOIR_F64, CHOIR_SHAPE(BATCH), numbers), CHOIR_I32);
	choir_tensor *scores = choir_layer_apply(n->layers, choir_cast(x, CHOIR_F32));
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(labels, scores);
	CHOIR_TRY(choir_metric_update(n->loss, losses, NULL));
	return choir_optimizer_minimize(n->optimizer, choir_replica_average_loss(r, losses), tape);
}

static choir_layer *make_layers(bool convolutional)
{
	if (convolutional) {
		choir_layer *layers[] = { choir_conv2d_new("conv", 1, 3, 3, NULL),
			choir_batch_normalization_new("norm", 3, NULL), choir_activation_new(CHOIR_RELU),
			choir_flatten_new(), choir_dense_new("out", 4 * 4 * 3, CLASSES, CHOIR_LINEAR) };
		return choir_sequential_new(5, layers);
	}
	choir_layer *layers[] = { choir_dense_new("hidden", SIDE * SIDE, 9, CHOIR_TANH),
		choir_dropout_new("dropout", 0.25), choir_dense_new("out", 9, CLASSES, CHOIR_LINEAR) };
	return choir_sequential_new(3, layers);
}

static result train(bool convolutional, const char *devices, const char *ops)
{
	net n = { .convolutional = convolutional };
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .devices = devices,
					.replicas = REPLICAS, .seed = 7, .timeout = 20, .cross_device_ops = ops));
	if (s == NULL)
		fail_msg("%s", choir_error());
	CHOIR_SCOPE (s) {
		n.layers = make_layers(convolutional);
		n.optimizer = choir_optimizer_new(CHOIR_ADAM, NULL);
		n.loss = choir_metric_new("loss", CHOIR_METRIC_MEAN);
	}
	assert_non_null(n.layers);
	for (int step = 0; step < STEPS; step++)
		if (choir_strategy_run(s, train_step, &n, NULL, NULL) != CHOIR_OK)
			fail_msg("%s with %s: %s", devices, ops == NULL ? "any" : ops, choir_error());
	const result r = { choir_strategy_hash(s), choir_metric_result(n.loss) };
	choir_strategy_free(s);
	return r;
}

static void compare(bool convolutional)
{
	static const char *const devices[] = { "gpu:0,gpu:1", "gpu:0,gpu:1,gpu:2,gpu:3" };
	static const char *const ways[] = { "peer", "nccl", "ring", "hierarchical_copy",
		"reduce_to_one_device" };
	const result cpu = train(convolutional, "cpu:0", NULL);
	const result one = train(convolutional, "gpu:0", NULL);
	assert_true(one.hash != 0 && isfinite(one.loss));
	if (!(fabs(one.loss - cpu.loss) < 1e-5 * cpu.loss))
		fail_msg("the loss is %.9g on a GPU, and %.9g on a CPU", one.loss, cpu.loss);
	for (int d = 0; d < 2; d++)
		for (int w = 0; w < (SHORT ? 2 : 5); w++) {
			const result r = train(convolutional, devices[d], ways[w]);
			if (r.hash != one.hash)
				fail_msg("%s with %s: the hash is %016llx; one GPU's is %016llx", devices[d],
						ways[w], (unsigned long long) r.hash, (unsigned long long) one.hash);
		}
}

TEST(a_dense_net)
{
	compare(false);
}

TEST(a_convolutional_net)
{
	compare(true);
}

// A program that names no devices uses all GPUs.
TEST(default_devices)
{
	choir_strategy *s = choir_mirrored_strategy_new(NULL);
	assert_non_null(s);
	assert_int_equal(choir_strategy_replicas(s), choir_device_count("gpu"));
	choir_strategy_free(s);
}
