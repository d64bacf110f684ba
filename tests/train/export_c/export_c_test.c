// Layers as C source: what the compiled file computes, against the layer itself with the plain
// kernels, to the bit; what cannot be exported, wrong use, and every allocation that fails.
#include "train/problem.h"

#include "base/alloc.h"
#include "base/status.h"
#include "train/export_c/export_c.h"
#include "train/files.h"
#include "train/layer/layer.h"
#include "test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 4096 };

static bool have_compiler(void)
{
	return system("cc --version >/dev/null 2>&1") == 0;
}

// Compiles path, and gives its function "model_predict"; NULL in *library: it failed.
static void *compile(const char *path, void **library)
{
	static int files;
	char object[512], line[2048];
	snprintf(object, sizeof object, "%s.%d.so", path, files++);
	snprintf(line, sizeof line,
			"cc -std=c11 -O1 -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Werror "
			"-shared "
			"-fPIC -o %s %s -lm",
			object, path);
	assert_int_equal(system(line), 0);
	*library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(*library);
	void *function = dlsym(*library, "model_predict");
	assert_non_null(function);
	return function;
}

static choir_status export_to(choir_layer *l, choir_dtype dtype, choir_shape input, const char *to)
{
	return choir_layer_export_c(l, dtype, input, NULL, to);
}

// Small numbers of both signs, the same in each run.
static float number(int64_t i)
{
	return (float) ((i * 7919 + 13) % 257 - 128) / 64.0f;
}

// Variables that are all zeros or ones would hide what is exchanged.
static void stir(choir_layer *l)
{
	static float values[1 << 16];
	for (int k = 0; k < choir_layer_variables(l); k++) {
		choir_variable *v = choir_layer_variable(l, k);
		const int64_t n = choir_shape_elements(choir_variable_shape(v));
		assert_true(n <= (int64_t) (sizeof values / sizeof values[0]));
		const bool positive = strstr(choir_variable_name(v), "variance") != NULL;
		for (int64_t i = 0; i < n; i++)
			values[i] = positive ? 1 + fabsf(number(i + k)) : number(i + 17 * k) / 8;
		choir_frame *f = choir_frame_new(NULL);
		assert_int_equal(choir_variable_assign(
								 v, choir_borrow(f, CHOIR_F32, *choir_variable_shape(v), values)),
				CHOIR_OK);
		choir_frame_free(f);
	}
}

static void assert_same_bits(const float *got, choir_tensor *expected, int64_t first, int64_t n)
{
	if (expected == NULL)
		fail_msg("%s", choir_error());
	const float *want = (const float *) choir_tensor_data(expected) + first;
	for (int64_t i = 0; i < n; i++)
		if (memcmp(&got[i], &want[i], sizeof *got) != 0)
			fail_msg("element %d: %a, needed %a", (int) i, (double) got[i], (double) want[i]);
}

static void check_numbers(scoped *g, choir_layer *l, choir_shape one)
{
	typedef void predict_fn(const float *, float *, float *);
	static float input[MAX], output[MAX], scratch[4 * MAX];
	choir_shape all = { one.rank + 1, { 1 } };
	void *library;
	if (l == NULL)
		fail_msg("%s", choir_error());
	memcpy(all.dim + 1, one.dim, (size_t) one.rank * sizeof one.dim[0]);
	stir(l);
	for (int64_t i = 0; i < choir_shape_elements(&one); i++)
		input[i] = number(i);
	choir_tensor *y = choir_layer_apply(l, choir_borrow(g->frame, CHOIR_F32, all, input));
	if (y == NULL || export_to(l, CHOIR_F32, one, files_path("model.c")) != CHOIR_OK)
		fail_msg("%s", choir_error());
	predict_fn *function = NULL;
	void *found = compile(files_path("model.c"), &library);
	memcpy(&function, &found, sizeof found);
	function(input, output, scratch);
	assert_same_bits(output, y, 0, choir_shape_elements(choir_tensor_shape(y)));
	dlclose(library);
}

