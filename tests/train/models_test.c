// Whole models in small: a GPT of two blocks on a text that repeats, and a residual net on drawn
// digits. They learn, and for each number of replicas the weights are the same to the bit on one
// device and on two, of host memory or not, whether blocks are kept or made again.
#include "train/problem.h"

#include "base/alloc.h"
#include "base/status.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 8, PLACES = 12, WIDTH = 32, LETTERS = 16, SIDE = 10, DIGITS = 10 };

typedef struct {
	choir_strategy *strategy;
	choir_layer *before, *middle, *after; // middle may be made again
	choir_optimizer *optimizer;
	choir_values *batch;
	bool again, quiet; // quiet: without results
	double loss; // of the last step, summed over replicas
	int64_t steps;
} model;

typedef struct {
	bool (*make)(model *m);
	choir_tensor *(*load)(model *m); // the batch's x; its labels are in the set
	int64_t labels; // of an example
	double rate;
} kind;

static choir_layer *block(const char *name)
{
	char part[5][32];
	static const char *const parts[] = { "norm1", "attention", "norm2", "up", "down" };
	for (int i = 0; i < 5; i++)
		snprintf(part[i], sizeof part[i], "%s/%s", name, parts[i]);
	choir_layer *attention[] = { choir_layer_normalization_new(part[0], WIDTH, 1e-5),
		choir_self_attention_new(part[1], WIDTH, 4, CHOIR_ON), choir_dropout_new(part[1], 0.1) };
	choir_layer *dense[] = { choir_layer_normalization_new(part[2], WIDTH, 1e-5),
		choir_dense_new(part[3], WIDTH, 4 * WIDTH, CHOIR_GELU),
		choir_dense_new(part[4], 4 * WIDTH, WIDTH, CHOIR_LINEAR) };
	choir_layer *both[] = { choir_residual_new(
									choir_sequential_new(3, attention), NULL, CHOIR_LINEAR),
		choir_residual_new(choir_sequential_new(3, dense), NULL, CHOIR_LINEAR) };
	return choir_sequential_new(2, both);
}

static bool make_gpt(model *m)
{
	choir_layer *token = choir_embedding_new("token", LETTERS, WIDTH);
	m->before = choir_sequential_new(
			2, (choir_layer *[]){ token, choir_position_embedding_new("place", PLACES, WIDTH) });
	m->middle = choir_sequential_new(2, (choir_layer *[]){ block("block0"), block("block1") });
	m->after = choir_sequential_new(2,
			(choir_layer *[]){ choir_layer_normalization_new("norm", WIDTH, 1e-5),
					choir_tied_embedding_new(token) });
	return m->before && m->middle && m->after;
}

static choir_tensor *load_text(model *m)
{
	static uint8_t text[BATCH][PLACES], next[BATCH][PLACES];
	static const uint8_t song[] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 11, 12, 14, 0 };
	for (int i = 0; i < BATCH; i++)
		for (int k = 0; k < PLACES; k++) {
			const size_t at = (size_t) (m->steps * 5 + i * 7 + k);
			text[i][k] = song[at % sizeof song];
			next[i][k] = song[(at + 1) % sizeof song];
		}
	choir_frame *f = choir_values_frame(m->batch);
	const choir_shape shape = CHOIR_SHAPE(BATCH, PLACES);
	if (choir_values_split(m->batch, "label", choir_borrow(f, CHOIR_U8, shape, next)) != CHOIR_OK)
		return NULL;
	return choir_borrow(f, CHOIR_U8, shape, text);
}

static choir_layer *convolution(const char *name, int64_t in, int64_t out, int stride)
{
	char norm[32];
	snprintf(norm, sizeof norm, "%s/norm", name);
	choir_layer *layers[] = { choir_conv2d_new(name, in, out, 3,
									  CHOIR_OPTIONS(choir_conv_options, .stride = stride,
											  .padding = 1, .bias = CHOIR_OFF)),
		choir_batch_normalization_new(norm, out,
				CHOIR_OPTIONS(choir_batch_normalization_options, .over_replicas = CHOIR_ON)) };
	return choir_sequential_new(2, layers);
}

