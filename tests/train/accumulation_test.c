// Gradient accumulation is more replicas than devices, and needs no more memory: a device's
// replicas run one after another, each in the memory of the one before, and leave only partial
// sums of gradients behind.
#include "base/alloc.h"
#include "choir/layer.h"
#include "choir/optimizer.h"
#include "choir/strategy.h"
#include "choir/tape.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <stdlib.h>

enum { ROWS = 512, WIDTH = 64, LAYERS = 6, MAX_REPLICAS = 8 };

// What one replica keeps for its way back, at the least, and all weights.
static const size_t ACTIVATIONS = (size_t) LAYERS * ROWS * WIDTH * sizeof(float);
static const size_t WEIGHTS = (size_t) LAYERS * (WIDTH + 1) * WIDTH * sizeof(float);

typedef struct {
	choir_layer *net;
	choir_optimizer *sgd;
} model;

static choir_status step(choir_replica *r, void *user)
{
	const model *m = user;
	choir_tensor *x = choir_replica_arg(r, "x");
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *losses = choir_mean_squared_error(x, choir_layer_apply(m->net, x));
	return choir_optimizer_minimize(m->sgd, choir_replica_average_loss(r, losses), tape);
}

static model open_model(choir_strategy *s)
{
	model m = { NULL, NULL };
	choir_layer *layers[LAYERS];
	static const char *const names[LAYERS] = { "a", "b", "c", "d", "e", "f" };
	CHOIR_SCOPE (s) {
		for (int i = 0; i < LAYERS; i++)
			layers[i] = choir_dense_new(names[i], WIDTH, WIDTH, CHOIR_TANH);
		m.net = choir_sequential_new(LAYERS, layers);
		m.sgd = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	return m;
}

// The most bytes of the second device's pool in two steps with ROWS examples a replica.
static size_t peak_of_step(int replicas)
{
	static float data[MAX_REPLICAS * ROWS][WIDTH];
	choir_device *d = choir_device_find("cpu:1");
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,cpu:1", .replicas = replicas));
	assert_non_null(s);
	model m = open_model(s);
	choir_values *batch = choir_values_new(s);
	choir_tensor *x = choir_borrow(choir_values_frame(batch), CHOIR_F32,
			CHOIR_SHAPE((int64_t) replicas * ROWS, WIDTH), data);
	assert_int_equal(choir_values_split(batch, "x", x), CHOIR_OK);
	chi_buffer_reset_peak(d);
	for (int i = 0; i < 2; i++)
		assert_int_equal(choir_strategy_run(s, step, &m, batch, NULL), CHOIR_OK);
	const size_t peak = chi_buffer_peak(d);
	choir_values_free(batch);
	choir_strategy_free(s);
	return peak;
}

TEST(four_replicas_a_device_need_one_replicas_memory)
{
	const size_t one = peak_of_step(2), four = peak_of_step(MAX_REPLICAS);
	assert_true(one >= ACTIVATIONS); // or nothing is shown
	// Four replicas fold into at most three nodes at a time: 1, 1 and 2 replicas' sums.
	assert_in_range(four, one, one + 3 * WEIGHTS + WEIGHTS / 2);
	assert_true(four < one + ACTIVATIONS);
}