static void check_sequence(scoped *g, choir_layer *l, choir_dtype dtype, int64_t max)
{
	typedef int predict_fn(const void *, int, float *, float *);
	static float output[MAX], scratch[4 * MAX];
	static int32_t words[64];
	static uint8_t bytes[64];
	void *library;
	if (l == NULL)
		fail_msg("%s", choir_error());
	stir(l);
	if (export_to(l, dtype, CHOIR_SHAPE(max), files_path("model.c")) != CHOIR_OK)
		fail_msg("%s", choir_error());
	predict_fn *function = NULL;
	void *found = compile(files_path("model.c"), &library);
	memcpy(&function, &found, sizeof found);
	for (int i = 0; i < max; i++)
		words[i] = bytes[i] = (uint8_t) (i * 5 % 11);
	const void *data = dtype == CHOIR_U8 ? (const void *) bytes : words;
	for (int64_t n = 1; n <= max; n += 2) {
		choir_tensor *y =
				choir_layer_apply(l, choir_borrow(g->frame, dtype, CHOIR_SHAPE(1, n), data));
		const choir_shape *s = choir_tensor_shape(y);
		const int64_t width = s->dim[s->rank - 1];
		assert_int_equal(function(data, (int) n, output, scratch), 0);
		assert_same_bits(output, y, s->rank == 3 ? (n - 1) * width : 0, width);
	}
	assert_int_equal(function(data, 0, output, scratch), -1);
	assert_int_equal(function(data, (int) max + 1, output, scratch), -1);
	bytes[1] = 11; // of an embedding with 11 rows
	words[1] = -1;
	assert_int_equal(function(data, 2, output, scratch), -1);
	dlclose(library);
}

static choir_layer *sequence_of(size_t n, choir_layer *const layers[])
{
	return choir_sequential_new(n, layers);
}

#define SEQUENCE(...) \
	sequence_of(sizeof((choir_layer *[]){ __VA_ARGS__ }) / sizeof(choir_layer *), \
			(choir_layer *[]){ __VA_ARGS__ })

TEST_WITHIN(every_activation, scoped_open, scoped_close)
{
	static const choir_activation all[] = { CHOIR_RELU, CHOIR_TANH, CHOIR_SIGMOID, CHOIR_GELU,
		CHOIR_GELU_TANH, CHOIR_SILU };
	scoped *g = *state;
	choir_layer *layers[12];
	for (size_t i = 0; i < 6; i++) {
		char name[16];
		snprintf(name, sizeof name, "d%zu", i);
		layers[2 * i] = choir_dense_new(name, 20, 20, i % 2 ? CHOIR_LINEAR : all[i]);
		layers[2 * i + 1] = choir_activation_new(all[i]);
		check_numbers(g, layers[2 * i], CHOIR_SHAPE(20));
		check_numbers(g, layers[2 * i + 1], CHOIR_SHAPE(3, 20));
	}
	check_numbers(g, choir_sequential_new(12, layers), CHOIR_SHAPE(2, 20));
}

TEST_WITHIN(convolutions_and_pools, scoped_open, scoped_close)
{
	scoped *g = *state;
	check_numbers(g,
			SEQUENCE(choir_conv2d_new("c1", 4, 6, 3,
							 CHOIR_OPTIONS(choir_conv_options, .groups = 2, .dilation = 2,
									 .padding = 1, .activation = CHOIR_TANH)),
					choir_average_pool2d_new(2, 1, 0)),
			CHOIR_SHAPE(9, 8, 4));
	check_numbers(g,
			SEQUENCE(choir_conv2d_new("c2", 2, 5, 3,
							 CHOIR_OPTIONS(choir_conv_options, .stride = 2,
									 .padding = CHOIR_PADDING_SAME, .bias = CHOIR_OFF)),
					choir_max_pool2d_new(3, 2, 0), choir_flatten_new(),
					choir_dropout_new("drop", 0.5),
					choir_dense_new("c2/out", 2 * 2 * 5, 3, CHOIR_LINEAR)),
			CHOIR_SHAPE(11, 10, 2));
	check_numbers(g,
			choir_conv2d_new("c3", 1, 3, 2,
					CHOIR_OPTIONS(choir_conv_options, .pad_before = { 1, 0 },
							.pad_after = { 2, 3 }, .stride = 3)),
			CHOIR_SHAPE(7, 6, 1));
	check_numbers(g,
			choir_conv1d_new("c4", 4, 6, 3,
					CHOIR_OPTIONS(choir_conv_options, .pad_before = { 2 }, .dilation = 2,
							.groups = 2, .padding = 1, .activation = CHOIR_SILU)),
			CHOIR_SHAPE(11, 4));
	check_numbers(g,
			choir_conv1d_new("c5", 3, 2, 4,
					CHOIR_OPTIONS(choir_conv_options, .padding = CHOIR_PADDING_SAME, .stride = 3,
							.bias = CHOIR_OFF)),
			CHOIR_SHAPE(10, 3));
	for (int64_t c = 1; c <= 3; c += 2)
		check_numbers(g, choir_global_average_pool2d_new(), CHOIR_SHAPE(15, 13, c));
	for (int padding = CHOIR_PADDING_SAME; padding <= 2; padding++)
		check_numbers(g,
				SEQUENCE(choir_max_pool2d_new(3, 2, padding),
						choir_average_pool2d_new(3, 2, padding)),
				CHOIR_SHAPE(14, 9, 2));
}

