// Recurrent layers with weights of Keras: Bidirectional(LSTM) and Bidirectional(GRU) of 3 inputs
// and 2 units, with the names of Keras 3. Their results are those that Keras computed once:
//     net = keras.Sequential(
//         [keras.Input((3, 3)), Bidirectional(GRU(2, return_sequences=True))])
//     net.set_weights(pieces of pattern(0), in the order of net.weights)
//     net(pattern(5).reshape(2, 3, 3))
#include "base/alloc.h"
#include "base/text.h"
#include "strategy/strategy.h"
#include "train/files.h"
#include "train/problem.h"
#include "train/weights/recurrent_results.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 6 };

typedef struct {
	const char *cell;
	int gates;
	float results[OUT];
} kind;
enum { LSTM, GRU, KINDS };

static const kind kinds[KINDS] = {
	{ "lstm", 4,
			{ 0.086297214f, 0.110360898f, -0.172565684f, 0.118167169f, 0.105348319f, -0.200777322f,
					-0.174398571f, 0.0650128052f, 0.0673329309f, -0.118016668f, -0.168791816f,
					-0.0524180122f, 0.0487719886f, -0.105244346f, -0.223733157f, -0.00456030387f,
					0.0494270287f, 0.0939188674f, -0.192158341f, -0.0327191316f, 0.0928668603f,
					0.169393495f, -0.115466148f, 0.0428225473f } },
	{ "gru", 3,
			{ 0.0019788302f, 0.225206465f, 0.137294173f, 0.251703829f, -0.0213501714f,
					0.104157604f, -0.170314819f, 0.368984759f, 0.267469883f, -0.00306703895f,
					-0.128228307f, 0.573386014f, 0.28557241f, -0.0596764907f, 0.0589681566f,
					0.606473684f, 0.163487181f, 0.0619546473f, 0.197296202f, 0.280091643f,
					0.0955672562f, 0.208882496f, 0.158645108f, 0.157623455f } },
};

// Of tensor i: kernel, recurrent kernel and bias of the forward layer, then of the backward layer.
static int rows_of(const kind *k, int i)
{
	const int rows[] = { IN, UNITS, k->gates == 3 ? 2 : 1 };
	return rows[i % 3];
}

static int elements(const kind *k, int i)
{
	return rows_of(k, i) * k->gates * UNITS;
}

static void print_name(const kind *k, int i, char name[100])
{
	static const char *const words[] = { "kernel", "recurrent_kernel", "bias" };
	snprintf(name, 100, "net/bidirectional/%s_%s/%s_cell/%s", i < 3 ? "forward" : "backward",
			k->cell, k->cell, words[i % 3]);
}

