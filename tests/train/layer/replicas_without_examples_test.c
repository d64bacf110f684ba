// Every layer in a batch with fewer examples than replicas trains to the weights of one replica.
#include "train/problem.h"

#include "test.h"

#include <math.h>

enum { EXAMPLES = 2, CHANNELS = 4, NUMBERS = EXAMPLES * 4 * 4 * 4 * CHANNELS };

typedef struct {
	const char *name;
	choir_layer *(*make)(void);
	choir_shape shape; // of one example
} layer_case;

static choir_layer *dense(void)
{
	return choir_dense_new("l", CHANNELS, 3, CHOIR_GELU);
}

static choir_layer *conv1d(void)
{
	return choir_conv1d_new("l", CHANNELS, 3, 3, NULL);
}

static choir_layer *conv2d(void)
{
	return choir_conv2d_new("l", CHANNELS, 3, 3, NULL);
}

static choir_layer *conv3d(void)
{
	return choir_conv3d_new("l", CHANNELS, 3, 2, NULL);
}

static choir_layer *conv2d_transpose(void)
{
	return choir_conv2d_transpose_new("l", CHANNELS, 3, 3, NULL);
}

static choir_layer *pooled(void)
{
	choir_layer *const both[] = { conv2d(), choir_max_pool2d_new(2, 0, 0) };
	return choir_sequential_new(2, both);
}

static choir_layer *averaged(void)
{
	choir_layer *const both[] = { conv2d(), choir_global_average_pool2d_new() };
	return choir_sequential_new(2, both);
}

static choir_layer *batch_norm(void)
{
	return choir_batch_normalization_new("l", CHANNELS,
			CHOIR_OPTIONS(choir_batch_normalization_options, .over_replicas = CHOIR_ON));
}

static choir_layer *layer_norm(void)
{
	return choir_layer_normalization_new("l", CHANNELS, 0);
}

static choir_layer *rms_norm(void)
{
	return choir_rms_normalization_new("l", CHANNELS, 0);
}

static choir_layer *group_norm(void)
{
	return choir_group_normalization_new("l", CHANNELS, 2, 0);
}

static choir_layer *attention(void)
{
	return choir_self_attention_new("l", CHANNELS, 2, CHOIR_ON);
}

static choir_layer *recurrent(void)
{
	choir_layer *const both[] = { choir_bidirectional_new(choir_lstm_new("l", CHANNELS, 2),
										  choir_gru_new("back", CHANNELS, 2)),
		choir_last_timestep_new() };
	return choir_sequential_new(2, both);
}

typedef struct {
	choir_layer *layer;
	choir_optimizer *optimizer;
} trained;

static choir_status step(choir_replica *r, void *user)
{
	const trained *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *y = choir_layer_apply(t->layer, choir_replica_arg(r, "x"));
	y = choir_square(choir_subtract(y, choir_number(r->frame, 0.5)));
	return choir_optimizer_minimize(t->optimizer, choir_sum(y, CHOIR_ALL_AXES), tape);
}

static int weights_after(
		const layer_case *c, const char *devices, int replicas, float weights[NUMBERS])
{
	choir_strategy *s = mirrored(devices, replicas);
	float x[NUMBERS];
	trained t = { 0 };
	CHOIR_SCOPE (s) {
		t.layer = c->make();
		t.optimizer = choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.05));
	}
	for (int i = 0; i < NUMBERS; i++)
		x[i] = (float) (i * 37 % 101) / 60 - 0.8f;
	choir_values *batch = choir_values_new(s);
	choir_shape shape = { .rank = c->shape.rank + 1, .dim = { EXAMPLES } };
	for (int i = 0; i < c->shape.rank; i++)
		shape.dim[i + 1] = c->shape.dim[i];
	assert_int_equal(choir_values_split(batch, "x",
							 choir_constant(choir_values_frame(batch), CHOIR_F32, shape, x)),
			CHOIR_OK);
	if (choir_strategy_run(s, step, &t, batch, NULL) != CHOIR_OK)
		fail_msg("%s with %d replicas: %s", c->name, replicas, choir_error());
	int n = 0;
	for (int i = 0; i < choir_layer_variables(t.layer); i++) {
		choir_variable *v = choir_layer_variable(t.layer, i);
		const int elements = (int) choir_shape_elements(choir_variable_shape(v));
		assert_true(n + elements <= NUMBERS);
		CHOIR_SCOPE (s)
			fetch_variable(v, weights + n, (size_t) elements * sizeof(float));
		n += elements;
	}
	choir_values_free(batch);
	choir_strategy_free(s);
	return n;
}

// spec: C29, D7
TEST(train_as_one_replica)
{
	const choir_shape row = CHOIR_SHAPE(CHANNELS), text = CHOIR_SHAPE(4, CHANNELS);
	const choir_shape image = CHOIR_SHAPE(4, 4, CHANNELS), volume = CHOIR_SHAPE(4, 4, 4, CHANNELS);
	const layer_case cases[] = { { "dense", dense, row }, { "conv1d", conv1d, text },
		{ "conv2d", conv2d, image }, { "conv3d", conv3d, volume },
		{ "conv2d_transpose", conv2d_transpose, image }, { "max pool", pooled, image },
		{ "global average", averaged, image }, { "batch norm", batch_norm, image },
		{ "layer norm", layer_norm, text }, { "rms norm", rms_norm, text },
		{ "group norm", group_norm, image }, { "attention", attention, text },
		{ "recurrent", recurrent, text } };
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1" };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		float one[NUMBERS], four[NUMBERS];
		const int n = weights_after(&cases[i], "cpu:0", 1, one);
		for (int d = 0; d < 2; d++) {
			assert_int_equal(weights_after(&cases[i], devices[d], 4, four), n);
			for (int k = 0; k < n; k++)
				if (!(fabsf(one[k] - four[k]) <= 2e-5f * (1 + fabsf(one[k]))))
					fail_msg("%s: number %d is %g, needed %g", cases[i].name, k, (double) four[k],
							(double) one[k]);
		}
	}
}
