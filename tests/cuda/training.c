// Trainings through public headers on 1, 2 and 4 GPUs of the stand-in: the same bits, whatever the
// number of GPUs and the way of summing, and a loss close to the CPU's. No kernel of these nets
// runs on the host.
#include <choir/choir.h>

#include "short.h"
#include "standin.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPLICAS = 5, BATCH = 3, SIDE = 7, CLASSES = 4, STEPS = 3, WIDTH = 8 };

typedef enum { DENSE, CONVOLUTIONAL, TRANSFORMER } kind;

typedef struct {
	kind kind;
	choir_precision precision;
	double clip;
	choir_dtype wire;
	choir_layer *layers;
	choir_optimizer *optimizer;
	choir_metric *loss;
} net;

typedef struct {
	uint64_t hash;
	double loss;
} result;

static choir_tensor *input_of(choir_replica *r, const net *n)
{
	const choir_shape images = CHOIR_SHAPE(BATCH, SIDE, SIDE, 1);
	const choir_shape rows = CHOIR_SHAPE(BATCH, SIDE * SIDE);
	const double words[] = { 1, 4, 1, 0, 4, 3 };
	if (n->kind == TRANSFORMER)
		return choir_cast(
				choir_constant(r->frame, CHOIR_F64, CHOIR_SHAPE(BATCH, 2), words), CHOIR_I32);
	choir_tensor *x =
			choir_random_normal(r->frame, CHOIR_F64, n->kind == CONVOLUTIONAL ? images : rows, 3);
	return choir_cast(x, CHOIR_F32);
}

static choir_status train_step(choir_replica *r, void *user)
{
	net *n = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	const double numbers[] = { 1, 0, 3 };
	choir_tensor *labels = choir_cast(
			choir_constant(r->frame, CHOIR_F64, CHOIR_SHAPE(BATCH), numbers), CHOIR_I32);
	choir_tensor *scores = choir_layer_apply(n->layers, input_of(r, n));
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(labels, scores);
	CHOIR_TRY(choir_metric_update(n->loss, losses, NULL));
	return choir_optimizer_minimize(n->optimizer, choir_replica_average_loss(r, losses), tape);
}

#define SEQUENCE(...) \
	choir_sequential_new(sizeof((choir_layer *[]){ __VA_ARGS__ }) / sizeof(choir_layer *), \
			(choir_layer *[]){ __VA_ARGS__ })

static choir_layer *convolutional_layers(void)
{
	choir_layer *strided =
			choir_conv2d_new("strided", 3, 4, 3, CHOIR_OPTIONS(choir_conv_options, .stride = 2));
	return SEQUENCE(choir_conv2d_new("conv", 1, 3, 3, NULL),
			choir_batch_normalization_new("norm", 3, NULL), choir_activation_new(CHOIR_RELU),
			choir_max_pool2d_new(2, 1, 0), strided, choir_conv2d_new("pixels", 4, 5, 1, NULL),
			choir_global_average_pool2d_new(), choir_dense_new("out", 5, CLASSES, CHOIR_LINEAR));
}

static choir_layer *block(void)
{
	choir_layer *attention = SEQUENCE(choir_layer_normalization_new("norm1", WIDTH, 0),
			choir_self_attention_new("attention", WIDTH, 2, CHOIR_ON));
	choir_layer *mlp = SEQUENCE(choir_layer_normalization_new("norm2", WIDTH, 0),
			choir_dense_new("hidden", WIDTH, 2 * WIDTH, CHOIR_GELU_TANH),
			choir_dense_new("back", 2 * WIDTH, WIDTH, CHOIR_LINEAR),
			choir_dropout_new("dropout", 0.1));
	return SEQUENCE(choir_residual_new(attention, NULL, CHOIR_LINEAR),
			choir_residual_new(mlp, NULL, CHOIR_LINEAR));
}

