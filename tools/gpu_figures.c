// Times training steps for tools/gpu-check, beside those of tools/gpu_peers.py:
//     gpu_figures gpt2|resnet50|mlp128|launch STEPS BATCH DEVICES [small]
// prints a JSON line. launch: the host's time to queue an operation on one element. "small" makes the nets small, for a trial without a GPU. Public headers only.
#define _POSIX_C_SOURCE 200809L
#include <choir/choir.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 5, MAX_LAYERS = 64, NAME = 32, CLASSES = 1000 };

typedef struct {
	const char *model;
	bool is_text, small;
	int64_t batch, words, places, width, side;
	int32_t *tokens;
	choir_layer *layers;
	choir_optimizer *optimizer;
} net;

static choir_tensor *losses_of(choir_replica *r, const net *n)
{
	if (n->is_text) {
		const choir_shape shape = CHOIR_SHAPE(n->batch, n->places);
		choir_tensor *tokens = choir_constant(r->frame, CHOIR_I32, shape, n->tokens);
		choir_tensor *scores = choir_layer_apply(n->layers, tokens);
		return choir_mean(choir_sparse_softmax_cross_entropy(tokens, scores), CHOIR_AXIS(1));
	}
	const choir_shape images = CHOIR_SHAPE(n->batch, n->side, n->side, 3);
	const choir_shape rows = CHOIR_SHAPE(n->batch, n->width);
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, n->side > 0 ? images : rows, 0.5);
	choir_tensor *labels = choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(n->batch), 1);
	return choir_sparse_softmax_cross_entropy(labels, choir_layer_apply(n->layers, x));
}

static choir_status step(choir_replica *r, void *user)
{
	net *n = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *loss = choir_replica_average_loss(r, losses_of(r, n));
	return choir_optimizer_minimize(n->optimizer, loss, tape);
}

static choir_layer *block(int i, int64_t width, int64_t heads)
{
	char name[6][NAME];
	static const char *const parts[] = { "norm1", "attention", "norm2", "hidden", "back" };
	for (int k = 0; k < 5; k++)
		snprintf(name[k], NAME, "%d/%s", i, parts[k]);
	choir_layer *attention[] = { choir_layer_normalization_new(name[0], width, 1e-5),
		choir_self_attention_new(name[1], width, heads, CHOIR_ON) };
	choir_layer *mlp[] = { choir_layer_normalization_new(name[2], width, 1e-5),
		choir_dense_new(name[3], width, 4 * width, CHOIR_GELU_TANH),
		choir_dense_new(name[4], 4 * width, width, CHOIR_LINEAR) };
	choir_layer *both[] = {
		choir_residual_new(choir_sequential_new(2, attention), NULL, CHOIR_LINEAR),
		choir_residual_new(choir_sequential_new(3, mlp), NULL, CHOIR_LINEAR)
	};
	return choir_sequential_new(2, both);
}

static choir_layer *make_gpt2(net *n)
{
	const int blocks = n->small ? 2 : 12;
	choir_layer *layers[MAX_LAYERS], *words;
	size_t k = 0;
	n->is_text = true;
	n->words = n->small ? 50 : 50257;
	n->places = n->small ? 16 : 1024;
	n->width = n->small ? 24 : 768;
	n->tokens = malloc((size_t) (n->batch * n->places) * sizeof *n->tokens);
	for (int64_t i = 0; n->tokens != NULL && i < n->batch * n->places; i++)
		n->tokens[i] = (int32_t) (i * 7919 % n->words);
	layers[k++] = words = choir_embedding_new("words", n->words, n->width);
	layers[k++] = choir_position_embedding_new("places", n->places, n->width);
	for (int i = 0; i < blocks; i++)
		layers[k++] = block(i, n->width, n->small ? 2 : 12);
	layers[k++] = choir_layer_normalization_new("norm", n->width, 1e-5);
	layers[k++] = choir_tied_embedding_new(words);
	return choir_sequential_new(k, layers);
}

// A convolution and its norm; out channels, square filters.
static size_t convolve(choir_layer **to, const char *name, int64_t in, int64_t out, int64_t size,
		int stride, bool relu)
{
	char norm[NAME + 8];
	size_t k = 0;
	snprintf(norm, sizeof norm, "%s/norm", name);
	to[k++] = choir_conv2d_new(name, in, out, size,
			CHOIR_OPTIONS(choir_conv_options, .stride = stride, .padding = CHOIR_PADDING_SAME,
					.bias = CHOIR_OFF));
	to[k++] = choir_batch_normalization_new(norm, out, NULL);
	if (relu)
		to[k++] = choir_activation_new(CHOIR_RELU);
	return k;
}

static choir_layer *bottleneck(int i, int64_t in, int64_t middle, int stride)
{
	char name[4][NAME];
	choir_layer *inside[9], *shortcut[3];
	size_t k = 0;
	for (int part = 0; part < 4; part++)
		snprintf(name[part], NAME, "%d/conv%d", i, part);
	k += convolve(inside + k, name[0], in, middle, 1, 1, true);
	k += convolve(inside + k, name[1], middle, middle, 3, stride, true);
	k += convolve(inside + k, name[2], middle, 4 * middle, 1, 1, false);
	choir_layer *first = choir_sequential_new(k, inside);
	if (in == 4 * middle)
		return choir_residual_new(first, NULL, CHOIR_RELU);
	k = convolve(shortcut, name[3], in, 4 * middle, 1, stride, false);
	return choir_residual_new(first, choir_sequential_new(k, shortcut), CHOIR_RELU);
}