TEST_WITHIN(norms_and_residuals, scoped_open, scoped_close)
{
	scoped *g = *state;
	check_numbers(g, choir_batch_normalization_new("bn", 6, NULL), CHOIR_SHAPE(5, 6));
	check_numbers(g, choir_layer_normalization_new("ln", 1100, 0), CHOIR_SHAPE(3, 1100));
	check_numbers(g, choir_rms_normalization_new("rms", 21, CHOIR_NONE), CHOIR_SHAPE(21));
	choir_layer *both = choir_residual_new(SEQUENCE(choir_rms_normalization_new("r/norm", 8, 0),
												   choir_dense_new("r/in", 8, 5, CHOIR_SILU),
												   choir_dense_no_bias_new("r/out", 5, 7)),
			choir_dense_no_bias_new("r/beside", 8, 7), CHOIR_GELU);
	check_numbers(g, both, CHOIR_SHAPE(3, 8));
	// One layer twice: one constant, used in both places.
	choir_layer *again = choir_dense_new("again", 7, 7, CHOIR_TANH);
	check_numbers(g,
			SEQUENCE(choir_residual_new(again, NULL, CHOIR_LINEAR), again,
					choir_residual_new(choir_activation_new(CHOIR_TANH), NULL, CHOIR_RELU)),
			CHOIR_SHAPE(7));
	// The names differ, what C would call their variables does not.
	check_numbers(g,
			SEQUENCE(choir_dense_no_bias_new("a/b", 4, 4), choir_dense_no_bias_new("a_b", 4, 4),
					choir_dense_no_bias_new("2", 4, 4)),
			CHOIR_SHAPE(4));
	// As long as a name may be, which is any length.
	char name[300];
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	check_numbers(g, choir_dense_new(name, 4, 4, CHOIR_LINEAR), CHOIR_SHAPE(4));
}