static choir_layer *make_layers(kind k)
{
	if (k == CONVOLUTIONAL)
		return convolutional_layers();
	if (k == TRANSFORMER)
		return SEQUENCE(choir_embedding_new("words", CLASSES + 1, WIDTH),
				choir_position_embedding_new("positions", 2, WIDTH), block(), choir_flatten_new(),
				choir_dense_new("out", 2 * WIDTH, CLASSES, CHOIR_LINEAR));
	return SEQUENCE(choir_dense_new("hidden", SIDE * SIDE, 9, CHOIR_TANH),
			choir_dropout_new("dropout", 0.25), choir_dense_new("out", 9, CLASSES, CHOIR_LINEAR));
}

static choir_strategy *make(net *n, const char *devices, const char *ops)
{
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = devices, .replicas = REPLICAS, .seed = 7, .timeout = 20,
			.cross_device_ops = ops, .precision = n->precision, .wire = n->wire));
	if (s == NULL)
		fail_msg("%s", choir_error());
	CHOIR_SCOPE (s) {
		n->layers = make_layers(n->kind);
		n->optimizer = choir_optimizer_new(
				CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .global_clip_norm = n->clip));
		n->loss = choir_metric_new("loss", CHOIR_METRIC_MEAN);
	}
	if (n->layers == NULL || n->optimizer == NULL)
		fail_msg("%s", choir_error());
	return s;
}

static result train(net n, const char *devices, const char *ops)
{
	choir_strategy *s = make(&n, devices, ops);
	for (int step = 0; step < STEPS; step++)
		if (choir_strategy_run(s, train_step, &n, NULL, NULL) != CHOIR_OK)
			fail_msg("%s with %s: %s", devices, ops == NULL ? "any" : ops, choir_error());
	const result r = { choir_strategy_hash(s), choir_metric_result(n.loss) };
	choir_strategy_free(s);
	return r;
}

// ways: how many ways of summing are tried.
static void compare(net n, double tolerance, int ways)
{
	static const char *const devices[] = { "gpu:0,gpu:1", "gpu:0,gpu:1,gpu:2,gpu:3" };
	static const char *const way[] = { "peer", "nccl", "ring", "hierarchical_copy",
		"reduce_to_one_device" };
	const result cpu = train(n, "cpu:0", NULL);
	const result one = train(n, "gpu:0", NULL);
	assert_true(one.hash != 0 && isfinite(one.loss));
	if (!(fabs(one.loss - cpu.loss) < tolerance * cpu.loss))
		fail_msg("the loss is %.9g on a GPU, and %.9g on a CPU", one.loss, cpu.loss);
	for (int d = ways > 1 ? 0 : 1; d < 2; d++)
		for (int w = 0; w < (SHORT && ways > 2 ? 2 : ways); w++) {
			const result r = train(n, devices[d], way[w]);
			if (r.hash != one.hash)
				fail_msg("%s with %s: the hash is %016llx; one GPU's is %016llx", devices[d],
						way[w], (unsigned long long) r.hash, (unsigned long long) one.hash);
		}
}

TEST(a_dense_net)
{
	compare((net){ .kind = DENSE }, 1e-5, 5);
	compare((net){ .kind = DENSE, .wire = CHOIR_BF16 }, 1e-2, 2);
}

TEST(a_convolutional_net)
{
	compare((net){ .kind = CONVOLUTIONAL, .clip = 0.5 }, 1e-5, 1);
	compare((net){ .kind = CONVOLUTIONAL, .precision = CHOIR_PRECISION_MIXED_BF16 }, 1e-2, 1);
	compare((net){ .kind = CONVOLUTIONAL, .precision = CHOIR_PRECISION_TF32 }, 1e-3, 1);
}

TEST(tf32_changes_bits_only_where_it_is_asked_for)
{
	const net f32 = { .kind = TRANSFORMER };
	const net tf32 = { .kind = TRANSFORMER, .precision = CHOIR_PRECISION_TF32 };
	assert_true(train(tf32, "gpu:0", NULL).hash != train(f32, "gpu:0", NULL).hash);
	assert_true(train(tf32, "cpu:0", NULL).hash == train(f32, "cpu:0", NULL).hash);
}

