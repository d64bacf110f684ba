// Recurrent layers with weights of PyTorch: nn.LSTM and nn.GRU of two layers in both directions, 3
// inputs and 2 units. Their results are those that PyTorch 2 computed once, with these weights:
//     state = {k: a piece of pattern(0), in the order of state_dict}
//     net(torch.from_numpy(pattern(5)).reshape(2, 3, 3))[0]
// where net is nn.LSTM(3, 2, 2, bidirectional=True, batch_first=True).
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

enum { TENSORS = 16 };

static const char *const level[] = { "l0", "l0_reverse", "l1", "l1_reverse" };
static const char *const word[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };

typedef struct {
	int gates;
	float results[OUT];
} kind;

static int columns(int tensor)
{
	const int in = tensor < 8 ? IN : 2 * UNITS;
	return tensor % 4 == 0 ? in : tensor % 4 == 1 ? UNITS : 1;
}

static int elements(const kind *k, int tensor)
{
	return k->gates * UNITS * columns(tensor);
}

static void add_tensor(chi_text *header, const kind *k, int tensor, const char *name, int at)
{
	chi_text_add(header, "%s\"%s_%s\":{\"dtype\":\"F32\",\"shape\":[%d",
			header->length > 1 ? "," : "", name, level[tensor / 4], k->gates * UNITS);
	if (columns(tensor) > 1)
		chi_text_add(header, ",%d", columns(tensor));
	chi_text_add(header, "],\"data_offsets\":[%d,%d]}", 4 * at, 4 * (at + elements(k, tensor)));
}

// Without those of leave_out's name.
static const char *write_torch(const kind *k, const char *module, const char *leave_out)
{
	const char *path = files_path("recurrent.safetensors");
	chi_text header = { 0 };
	float data[1000];
	int at = 0;
	chi_text_add(&header, "{");
	for (int i = 0; i < TENSORS; i++) {
		char name[40];
		snprintf(name, sizeof name, "%s%s", module, word[i % 4]);
		if (leave_out != NULL && strcmp(word[i % 4], leave_out) == 0)
			continue;
		add_tensor(&header, k, i, name, at);
		for (int j = 0; j < elements(k, i); j++, at++)
			data[at] = pattern(at);
	}
	chi_text_add(&header, "}");
	assert_false(header.failed);
	files_write_safetensors(path, header.data, data, (size_t) at * sizeof(float));
	chi_text_free(&header);
	return path;
}

static choir_layer *cell(const kind *k, const char *name, int64_t in)
{
	return k->gates == 4 ? choir_lstm_new(name, in, UNITS) : choir_gru_new(name, in, UNITS);
}