TEST_WITHIN(names_that_clash, scoped_open, scoped_close)
{
	static const char *const names[] = { "x_b_2", "x_b", "x/b", "x.b" };
	const char *given[4];
	chi_export e = { 0 };
	for (int i = 0; i < 4; i++) {
		choir_variable *v = choir_variable_new(names[i], CHOIR_SHAPE(1), NULL);
		assert_non_null(v);
		given[i] = chi_export_variable(&e, v);
		assert_non_null(given[i]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(given[i], given[k]);
	}
	chi_export_free(&e);
}

TEST_WITHIN(sequences, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_layer *token = choir_embedding_new("token", 11, 12);
	choir_layer *attention = choir_self_attention_new("see", 12, 3, CHOIR_ON);
	choir_layer *tied = choir_tied_embedding_new(token);
	check_sequence(g,
			SEQUENCE(token, choir_position_embedding_new("place", 21, 12),
					choir_residual_new(attention, NULL, CHOIR_LINEAR),
					choir_layer_normalization_new("out", 12, 0), tied),
			CHOIR_U8, 19);
	check_sequence(g,
			SEQUENCE(choir_embedding_new("word", 11, 8),
					choir_self_attention_new("all", 8, 2, CHOIR_OFF), choir_last_timestep_new(),
					choir_dense_new("end", 8, 5, CHOIR_RELU)),
			CHOIR_I32, 9);
	choir_layer *two[] = { choir_lstm_new("long", 6, 5), choir_gru_new("gate", 5, 7) };
	check_numbers(g, two[0], CHOIR_SHAPE(8, 6));
	check_numbers(g, choir_sequential_new(2, two), CHOIR_SHAPE(8, 6));
	check_sequence(g,
			SEQUENCE(choir_embedding_new("letter", 11, 6), two[0], two[1],
					choir_dense_no_bias_new("next", 7, 11)),
			CHOIR_U8, 12);
	// At the end a layer that does not work row by row.
	check_sequence(g,
			SEQUENCE(choir_embedding_new("w", 11, 4),
					choir_self_attention_new("whole", 4, 1, CHOIR_ON),
					choir_residual_new(choir_activation_new(CHOIR_TANH), NULL, CHOIR_LINEAR)),
			CHOIR_U8, 5);
}

TEST_WITHIN(scaled_and_standardized, scoped_open, scoped_close)
{
	typedef void predict_fn(const float *, float *, float *);
	static const float x[] = { 1, 50, 200 }, mean[] = { 0.1f, 0.2f, 0.3f };
	static const float deviation[] = { 0.5f, 0, 3 };
	float y[3], scratch[16];
	predict_fn *function = NULL;
	void *library;
	const choir_export_options o = { .size = sizeof o,
		.about = "Three numbers\\\n\nand \x1b more", // which no line of it ends or continues
		.scale = 1 / 255.0,
		.mean = mean,
		.deviation = deviation };
	assert_int_equal(choir_layer_export_c(choir_activation_new(CHOIR_RELU), CHOIR_F32,
							 CHOIR_SHAPE(3), &o, files_path("model.c")),
			CHOIR_OK);
	size_t size;
	char *text = files_read(files_path("model.c"), &size);
	static const char about[] = "// Three numbers?\n//\n// and ? more\n//\n";
	assert_memory_equal(text, about, sizeof about - 1);
	free(text);
	void *found = compile(files_path("model.c"), &library);
	memcpy(&function, &found, sizeof found);
	function(x, y, scratch);
	for (int i = 0; i < 3; i++) {
		const float scaled = x[i] * (float) (1 / 255.0);
		const float by = deviation[i] > 0 ? 1 / deviation[i] : 1;
		const float want = (scaled - mean[i]) * by;
		assert_true(y[i] == (want < 0 ? 0 : want));
	}
	dlclose(library);
}

TEST_WITHIN(missing_numbers_and_units_of_the_data, scoped_open, scoped_close)
{
	typedef void predict_fn(const float *, float *, float *);
	static const float x[] = { NAN, 50 }, mean[] = { 0.1f, 0.2f }, deviation[] = { 0.5f, 3 };
	static const float output_mean[] = { 7.7f, -3 }, output_deviation[] = { 2, 1.3f };
	float y[2], scratch[16];
	predict_fn *function = NULL;
	void *library;
	const choir_export_options o = { .size = sizeof o,
		.mean = mean,
		.deviation = deviation,
		.fill_nan = CHOIR_ON,
		.output_mean = output_mean,
		.output_deviation = output_deviation };
	assert_int_equal(choir_layer_export_c(choir_activation_new(CHOIR_RELU), CHOIR_F32,
							 CHOIR_SHAPE(2), &o, files_path("model.c")),
			CHOIR_OK);
	void *found = compile(files_path("model.c"), &library);
	memcpy(&function, &found, sizeof found);
	function(x, y, scratch);
	const float by = 1 / deviation[1], standardized = (x[1] - mean[1]) * by;
	const float product = standardized * output_deviation[1];
	assert_true(y[0] == output_mean[0]);
	assert_true(y[1] == product + output_mean[1]);
	dlclose(library);
}

TEST_WITHIN(units_of_a_sequence, scoped_open, scoped_close)
{
	typedef int predict_fn(const void *, int, float *, float *);
	static const float mean[] = { 7.5f }, deviation[] = { 2 };
	static const uint8_t bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	const choir_export_options o = {
		.size = sizeof o, .output_mean = mean, .output_deviation = deviation
	};
	choir_layer *token = choir_embedding_new("units", 11, 1);
	choir_layer *const ends[] = { choir_dense_new("units/out", 1, 1, CHOIR_LINEAR),
		choir_residual_new(choir_activation_new(CHOIR_TANH), NULL, CHOIR_LINEAR) };
	for (size_t k = 0; k < 2; k++) {
		choir_layer *l = SEQUENCE(token, ends[k]);
		float y[2], scratch[64];
		stir(l);
		for (int units = 0; units < 2; units++) {
			predict_fn *function = NULL;
			void *library;
			assert_int_equal(choir_layer_export_c(l, CHOIR_U8, CHOIR_SHAPE(8), units ? &o : NULL,
									 files_path("model.c")),
					CHOIR_OK);
			void *found = compile(files_path("model.c"), &library);
			memcpy(&function, &found, sizeof found);
			assert_int_equal(function(bytes, 5, &y[units], scratch), 0);
			dlclose(library);
		}
		const float product = y[0] * deviation[0];
		assert_true(y[1] == product + mean[0]);
	}
}

static void assert_refused(choir_layer *l, choir_dtype dtype, choir_shape input,
		const choir_export_options *o, choir_status status, const char *text)
{
	const char *path = files_path("refused.c");
	assert_int_equal(choir_layer_export_c(l, dtype, input, o, path), status);
	if (!text_holds(choir_error(), text))
		fail_msg("\"%s\" is not in \"%s\"", text, choir_error());
	assert_null(fopen(path, "r"));
}

TEST_WITHIN(what_cannot_be, scoped_open, scoped_close)
{
	choir_layer *dense = choir_dense_new("dense", 4, 4, CHOIR_RELU);
	const choir_shape four = CHOIR_SHAPE(4);
	assert_refused(NULL, CHOIR_F32, four, NULL, CHOIR_INVALID, "NULL");
	assert_refused(dense, CHOIR_F64, four, NULL, CHOIR_INVALID, "f64*[4]");
	assert_refused(dense, CHOIR_F32, CHOIR_SHAPE(0), NULL, CHOIR_INVALID, "f32*[0]");
	assert_refused(
			dense, CHOIR_F32, CHOIR_SHAPE(5), NULL, CHOIR_INVALID, "layer \"dense\":*[.., 4]*[5]");
	assert_refused(dense, CHOIR_U8, CHOIR_SHAPE(2, 2), NULL, CHOIR_INVALID, "u8*[2, 2]");
	assert_refused(choir_dense_new("one", 1, 4, CHOIR_RELU), CHOIR_U8, four, NULL, CHOIR_INVALID,
			"the input is u8*embedding");
	assert_refused(choir_residual_new(choir_embedding_new("thin", 4, 1), NULL, CHOIR_LINEAR),
			CHOIR_I32, four, NULL, CHOIR_INVALID, "i32*input");
	static const chi_layer_kind kind = { .name = "odd" };
	choir_layer *odd = chi_layer_finish(chi_layer_new(sizeof *odd, &kind, "mine"), CHOIR_OK);
	assert_refused(odd, CHOIR_F32, four, NULL, CHOIR_UNSUPPORTED, "layer \"mine\":*exported");
	assert_refused(choir_gru_new("gru", 4, 4), CHOIR_F32, CHOIR_SHAPE(3, 5), NULL, CHOIR_INVALID,
			"layer \"gru\":*[timesteps, 4]*[3, 5]");
	assert_refused(choir_sequential_new(2,
						   (choir_layer *[]){ choir_embedding_new("letters", 5, 4),
								   choir_conv1d_new("over", 4, 4, 3, NULL) }),
			CHOIR_U8, CHOIR_SHAPE(9), NULL, CHOIR_INVALID, "positions");
	assert_refused(choir_embedding_new("words", 4, 4), CHOIR_F32, four, NULL, CHOIR_INVALID,
			"layer \"words\":*embedding");
	assert_refused(choir_conv2d_new("conv", 4, 4, 3, NULL), CHOIR_F32, CHOIR_SHAPE(2, 2, 4), NULL,
			CHOIR_INVALID, "[2, 2, 4]");
	choir_layer *const lacking[] = { choir_bidirectional_new(choir_gru_new("there", 4, 4),
											 choir_gru_new("back", 4, 4)),
		choir_group_normalization_new("groups", 4, 2, 0), choir_upsample_new(2, CHOIR_NEAREST),
		choir_conv3d_new("volume", 4, 4, 1, NULL), choir_conv2d_transpose_new("up", 4, 4, 1, NULL),
		choir_conv1d_transpose_new("up1", 4, 4, 1, NULL),
		choir_conv3d_transpose_new("up3", 4, 4, 1, NULL), choir_max_pool1d_new(2, 0, 0),
		choir_average_pool1d_new(2, 0, 0), choir_max_pool3d_new(2, 0, 0),
		choir_average_pool3d_new(2, 0, 0), choir_global_max_pool_new(),
		choir_global_average_pool_new() };
	for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
		assert_refused(lacking[i], CHOIR_F32, four, NULL, CHOIR_UNSUPPORTED, "cannot be exported");
	assert_refused(choir_flatten_new(), CHOIR_F32, four, NULL, CHOIR_UNSUPPORTED, "export*input");
	assert_refused(
			choir_residual_new(choir_dense_new("wide", 4, 5, CHOIR_LINEAR), NULL, CHOIR_LINEAR),
			CHOIR_F32, four, NULL, CHOIR_INVALID, "[4]*[5]");
	assert_refused(dense, CHOIR_F32, four, CHOIR_OPTIONS(choir_export_options, .name = "a b"),
			CHOIR_INVALID, "\"a b\"");
	assert_refused(dense, CHOIR_F32, four, CHOIR_OPTIONS(choir_export_options, .scale = NAN),
			CHOIR_INVALID, "scale");
	assert_refused(dense, CHOIR_F32, four,
			CHOIR_OPTIONS(choir_export_options, .mean = (const float[4]){ 0 }), CHOIR_INVALID,
			"deviations");
	assert_refused(dense, CHOIR_F32, four,
			CHOIR_OPTIONS(choir_export_options, .fill_nan = CHOIR_ON), CHOIR_INVALID, ".mean");
	assert_refused(dense, CHOIR_F32, four,
			CHOIR_OPTIONS(choir_export_options, .output_mean = (const float[4]){ 0 }),
			CHOIR_INVALID, ".output_deviation");
	assert_int_equal(choir_layer_export_c(dense, CHOIR_F32, four, NULL, NULL), CHOIR_INVALID);
	assert_int_equal(export_to(dense, CHOIR_F32, four, "/no/such/file.c"), CHOIR_IO);
}

TEST_WITHIN(no_memory, scoped_open, scoped_close)
{
	choir_layer *l = SEQUENCE(choir_dense_new("n/in", 6, 8, CHOIR_GELU),
			choir_batch_normalization_new("n/norm", 8, NULL),
			choir_residual_new(choir_dense_no_bias_new("n/out", 8, 8), NULL, CHOIR_RELU));
	const char *path = files_path("scratch_layout.c");
	uint64_t n = 1;
	for (bool done = false; !done; n++) {
		chi_alloc_fail(n, false);
		const choir_status status = export_to(l, CHOIR_F32, CHOIR_SHAPE(6), path);
		done = !chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, done ? CHOIR_OK : CHOIR_NO_MEMORY);
		FILE *f = fopen(path, "r");
		assert_int_equal(f != NULL, done);
		if (f != NULL)
			fclose(f);
	}
	assert_true(n > 30);
}

static int clean(void **state)
{
	(void) state;
	files_remove();
	return 0;
}

TEST_GROUP(NULL, clean)

int main(void)
{
	setenv("CHOIR_KERNELS", "plain", 1);
	if (!have_compiler())
		return 77;
	return tests_run();
}
