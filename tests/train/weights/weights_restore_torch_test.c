// A convolution, a flattened image and a dense layer with the weights of a library whose images
// and kernels have their channels first, as PyTorch's do: a map brings them in, and the scores are
// those which that library computes, worked out here in its layout.
#include "base/alloc.h"
#include "base/status.h"
#include "strategy/strategy.h"
#include "train/files.h"
#include "train/problem.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 2, OUT = 3, SIDE = 4, KERNEL = 2, LEFT = SIDE - KERNEL + 1, SCORES = 4 };
enum { FLAT = OUT * LEFT * LEFT };

typedef struct {
	float conv[OUT][IN][KERNEL][KERNEL], conv_bias[OUT];
	float fc[SCORES][FLAT], fc_bias[SCORES];
} weights;

static const char header[] =
		"{\"conv.bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[96,"
		"108]},"
		"\"conv.weight\":{\"dtype\":\"F32\",\"shape\":[3,2,2,2],"
		"\"data_offsets\":[0,96]},"
		"\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[540,"
		"556]},"
		"\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[4,27],"
		"\"data_offsets\":[108,540]}}";
_Static_assert(sizeof(weights) == 556, "the header's offsets");

static void draw(float *to, size_t n, int from)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (float) ((int) ((i + (size_t) from) * 37 % 23) - 11) / 8;
}

// As torch: conv2d, relu, flatten(1), linear.
static void torch(const weights *w, float x[IN][SIDE][SIDE], float scores[SCORES])
{
	float flat[FLAT];
	for (int c = 0, at = 0; c < OUT; c++)
		for (int i = 0; i < LEFT; i++)
			for (int k = 0; k < LEFT; k++, at++) {
				float sum = w->conv_bias[c];
				for (int d = 0; d < IN; d++)
					for (int a = 0; a < KERNEL; a++)
						for (int b = 0; b < KERNEL; b++)
							sum += w->conv[c][d][a][b] * x[d][i + a][k + b];
				flat[at] = sum > 0 ? sum : 0;
			}
	for (int s = 0; s < SCORES; s++) {
		scores[s] = w->fc_bias[s];
		for (int i = 0; i < FLAT; i++)
			scores[s] += w->fc[s][i] * flat[i];
	}
}

static choir_layer *open_net(choir_strategy *s)
{
	choir_layer *net = NULL;
	CHOIR_SCOPE (s)
		net = choir_sequential_new(3,
				(choir_layer *[]){
						choir_conv2d_new("conv", IN, OUT, KERNEL,
								CHOIR_OPTIONS(choir_conv_options, .activation = CHOIR_RELU)),
						choir_flatten_new(), choir_dense_new("fc", FLAT, SCORES, CHOIR_LINEAR) });
	assert_non_null(net);
	return net;
}

// The largest difference of Choir's scores from the needed ones, with weights by a map.
static double difference(const char *map, const weights *w)
{
	float x[IN][SIDE][SIDE], image[SIDE][SIDE][IN], needed[SCORES];
	const char *path = files_path("torch.safetensors");
	files_write_safetensors(path, header, w, sizeof *w);
	draw(&x[0][0][0], IN * SIDE * SIDE, 5);
	torch(w, x, needed);
	for (int c = 0; c < IN; c++)
		for (int i = 0; i < SIDE; i++)
			for (int k = 0; k < SIDE; k++)
				image[i][k][c] = x[c][i][k];
	choir_strategy *s = mirrored("cpu:0", 1);
	choir_layer *net = open_net(s);
	if (choir_strategy_restore_partial(
				s, path, CHOIR_OPTIONS(choir_restore_options, .map = map)) != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *y = choir_layer_apply(
			net, choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(1, SIDE, SIDE, IN), image));
	const float *scores = choir_tensor_data(y);
	assert_non_null(scores);
	double max = 0;
	for (int i = 0; i < SCORES; i++) {
		const double apart = fabs((double) scores[i] - (double) needed[i]);
		max = apart > max ? apart : max;
	}
	choir_frame_free(f);
	choir_strategy_free(s);
	return max;
}

static const char *const right[] = { "torch\n",
	"conv.weight conv/kernel 2,3,1,0\n*.bias */bias\n"
	"fc.weight fc/kernel reshape 4,3,3,3 axes 2,3,1,0\n",
	"conv.weight conv/kernel 2,3,1,0\n*.bias */bias\n"
	"fc.weight fc/kernel reshape 4,(3,3,3) axes 2,3,1,0\n",
	"torch\nfc.weight fc/kernel reshape 4,(3,9) axes 2,1,0\n" };