// bias_rows: of a bias, instead of rows_of; 0: no bias.
static const char *write_keras(const kind *k, int bias_rows)
{
	const char *path = files_path("keras.safetensors");
	chi_text header = { 0 };
	float data[200];
	char name[100];
	int end = 0;
	chi_text_add(&header, "{");
	for (int i = 0; i < TENSORS; i++) {
		const int rows = i % 3 == 2 ? bias_rows : rows_of(k, i), columns = k->gates * UNITS;
		const int begin = end;
		if (rows == 0)
			continue;
		end += rows * columns;
		print_name(k, i, name);
		chi_text_add(&header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", i > 0 ? "," : "", name);
		if (rows > 1)
			chi_text_add(&header, "%d,", rows);
		chi_text_add(&header, "%d],\"data_offsets\":[%d,%d]}", columns, 4 * begin, 4 * end);
	}
	chi_text_add(&header, "}");
	assert_false(header.failed);
	for (int i = 0; i < end; i++)
		data[i] = pattern(i);
	files_write_safetensors(path, header.data, data, (size_t) end * sizeof *data);
	chi_text_free(&header);
	return path;
}

static choir_layer *open_net(choir_strategy *s, const kind *k)
{
	choir_layer *net = NULL;
	CHOIR_SCOPE (s)
		net = k->gates == 4 ? choir_bidirectional_new(choir_lstm_new("ahead", IN, UNITS),
									  choir_lstm_new("back", IN, UNITS))
							: choir_bidirectional_new(choir_gru_new("ahead", IN, UNITS),
									  choir_gru_new("back", IN, UNITS));
	assert_non_null(net);
	return net;
}

// cell: the lines name it, so that an export has it, too.
static const char *map_of(const kind *k, bool cell, char map[400])
{
	char part[40] = "";
	if (cell)
		snprintf(part, sizeof part, "%s_cell/", k->cell);
	snprintf(map, 400,
			"keras\nnet/bidirectional/forward_%s/%s* ahead/*\n"
			"net/bidirectional/backward_%s/%s* back/*\n",
			k->cell, part, k->cell, part);
	return map;
}

static choir_status restore(choir_strategy *s, const char *path, const char *map)
{
	return choir_strategy_restore_partial(
			s, path, CHOIR_OPTIONS(choir_restore_options, .map = map));
}

static void must(choir_status status)
{
	if (status != CHOIR_OK)
		fail_msg("%s", choir_error());
}

TEST(results_are_those_of_keras)
{
	char map[400];
	for (int i = 0; i < 2 * KINDS; i++) {
		const kind *k = &kinds[i / 2];
		choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
		choir_layer *net = open_net(s, k);
		must(restore(s, write_keras(k, rows_of(k, 2)), map_of(k, i % 2 == 0, map)));
		assert_results(net, k->cell, k->results);
		choir_strategy_free(s);
	}
}

// The file comes back as it was, but for the order of tensors.
TEST(an_export_is_the_inverse_of_an_import)
{
	for (int i = 0; i < KINDS; i++) {
		const kind *k = &kinds[i];
		choir_strategy *s = mirrored("cpu:0", 1);
		const char *path = files_path("out.safetensors");
		char map[400], name[100];
		size_t size;
		open_net(s, k);
		must(restore(s, write_keras(k, rows_of(k, 2)), map_of(k, true, map)));
		must(choir_strategy_save_mapped(s, path, map, NULL));
		choir_weights_list *l = choir_weights_list_new(path);
		char *bytes = files_read(path, &size);
		assert_non_null(l);
		assert_int_equal(choir_weights_list_entries(l), TENSORS);
		for (int t = 0, at = 0; t < TENSORS; at += elements(k, t), t++) {
			size_t e = 0;
			print_name(k, t, name);
			while (strcmp(choir_weights_list_entry(l, e)->name, name) != 0)
				assert_true(++e < TENSORS);
			const choir_weights_entry *entry = choir_weights_list_entry(l, e);
			assert_int_equal(entry->shape.rank, rows_of(k, t) > 1 ? 2 : 1);
			assert_int_equal(entry->bytes, (size_t) elements(k, t) * sizeof(float));
			for (int j = 0; j < elements(k, t); j++) {
				float value;
				memcpy(&value, bytes + entry->first + (size_t) j * sizeof value, sizeof value);
				assert_true(value == pattern(at + j));
			}
		}
		free(bytes);
		choir_weights_list_free(l);
		choir_strategy_free(s);
	}
}

TEST(a_gru_without_reset_after_is_refused)
{
	char map[400];
	const kind *k = &kinds[GRU];
	choir_strategy *s = mirrored("cpu:0", 1);
	open_net(s, k);
	const uint64_t before = choir_strategy_hash(s);
	map_of(k, true, map);
	assert_failed(restore(s, write_keras(k, 1), map), CHOIR_INVALID,
			"gru_cell/bias\"*without reset_after*\"ahead/bias\"*\"ahead/recurrent_bias\"*[2, 6]");
	assert_failed(restore(s, write_keras(k, 3), map), CHOIR_INVALID, "[3, 6]*bias\"*[6]");
	assert_true(choir_strategy_hash(s) == before);
	must(restore(s, write_keras(k, 0), map)); // a layer without biases
	choir_strategy_free(s);
}

TEST(an_export_needs_memory)
{
	char map[400];
	const kind *k = &kinds[GRU];
	choir_strategy *s = mirrored("cpu:0", 1);
	open_net(s, k);
	map_of(k, false, map);
	for (int restores = 0; restores < 2; restores++) {
		bool failed = true;
		for (uint64_t n = 1; failed; n++) {
			chi_alloc_fail(n, false);
			const choir_status status = restores
					? restore(s, files_path("memory"), map)
					: choir_strategy_save_mapped(s, files_path("memory"), map, NULL);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		}
	}
	choir_strategy_free(s);
}

TEST_GROUP(NULL, files_teardown)
