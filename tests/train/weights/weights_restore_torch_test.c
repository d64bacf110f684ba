// A convolution, a flattened image and a dense layer with the weights of a library whose images
// and kernels have their channels first, as PyTorch's do: a map brings them in, and the scores are
// those which that library computes, worked out here in its layout.
#include "strategy/strategy.h"
#include "train/files.h"
#include "train/problem.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
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
	choir_layer *net = NULL;
	CHOIR_SCOPE (s)
		net = choir_sequential_new(3,
				(choir_layer *[]){
						choir_conv2d_new("conv", IN, OUT, KERNEL,
								CHOIR_OPTIONS(choir_conv_options, .activation = CHOIR_RELU)),
						choir_flatten_new(), choir_dense_new("fc", FLAT, SCORES, CHOIR_LINEAR) });
	assert_non_null(net);
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

TEST(the_scores_are_the_same)
{
	weights w;
	draw(&w.conv[0][0][0][0], sizeof w / sizeof(float), 0);
	static const char names[] = "conv.weight conv/kernel 2,3,1,0\n*.bias */bias\n";
	char map[200];
	snprintf(map, sizeof map, "%sfc.weight fc/kernel reshape 4,3,3,3 axes 2,3,1,0\n", names);
	assert_true(difference(map, &w) < 1e-5);
	// What only fits its shape gives other scores, which nobody can see from shapes.
	snprintf(map, sizeof map, "%sfc.weight fc/kernel 1,0\n", names);
	assert_true(difference(map, &w) > 0.1);
}

TEST_GROUP(NULL, files_teardown)