TEST(the_scores_are_the_same)
{
	weights w;
	draw(&w.conv[0][0][0][0], sizeof w / sizeof(float), 0);
	for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
		assert_true(difference(right[i], &w) < 1e-5);
	// An order that somebody asks for is taken, but it is not that of this file.
	assert_true(difference("torch\nfc.weight fc/kernel reshape 4,27 axes 1,0\n", &w) > 0.1);
}

// ---- Maps whose shapes fit.

static choir_status restore(choir_strategy *s, const char *path, const char *map)
{
	return choir_strategy_restore_partial(
			s, path, CHOIR_OPTIONS(choir_restore_options, .map = map));
}

TEST(a_map_that_would_be_wrong_is_refused)
{
	weights w;
	draw(&w.conv[0][0][0][0], sizeof w / sizeof(float), 0);
	const char *path = files_path("torch.safetensors");
	files_write_safetensors(path, header, &w, sizeof w);
	choir_strategy *s = mirrored("cpu:0", 1);
	open_net(s);
	const uint64_t before = choir_strategy_hash(s);
	static const char *const wrong[][2] = {
		{ "conv.weight conv/kernel 2,3,1,0\n*.bias */bias\nfc.weight fc/kernel 1,0\n",
				"\"fc.weight\"*\"fc/kernel\"*3 channels*reshape 4,(3,9) axes 2,1,0" },
		{ "fc.weight fc/kernel reshape (4,3),9 axes 2,1,0\n", "which the map makes" },
		{ "fc.weight fc/kernel reshape 4,(3,9\n", "line 1*reshape 10,(64,7,7)" },
		{ "fc.weight fc/kernel reshape 4,((3,9))\n", "line 1*reshape 10,(64,7,7)" },
		{ "fc.weight fc/kernel reshape 4,()\n", "line 1*reshape 10,(64,7,7)" },
		{ "torch\nkeras\n", "line 2*one word*torch or keras once" },
		{ "tensorflow\n", "line 1*one word*torch or keras once" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_failed(restore(s, path, wrong[i][0]), CHOIR_INVALID, wrong[i][1]);
		assert_true(choir_strategy_hash(s) == before);
	}
	choir_strategy_free(s);
}

// A square kernel, and one of 2 by 2 pixels from 2 to 2 channels.
static const char square[] =
		"{\"a.w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
		"\"b.w\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[16,40]}}";

TEST(a_square_kernel_needs_axes_if_others_have_them)
{
	const float data[10] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	const char *path = files_path("square.safetensors");
	float a[4];
	files_write_safetensors(path, square, data, sizeof data);
	choir_strategy *s = mirrored("cpu:0", 1);
	choir_layer *first = NULL;
	CHOIR_SCOPE (s) {
		first = choir_dense_no_bias_new("a", 2, 2);
		assert_non_null(choir_dense_no_bias_new("b", 2, 3));
	}
	assert_failed(restore(s, path, "b.w b/kernel 1,0\na.w a/kernel\n"), CHOIR_INVALID,
			"\"a.w\"*\"a/kernel\"*both orders*needs axes");
	assert_int_equal(restore(s, path, "b.w b/kernel 1,0\na.w a/kernel 0,1\n"), CHOIR_OK);
	fetch_variable(choir_layer_variable(first, 0), a, sizeof a);
	assert_true(a[1] == 2);
	assert_int_equal(restore(s, path, "torch\n*.w *.weight\n"), CHOIR_OK);
	fetch_variable(choir_layer_variable(first, 0), a, sizeof a);
	assert_true(a[1] == 3);
	choir_strategy_free(s);
}

TEST(a_recurrent_layer_has_names_of_its_own)
{
	static const char lstm[] =
			"{\"l.weight\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[0,16]}}";
	const float data[4] = { 0 };
	const char *path = files_path("lstm.safetensors");
	files_write_safetensors(path, lstm, data, sizeof data);
	choir_strategy *s = mirrored("cpu:0", 1);
	CHOIR_SCOPE (s)
		assert_non_null(choir_lstm_new("l", 1, 1));
	assert_failed(restore(s, path, "torch\n"), CHOIR_INVALID, "\"l/kernel\"*weight_ih_l0");
	choir_strategy_free(s);
}

// ---- Export.

// What is imported and exported by one map is the same file, but for the order of tensors.
TEST(an_export_is_the_inverse_of_an_import)
{
	weights w, back;
	draw(&w.conv[0][0][0][0], sizeof w / sizeof(float), 0);
	files_write_safetensors(files_path("torch.safetensors"), header, &w, sizeof w);
	for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
		choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
		char out[200];
		snprintf(out, sizeof out, "%s%zu", files_path("out"), i);
		open_net(s);
		assert_int_equal(restore(s, files_path("torch.safetensors"), right[i]), CHOIR_OK);
		if (choir_strategy_save_mapped(s, out, right[i], "a=b") != CHOIR_OK)
			fail_msg("%s", choir_error());
		choir_weights_list *l = choir_weights_list_new(out);
		assert_int_equal(choir_weights_list_entries(l), 4);
		size_t size;
		char *bytes = files_read(out, &size);
		const struct {
			const char *name;
			void *to;
			size_t bytes;
			choir_shape shape;
		} all[] = { { "conv.bias", back.conv_bias, sizeof back.conv_bias, CHOIR_SHAPE(3) },
			{ "conv.weight", back.conv, sizeof back.conv, CHOIR_SHAPE(3, 2, 2, 2) },
			{ "fc.bias", back.fc_bias, sizeof back.fc_bias, CHOIR_SHAPE(4) },
			{ "fc.weight", back.fc, sizeof back.fc,
					i == 1 ? CHOIR_SHAPE(4, 3, 3, 3) : CHOIR_SHAPE(4, 27) } };
		for (size_t k = 0; k < 4; k++) {
			const choir_weights_entry *e = choir_weights_list_entry(l, k);
			assert_string_equal(e->name, all[k].name);
			assert_true(chi_shape_equal(&e->shape, &all[k].shape));
			memcpy(all[k].to, bytes + e->first, all[k].bytes);
		}
		assert_memory_equal(&back, &w, sizeof w);
		free(bytes);
		choir_weights_list_free(l);
		choir_strategy_free(s);
	}
}