static choir_layer *make_resnet50(net *n)
{
	static const int blocks[] = { 3, 4, 6, 3 };
	const int stages = n->small ? 2 : 4;
	choir_layer *layers[MAX_LAYERS];
	int64_t in = n->small ? 8 : 64, middle = in;
	n->side = n->small ? 32 : 224;
	size_t k = convolve(layers, "stem", 3, in, 7, 2, true);
	layers[k++] = choir_max_pool2d_new(3, 2, 1);
	for (int stage = 0, i = 0; stage < stages; stage++, middle *= 2)
		for (int b = 0; b < (n->small ? 1 : blocks[stage]); b++, in = 4 * middle)
			layers[k++] = bottleneck(i++, in, middle, b == 0 && stage > 0 ? 2 : 1);
	layers[k++] = choir_global_average_pool2d_new();
	layers[k++] = choir_dense_new("out", in, n->small ? 10 : CLASSES, CHOIR_LINEAR);
	return choir_sequential_new(k, layers);
}

static choir_layer *make_mlp128(net *n)
{
	n->width = 784;
	choir_layer *layers[] = { choir_dense_new("hidden", n->width, 128, CHOIR_RELU),
		choir_dense_new("out", 128, 10, CHOIR_LINEAR) };
	return choir_sequential_new(2, layers);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

// Runs steps; the hash waits for the device.
static choir_status run(choir_strategy *s, net *n, int steps)
{
	for (int i = 0; i < steps; i++)
		if (choir_strategy_run(s, step, n, NULL, NULL) != CHOIR_OK)
			return choir_error_status();
	return choir_strategy_hash(s) == 0 ? choir_error_status() : CHOIR_OK;
}

static uint64_t free_memory(const char *device)
{
	choir_device_info info = { .size = sizeof info };
	return choir_device_describe(choir_device_find(device), &info) == CHOIR_OK ? info.memory_free
																			   : 0;
}

static choir_status measure_launch(const char *device, int launches)
{
	choir_frame *f = choir_frame_new(choir_device_find(device));
	double each = 0;
	if (f == NULL)
		return choir_error_status();
	for (int round = 0; round < 2; round++) { // the second has its memory
		choir_frame_clear(f);
		const double begun = now();
		choir_tensor *x = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(1), 1);
		for (int i = 0; i < launches; i++)
			x = choir_negate(x);
		each = (now() - begun) / launches;
	}
	const choir_status status = choir_frame_status(f);
	if (status == CHOIR_OK)
		printf("{\"figure\": \"launch\", \"by\": \"choir\", \"us\": %.3f}\n", each * 1e6);
	choir_frame_free(f);
	return status;
}

static choir_status measure(net *n, int steps, const char *devices, choir_layer *(*make)(net *))
{
	const bool mixed = strcmp(n->model, "mlp128") != 0;
	const uint64_t free_before = free_memory(devices);
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = devices, .replicas = 1, .seed = 1,
			.precision = mixed ? CHOIR_PRECISION_MIXED_BF16 : CHOIR_PRECISION_F32));
	if (s == NULL)
		return choir_error_status();
	CHOIR_SCOPE (s) {
		n->layers = make(n);
		n->optimizer = choir_optimizer_new(CHOIR_ADAM, NULL);
	}
	choir_status status = n->layers == NULL || n->optimizer == NULL ? choir_error_status()
																	: run(s, n, WARM);
	double begun = now();
	if (status == CHOIR_OK)
		status = run(s, n, 0); // the time of the hash
	const double hash = now() - begun;
	begun = now();
	if (status == CHOIR_OK)
		status = run(s, n, steps);
	const double each = (now() - begun - hash) / steps;
	if (status == CHOIR_OK)
		printf("{\"figure\": \"%s\", \"by\": \"choir\", \"batch\": %lld, \"step_ms\": %.4f, "
			   "\"examples_per_s\": %.1f, \"small\": %s, \"memory_mib\": %lld}\n",
				n->model, (long long) n->batch, each * 1e3, (double) n->batch / each,
				n->small ? "true" : "false",
				((long long) free_before - (long long) free_memory(devices)) >> 20);
	choir_strategy_free(s);
	return status;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		choir_layer *(*make)(net *);
	} models[] = { { "gpt2", make_gpt2 }, { "resnet50", make_resnet50 },
		{ "mlp128", make_mlp128 } };
	if (argc > 4 && strcmp(argv[1], "launch") == 0) {
		if (measure_launch(argv[4], atoi(argv[2])) == CHOIR_OK)
			return 0;
		fprintf(stderr, "gpu_figures: %s\n", choir_error());
		return 1;
	}
	for (size_t i = 0; argc > 4 && i < sizeof models / sizeof models[0]; i++) {
		if (strcmp(argv[1], models[i].name) != 0)
			continue;
		net n = { .model = models[i].name, .batch = atoi(argv[3]), .small = argc > 5 };
		const choir_status status = measure(&n, atoi(argv[2]), argv[4], models[i].make);
		free(n.tokens);
		if (status != CHOIR_OK)
			fprintf(stderr, "gpu_figures: %s\n", choir_error());
		return status != CHOIR_OK;
	}
	fprintf(stderr, "usage: gpu_figures gpt2|resnet50|mlp128|launch STEPS BATCH DEVICES [small]\n");
	return 2;
}