static bool make_resnet(model *m)
{
	choir_layer *first[] = { convolution("b0", 6, 6, 1), choir_activation_new(CHOIR_RELU),
		convolution("b1", 6, 6, 1) };
	choir_layer *second[] = { convolution("c0", 6, 10, 2), choir_activation_new(CHOIR_RELU),
		convolution("c1", 10, 10, 1) };
	m->before = choir_sequential_new(2,
			(choir_layer *[]){ convolution("stem", 1, 6, 1), choir_activation_new(CHOIR_RELU) });
	m->middle = choir_sequential_new(2,
			(choir_layer *[]){
					choir_residual_new(choir_sequential_new(3, first), NULL, CHOIR_RELU),
					choir_residual_new(choir_sequential_new(3, second),
							choir_conv2d_new("short", 6, 10, 1,
									CHOIR_OPTIONS(
											choir_conv_options, .stride = 2, .bias = CHOIR_OFF)),
							CHOIR_RELU) });
	m->after = choir_sequential_new(2,
			(choir_layer *[]){ choir_global_average_pool2d_new(),
					choir_dense_new("scores", 10, DIGITS, CHOIR_LINEAR) });
	return m->before && m->middle && m->after;
}

// Seven strokes: across top, middle and bottom, then the four sides, and some noise.
static void draw(int digit, uint32_t noise, float image[SIDE][SIDE])
{
	static const char strokes[DIGITS] = { 0x7d, 0x50, 0x37, 0x57, 0x5a, 0x4f, 0x6f, 0x51, 0x7f,
		0x5f };
	for (int r = 0; r < SIDE; r++)
		for (int c = 0; c < SIDE; c++) {
			noise = noise * 1664525u + 1013904223u;
			image[r][c] = (float) (noise >> 24) / 1024;
			const int side = c == 2 ? (r < 5 ? 3 : 5) : c == 7 ? (r < 5 ? 4 : 6) : -1;
			const int across = r == 1 ? 0 : r == 5 ? 1 : r == 8 ? 2 : -1;
			const bool inside = c >= 2 && c <= 7 && r >= 1 && r <= 8;
			if (inside && across >= 0 && strokes[digit] >> across & 1)
				image[r][c] += 1;
			else if (inside && side >= 0 && strokes[digit] >> side & 1)
				image[r][c] += 1;
		}
}

static choir_tensor *load_digits(model *m)
{
	static float images[BATCH][SIDE][SIDE];
	static uint8_t labels[BATCH];
	for (int i = 0; i < BATCH; i++) {
		labels[i] = (uint8_t) ((m->steps * 3 + i * 7) % DIGITS);
		draw(labels[i], (uint32_t) (m->steps * BATCH + i) * 2654435761u, images[i]);
	}
	choir_frame *f = choir_values_frame(m->batch);
	if (choir_values_split(m->batch, "label",
				choir_borrow(f, CHOIR_U8, CHOIR_SHAPE(BATCH), labels)) != CHOIR_OK)
		return NULL;
	return choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(BATCH, SIDE, SIDE, 1), images);
}

static const kind gpt = { make_gpt, load_text, PLACES, 0.01 };
static const kind resnet = { make_resnet, load_digits, 1, 0.02 };

static choir_tensor *apply_middle(choir_tensor *const in[], void *user)
{
	return choir_layer_apply(((const model *) user)->middle, in[0]);
}

static choir_status train(choir_replica *r, void *user)
{
	model *m = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = choir_layer_apply(m->before, choir_replica_arg(r, "x"));
	x = m->again ? choir_recompute(1, &x, apply_middle, m) : apply_middle(&x, m);
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(
			choir_replica_arg(r, "label"), choir_layer_apply(m->after, x));
	if (losses != NULL && choir_tensor_shape(losses)->rank > 1)
		losses = choir_mean(losses, CHOIR_AXIS(1));
	choir_tensor *loss = choir_replica_average_loss(r, losses);
	if (!m->quiet)
		CHOIR_TRY(choir_replica_return(r, "loss", loss));
	return choir_optimizer_minimize(m->optimizer, loss, tape);
}

