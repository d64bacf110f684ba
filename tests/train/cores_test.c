// How many threads share the work of a device does not change a bit of the weights, with any
// number of devices: of dense layers, of a block of a transformer with a bounded norm of its
// gradients, and of a convolution net.
#include "short.h"
#include "train/problem.h"

#include "choir/nn.h"
#include "choir/op.h"
#include "test.h"

enum {
	BATCH = SERIAL_STRIDE > 1 ? 600 : 1200, // enough rows and elements for several threads
	IN = 96,
	WIDE = 320,
	CONTEXT = 64,
	IMAGES = 20,
	SIZE = 16,
	STEPS = SHORT ? 1 : 2,
	REPLICAS = SHORT ? 2 : 4
};
typedef enum { DENSE, TEXT, CONVOLUTIONS, MODELS } net;

typedef struct {
	choir_layer *first, *second, *qkv, *norm, *last; // TEXT: attention over CONTEXT examples
	choir_layer *convolutions;
	choir_optimizer *optimizer;
	net net;
} job;

static choir_tensor *apply(const job *j, choir_tensor *x)
{
	choir_tensor *h = choir_layer_apply(j->second, choir_layer_apply(j->first, x));
	if (j->net == TEXT) {
		choir_tensor *qkv = choir_layer_apply(j->qkv, choir_layer_apply(j->norm, h));
		const int64_t rows = choir_tensor_shape(h)->dim[0] / CONTEXT;
		qkv = choir_reshape(qkv, CHOIR_SHAPE(rows, CONTEXT, 3 * WIDE));
		choir_tensor *y = choir_self_attention(
				qkv, CHOIR_OPTIONS(choir_attention_options, .heads = 4, .causal = CHOIR_ON));
		h = choir_add(h, choir_reshape(y, CHOIR_SHAPE(rows * CONTEXT, WIDE)));
	}
	return choir_layer_apply(j->last, choir_gelu(h));
}

static choir_status step(choir_replica *r, void *user)
{
	const job *j = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	const choir_shape shape = j->net == CONVOLUTIONS ? CHOIR_SHAPE(IMAGES, SIZE, SIZE, 3)
													 : CHOIR_SHAPE(BATCH / CONTEXT * CONTEXT, IN);
	choir_tensor *x = choir_random_normal(r->frame, CHOIR_F32, shape, 3);
	choir_tensor *y = j->net == CONVOLUTIONS ? choir_layer_apply(j->convolutions, x) : apply(j, x);
	return choir_optimizer_minimize(
			j->optimizer, choir_mean(choir_square(y), CHOIR_ALL_AXES), tape);
}

static choir_layer *make_net(void)
{
	const choir_conv_options *relu =
			CHOIR_OPTIONS(choir_conv_options, .padding = 1, .activation = CHOIR_RELU);
	choir_layer *layers[] = {
		choir_conv2d_new("conv1", 3, 32, 3, relu),
		choir_max_pool2d_new(2, 2, 0),
		choir_conv2d_new("conv2", 32, 32, 3, relu),
		choir_batch_normalization_new("norm", 32, NULL),
		choir_average_pool2d_new(2, 1, 0),
		choir_flatten_new(),
		choir_dense_new("classes", 7 * 7 * 32, 10, CHOIR_LINEAR),
	};
	return choir_sequential_new(sizeof layers / sizeof layers[0], layers);
}

static uint64_t train(const char *devices, int cores, net which)
{
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .devices = devices,
					.replicas = REPLICAS, .cores_per_device = cores, .seed = 5, .timeout = 60));
	assert_non_null(s);
	const choir_optimizer_options clip = { .size = sizeof clip, .global_clip_norm = 0.05 };
	job j = { .net = which };
	CHOIR_SCOPE (s) {
		j.convolutions = which == CONVOLUTIONS ? make_net() : NULL;
		j.first = choir_dense_new("first", IN, WIDE, CHOIR_RELU);
		j.second = choir_dense_new("second", WIDE, WIDE, CHOIR_TANH);
		j.norm = choir_layer_normalization_new("norm", WIDE, 1e-5);
		j.qkv = choir_dense_new("qkv", WIDE, 3 * WIDE, CHOIR_LINEAR);
		j.last = choir_dense_new("last", WIDE, 70, CHOIR_LINEAR);
		j.optimizer = choir_optimizer_new(CHOIR_ADAM, which == TEXT ? &clip : NULL);
	}
	for (int i = 0; i < STEPS; i++)
		if (choir_strategy_run(s, step, &j, NULL, NULL) != CHOIR_OK)
			fail_msg("%s, %d cores: %s", devices, cores, choir_error());
	const uint64_t hash = choir_strategy_hash(s);
	choir_strategy_free(s);
	return hash;
}

TEST(any_number_of_cores)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2" };
	for (net n = DENSE; n < MODELS; n++) {
		const uint64_t one = SERIAL_STRIDE > 1 ? train(devices[1], 3, n) : train(devices[0], 0, n);
		for (int i = 0; i < 3; i++)
			for (int cores = i == 0 ? 1 : 2; cores <= 3; cores += i == 0 ? 1 : 2)
				if (!SHORT || (SERIAL_STRIDE == 1 && i == 1 && cores == 3))
					assert_true(train(devices[i], cores, n) == one);
		assert_true(train("far:0,far:1", 2, n) == one);
	}
}