TEST(keras_names_are_choirs)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	open_net(s);
	const uint64_t before = choir_strategy_hash(s);
	const char *path = files_path("keras.safetensors");
	static const char map[] = "keras\nmodel/* *\n";
	assert_int_equal(choir_strategy_save_mapped(s, path, map, NULL), CHOIR_OK);
	choir_weights_list *l = choir_weights_list_new(path);
	assert_string_equal(choir_weights_list_entry(l, 1)->name, "model/conv/kernel");
	choir_weights_list_free(l);
	assert_int_equal(restore(s, path, map), CHOIR_OK);
	assert_true(choir_strategy_hash(s) == before);
	static const char named[] =
			"{\"fc/bias:0\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
	const float bias[4] = { 1, 2, 3, 4 };
	files_write_safetensors(path, named, bias, sizeof bias);
	assert_int_equal(restore(s, path, "keras"), CHOIR_OK);
	assert_failed(restore(s, path, NULL), CHOIR_INVALID, "none of its 1 tensors");
	choir_strategy_free(s);
}

TEST(a_wrong_export)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	open_net(s);
	const char *path = files_path("no_file");
	static const char *const wrong[][2] = {
		{ "x conv/bias\nx fc/bias\nfc/bias -\n", "no tensor is mapped to variable \"fc/bias\"" },
		{ "conv/bias -\n", "no tensor is mapped to variable \"conv/bias\"" },
		{ "a fc/bias\nfc/bias conv/bias\nconv/bias -\n", NULL },
		{ "x fc/kernel reshape 3,5 axes 1,0\n", "\"fc/kernel\" has 108 elements*[3, 5]" },
		{ "x fc/kernel 2,1,0\n", "\"fc/kernel\" is [27, 4]; 3 axes" },
		{ "x fc/kernel 1,0\n", "flattened image" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		const choir_status status = choir_strategy_save_mapped(s, path, wrong[i][0], NULL);
		if (wrong[i][1] != NULL)
			assert_failed(status, CHOIR_INVALID, wrong[i][1]);
		else
			assert_int_equal(status, CHOIR_OK);
	}
	assert_failed(choir_strategy_save_mapped(s, path, NULL, NULL), CHOIR_INVALID, "the map");
	assert_failed(choir_strategy_save_mapped(s, NULL, "torch", NULL), CHOIR_INVALID, "path");
	choir_strategy_free(s);
}

TEST(an_export_needs_memory)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	open_net(s);
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		const choir_status status =
				choir_strategy_save_mapped(s, files_path("memory"), right[3], NULL);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	}
	choir_strategy_free(s);
}

TEST_GROUP(NULL, files_teardown)