static choir_status step(model *m, const kind *k)
{
	choir_values *results = NULL;
	choir_values_clear(m->batch);
	CHOIR_TRY(choir_values_split(m->batch, "x", k->load(m)));
	m->steps++;
	if (m->quiet)
		return choir_strategy_run(m->strategy, train, m, m->batch, NULL);
	CHOIR_TRY(choir_strategy_run(m->strategy, train, m, m->batch, &results));
	m->loss = choir_tensor_number(choir_strategy_reduce(
			m->strategy, CHOIR_SUM, choir_values_find(results, "loss"), CHOIR_NO_AXIS));
	choir_values_free(results);
	return CHOIR_OK;
}

static model open_model(const kind *k, const char *devices, int replicas, bool again)
{
	model m = { .strategy = mirrored(devices, replicas), .again = again };
	CHOIR_SCOPE (m.strategy) {
		if (k->make(&m))
			m.optimizer = choir_optimizer_new(
					CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = k->rate));
	}
	m.batch = m.optimizer == NULL ? NULL : choir_values_new(m.strategy);
	if (m.batch == NULL)
		fail_msg("%s", choir_error());
	return m;
}

static void close_model(model *m)
{
	choir_values_free(m->batch);
	choir_strategy_free(m->strategy);
}

// Trains for so many steps: the hash of the weights, and the losses of the first and last step.
static uint64_t train_for(
		const kind *k, const char *devices, int replicas, bool again, int steps, double loss[2])
{
	model m = open_model(k, devices, replicas, again);
	choir_status status = CHOIR_OK;
	for (int i = 0; i < steps && status == CHOIR_OK; i++) {
		status = step(&m, k);
		if (loss != NULL)
			loss[i > 0] = m.loss;
	}
	if (status != CHOIR_OK)
		fail_msg("%d replicas on %s: %s", replicas, devices, choir_error());
	const uint64_t hash = choir_strategy_hash(m.strategy);
	close_model(&m);
	return hash;
}

static void same(const kind *k)
{
	static const int replicas[] = { 1, 2, 4 };
	for (int i = 0; i < 3; i += 1 + SHORT) {
		const uint64_t first = train_for(k, "cpu:0", replicas[i], false, 3, NULL);
		assert_int_not_equal(first, 0);
		assert_int_equal(train_for(k, "cpu:0", replicas[i], true, 3, NULL), first);
		if (replicas[i] == 1)
			continue;
		assert_int_equal(train_for(k, "cpu:0,cpu:1", replicas[i], false, 3, NULL), first);
		assert_int_equal(train_for(k, "cpu:0,cpu:1", replicas[i], true, 3, NULL), first);
		assert_int_equal(train_for(k, "far:0,far:1", replicas[i], false, 3, NULL), first);
	}
}

TEST(gpt_has_the_same_bits)
{
	same(&gpt);
}

TEST(resnet_has_the_same_bits)
{
	same(&resnet);
}

// Buffers, tapes and primitives are there after some steps.
static void steady(const kind *k, const char *devices, int replicas, bool again)
{
	model m = open_model(k, devices, replicas, again);
	m.quiet = true;
	for (int i = 0; i < 12; i++)
		assert_int_equal(step(&m, k), CHOIR_OK);
	const uint64_t before = chi_alloc_count();
	for (int i = 0; i < 5; i++)
		assert_int_equal(step(&m, k), CHOIR_OK);
	if (chi_alloc_count() != before)
		fail_msg("%s, %d replicas: %llu allocations in 5 steps", devices, replicas,
				(unsigned long long) (chi_alloc_count() - before));
	close_model(&m);
}

TEST(steps_allocate_nothing)
{
	steady(&gpt, "cpu:0", 1, false);
	steady(&gpt, "cpu:0,cpu:1", 2, true);
	steady(&gpt, "cpu:0,cpu:1", 4, false);
	steady(&resnet, "cpu:0", 1, true);
	steady(&resnet, "cpu:0,cpu:1", 2, false);
}

TEST(they_learn)
{
	double loss[2];
	if (SHORT) // these steps are those of the other tests
		skip();
	train_for(&gpt, "cpu:0,cpu:1", 2, false, 40, loss);
	print_message("gpt: %g, then %g\n", loss[0], loss[1]);
	assert_true(loss[0] > 2.5 && loss[1] < 0.5);
	train_for(&resnet, "cpu:0,cpu:1", 2, false, 40, loss);
	print_message("resnet: %g, then %g\n", loss[0], loss[1]);
	assert_true(loss[0] > 1.8 && loss[1] < 0.5);
}