TEST(a_transformer)
{
	compare((net){ .kind = TRANSFORMER, .clip = 0.5 }, 1e-5, 1);
	compare((net){ .kind = TRANSFORMER, .precision = CHOIR_PRECISION_MIXED_BF16 }, 1e-2, 1);
	compare((net){ .kind = TRANSFORMER, .precision = CHOIR_PRECISION_MIXED_F16 }, 1e-2, 0);
}

typedef struct {
	kind kind;
	double clip;
	const char *devices;
	uint64_t kernels, events; // of a step, at most
} step_case;

static void run_steps(choir_strategy *s, net *n, int steps)
{
	for (int i = 0; i < steps; i++)
		if (choir_strategy_run(s, train_step, n, NULL, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
}

// STANDIN_COUNTS=1 prints the counts.
static void judge_step(const step_case *c, const standin_counts *before, const standin_counts *now,
		uint64_t launches, uint64_t equal)
{
	const uint64_t kernels = now->kernels - before->kernels;
	const uint64_t events =
			now->records - before->records + now->stream_waits - before->stream_waits;
	if (getenv("STANDIN_COUNTS") != NULL)
		printf("net %d on %s: kernels %llu, library %llu, copies %llu, fills %llu, records %llu, "
			   "stream waits %llu, host waits %llu, equal launches %llu of %llu\n",
				(int) c->kind, c->devices, (unsigned long long) kernels,
				(unsigned long long) (now->library_calls - before->library_calls),
				(unsigned long long) (now->copies - before->copies),
				(unsigned long long) (now->fills - before->fills),
				(unsigned long long) (now->records - before->records),
				(unsigned long long) (now->stream_waits - before->stream_waits),
				(unsigned long long) (now->host_waits - before->host_waits),
				(unsigned long long) equal, (unsigned long long) launches);
	assert_int_equal(now->allocations - before->allocations, 0);
	assert_int_equal(now->frees - before->frees, 0);
	assert_int_equal(now->pinned - before->pinned, 0);
	assert_int_equal(now->streams - before->streams, 0);
	assert_int_equal(now->events - before->events, 0);
	assert_int_equal(now->pageable_stops - before->pageable_stops, 0);
	if (kernels > c->kernels || events > c->events)
		fail_msg("net %d on %s: %llu kernels and %llu operations with events", (int) c->kind,
				c->devices, (unsigned long long) kernels, (unsigned long long) events);
}

// A step allocates nothing and makes no events. One kernel updates all small variables.
TEST(a_steady_step)
{
	static const step_case cases[] = {
		{ DENSE, 0, "gpu:0", 124, 20 },
		{ DENSE, 0, "gpu:0,gpu:1", 116, 36 },
		{ TRANSFORMER, 0.5, "gpu:0", 327, 42 },
		{ TRANSFORMER, 0.5, "gpu:0,gpu:1", 283, 44 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		net n = { .kind = cases[i].kind, .clip = cases[i].clip };
		choir_strategy *s = make(&n, cases[i].devices, NULL);
		standin_counts before, now;
		uint64_t launches, equal;
		run_steps(s, &n, 8);
		// The pools of memory and events still grow for a timing that no step has had yet.
		for (int tries = 0; tries < 20; tries++) {
			standin_compare_launches(&launches, &equal);
			standin_count(&before);
			run_steps(s, &n, 1);
			standin_count(&now);
			standin_compare_launches(&launches, &equal);
			if (now.allocations == before.allocations && now.pinned == before.pinned &&
					now.events == before.events)
				break;
		}
		judge_step(&cases[i], &before, &now, launches, equal);
		choir_strategy_free(s);
	}
}

// A program that names no devices uses all GPUs.
TEST(default_devices)
{
	choir_strategy *s = choir_mirrored_strategy_new(NULL);
	assert_non_null(s);
	assert_int_equal(choir_strategy_replicas(s), choir_device_count("gpu"));
	choir_strategy_free(s);
}