// Layers by these names, in the order of level.
static choir_layer *open_net(choir_strategy *s, const kind *k, const char *const name[])
{
	choir_layer *net = NULL;
	CHOIR_SCOPE (s)
		net = choir_sequential_new(2,
				(choir_layer *[]){
						choir_bidirectional_new(cell(k, name[0], IN), cell(k, name[1], IN)),
						choir_bidirectional_new(
								cell(k, name[2], 2 * UNITS), cell(k, name[3], 2 * UNITS)) });
	assert_non_null(net);
	return net;
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

static const kind kinds[] = {
	{ 4,
			{ 0.105135523f, -0.0851068795f, 0.182820573f, -0.180567443f, 0.173258021f,
					-0.130169868f, 0.140007973f, -0.218810871f, 0.214586511f, -0.127001852f,
					0.0909804329f, -0.197800905f, 0.102409989f, -0.110855512f, 0.180543438f,
					-0.203495458f, 0.177543908f, -0.113467596f, 0.174261481f, -0.192707449f,
					0.220065981f, -0.099433735f, 0.107994966f, -0.177968904f } },
	{ 3,
			{ 0.0143150762f, -0.163806587f, 0.398695052f, -0.0605114698f, -0.0490938053f,
					-0.273790896f, 0.381417185f, 0.0490355045f, -0.017795302f, -0.382917881f,
					0.304203868f, 0.0766940415f, -0.0169997364f, -0.222445399f, 0.440407783f,
					0.0127374753f, 0.0605595633f, -0.292621613f, 0.19286561f, 0.0137232039f,
					0.13326934f, -0.297707468f, 0.0626143143f, 0.0197069198f } }
};
enum { KINDS = 2 };

static const char *const plain[] = { "rnn", "rnn/l0_reverse", "rnn/l1", "rnn/l1_reverse" };
static const char *const named[] = { "a/rnn/l0", "back", "top", "top/l0_reverse" };

TEST(results_are_those_of_torch)
{
	for (int i = 0; i < KINDS; i++) {
		choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
		choir_layer *net = open_net(s, &kinds[i], plain);
		must(restore(s, write_torch(&kinds[i], "rnn.", NULL), "torch\n"));
		assert_results(net, kinds[i].gates == 4 ? "lstm" : "gru", kinds[i].results);
		choir_strategy_free(s);
	}
}

TEST(lines_rename_layers)
{
	static const char map[] = "torch\nrnn.*_l0_reverse back.*_l0\nrnn.*_l1 top.*_l0\n"
							  "rnn.*_l1_reverse top.*_l0_reverse\nrnn.*_l0 a.rnn.*_l0\n";
	for (int i = 0; i < KINDS; i++) {
		choir_strategy *s = mirrored("cpu:0", 1);
		choir_layer *net = open_net(s, &kinds[i], named);
		must(restore(s, write_torch(&kinds[i], "rnn.", NULL), map));
		assert_results(net, kinds[i].gates == 4 ? "lstm" : "gru", kinds[i].results);
		choir_strategy_free(s);
	}
}

static int entry_of(const choir_weights_list *l, const char *name)
{
	for (size_t i = 0; i < choir_weights_list_entries(l); i++)
		if (strcmp(choir_weights_list_entry(l, i)->name, name) == 0)
			return (int) i;
	fail_msg("no tensor %s", name);
	return 0;
}

// A GRU's file comes back as it was; of an LSTM's two biases, the sum and zeros.
static void assert_file(const char *path, const kind *k)
{
	choir_weights_list *l = choir_weights_list_new(path);
	size_t size;
	char *bytes = files_read(path, &size), name[60];
	assert_non_null(l);
	assert_int_equal(choir_weights_list_entries(l), TENSORS);
	for (int i = 0, at = 0; i < TENSORS; at += elements(k, i), i++) {
		snprintf(name, sizeof name, "rnn.%s_%s", word[i % 4], level[i / 4]);
		const choir_weights_entry *e = choir_weights_list_entry(l, (size_t) entry_of(l, name));
		const bool summed = k->gates == 4 && i % 4 == 2, zero = k->gates == 4 && i % 4 == 3;
		assert_int_equal(e->bytes, (size_t) elements(k, i) * sizeof(float));
		for (int j = 0; j < elements(k, i); j++) {
			float value;
			memcpy(&value, bytes + e->first + (size_t) j * sizeof value, sizeof value);
			const float other = summed ? pattern(at + elements(k, i) + j) : 0;
			assert_true(value == (zero ? 0 : pattern(at + j) + other));
		}
	}
	free(bytes);
	choir_weights_list_free(l);
}

TEST(an_export_is_the_inverse_of_an_import)
{
	for (int i = 0; i < KINDS; i++) {
		choir_strategy *s = mirrored("cpu:0", 1), *t = mirrored("cpu:0", 1);
		const char *path = files_path("out.safetensors");
		open_net(s, &kinds[i], plain);
		open_net(t, &kinds[i], plain);
		must(restore(s, write_torch(&kinds[i], "rnn.", NULL), "torch\n"));
		must(choir_strategy_save_mapped(s, path, "torch\n", NULL));
		assert_file(path, &kinds[i]);
		must(restore(t, path, "torch\n"));
		assert_true(choir_strategy_hash(s) == choir_strategy_hash(t));
		choir_strategy_free(t);
		choir_strategy_free(s);
	}
}

TEST(what_is_missing_or_has_no_place_is_refused)
{
	static const char projected[] = "{\"rnn.weight_hr_l0\":{\"dtype\":\"F32\",\"shape\":[1,2],"
									"\"data_offsets\":[0,8]}}";
	static const char twice[] = "torch\nrnn.bias_hh_l0 rnn.bias_ih_l0\n";
	const float data[2] = { 0 };
	for (int i = 0; i < KINDS; i++) {
		choir_strategy *s = mirrored("cpu:0", 1);
		open_net(s, &kinds[i], plain);
		const uint64_t before = choir_strategy_hash(s);
		assert_failed(restore(s, write_torch(&kinds[i], "rnn.", "bias_hh"), "torch\n"),
				CHOIR_INVALID,
				i == 0 ? "\"rnn.bias_ih_l0\"*two biases*\"rnn/bias\""
					   : "\"rnn/l0_reverse/recurrent_bias\"*of the same layer");
		assert_failed(restore(s, write_torch(&kinds[i], "rnn.", NULL),
							  "torch\nrnn.bias_ih_l0 -\nrnn.bias_hh_l0 -\n"),
				CHOIR_INVALID, "\"rnn/bias\"*of the same layer");
		assert_failed(restore(s, write_torch(&kinds[i], "rnn.", NULL), twice), CHOIR_INVALID,
				"are both for variable \"rnn/bias\"");
		const char *path = files_path("projected.safetensors");
		files_write_safetensors(path, projected, data, sizeof data);
		assert_failed(restore(s, path, "torch\n"), CHOIR_UNSUPPORTED, "rnn.weight_hr_l0*proj");
		assert_true(choir_strategy_hash(s) == before);
		choir_strategy_free(s);
	}
}

TEST(an_export_needs_memory)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	open_net(s, &kinds[1], plain);
	CHOIR_SCOPE (s)
		assert_non_null(choir_lstm_new("more", 1, 1));
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		const choir_status status =
				choir_strategy_save_mapped(s, files_path("memory"), "torch\n", NULL);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	}
	failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		const choir_status status = restore(s, files_path("memory"), "torch\n");
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	}
	choir_strategy_free(s);
}

TEST_GROUP(NULL, files_teardown)
