// The division of a dataset among replicas, as text.
#include "input/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

// Names that the chain reads are not known yet.
static void add_what_is_read(chi_text *t, const choir_distributed_dataset *data, int worker)
{
	enum { MAX_NAMES = 4 };
	const bool all = data->o.workers == 1 || data->o.auto_shard == CHOIR_AUTO_SHARD_DATA ||
			data->o.auto_shard == CHOIR_AUTO_SHARD_OFF;
	if (data->from_function)
		chi_text_add(t, "what its function gives%s", data->streams > 1 ? " for each replica" : "");
	else
		chi_text_add(t,
				all								 ? "everything"
						: data->files_of != NULL ? "files of its own"
												 : "its shard");
	if (data->files_of == NULL)
		return;
	const size_t first = data->files_of[worker], n = data->files_of[worker + 1] - first;
	for (size_t i = 0; i < n && i < MAX_NAMES; i++)
		chi_text_add(t, "%s%s", i == 0 ? ": " : ", ", data->files.path[first + i]);
	if (n > MAX_NAMES)
		chi_text_add(t, " and %zu more", n - MAX_NAMES);
}

static void add_numbers(chi_text *t, int64_t first, int64_t apart, int64_t end)
{
	enum { MAX = 8 };
	for (int64_t i = first, k = 0; i < end; i += apart, k++) {
		chi_text_add(t, k == 0 ? "%" PRId64 : k < MAX ? ", %" PRId64 : ", ...", i);
		if (k == MAX)
			return;
	}
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
	while (b != 0) {
		const int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

// A replica's share of its worker's own stream: its place in the cyclic list of sizes moves by
// shift in each step.
static void add_turns(chi_text *t, const choir_distributed_dataset *data, int64_t id)
{
	enum { MAX = 8 };
	const int64_t n = chi_input_replicas(data), g = data->batch, larger = g % n;
	const int64_t shift = n / data->o.workers, apart = greatest_divisor(n, shift);
	const int64_t min = id % apart, max = n - apart + min, turns = n / apart;
	if (min >= larger || max < larger) { // always the same size
		const int64_t rows = g / n + (max < larger);
		if (rows == 0)
			chi_text_add(t, "nothing: the global batch of %" PRId64 " has too few examples\n", g);
		else
			chi_text_add(t, "the next %" PRId64 " examples of its worker's in each step\n", rows);
		return;
	}
	chi_text_add(t, "the next %" PRId64, g / n + (id < larger));
	for (int64_t k = 1; k < turns && turns <= MAX; k++)
		chi_text_add(t, ", %" PRId64, g / n + ((id + k * shift) % n < larger));
	if (turns > MAX)
		chi_text_add(t, " or %" PRId64, g / n + (id >= larger));
	chi_text_add(t, " examples of its worker's, by turns\n");
}

static void add_pieces(
		chi_text *t, const choir_distributed_dataset *data, int64_t index, int64_t replicas)
{
	const int64_t n = chi_input_replicas(data);
	chi_text_add(t, index + replicas < n ? "pieces " : "piece ");
	add_numbers(t, index, replicas, n);
	chi_text_add(t, " of the %" PRId64 " that each batch is cut into%s\n", n,
			index + replicas < n ? ", by turns" : "");
}

static void add_rows(chi_text *t, const choir_distributed_dataset *data, int64_t id)
{
	const int64_t n = chi_input_replicas(data), g = data->batch, larger = g % n;
	const int64_t rows = g / n + (id < larger);
	const int64_t first = id * (g / n) + (id < larger ? id : larger);
	if (rows == 0)
		chi_text_add(t, "nothing: the global batch of %" PRId64 " has too few examples\n", g);
	else
		chi_text_add(t,
				"examples %" PRId64 " to %" PRId64 " of each global batch of %" PRId64 "\n", first,
				first + rows - 1, g);
}

static void add_replica(chi_text *t, const choir_distributed_dataset *data, int64_t id,
		int64_t index, int64_t replicas)
{
	chi_text_add(t, "  replica %" PRId64 ": ", id);
	switch (data->rebatch) {
	case CHI_REBATCH_AS_THEY_COME:
		chi_text_add(t, "every batch, as it comes\n");
		return;
	case CHI_REBATCH_ELEMENTS:
		chi_text_add(t, "a whole batch in each step\n");
		return;
	case CHI_REBATCH_ELEMENTS_SHARED:
		chi_text_add(t, "batch %" PRId64 " of each %" PRId64 "\n", id, chi_input_replicas(data));
		return;
	case CHI_REBATCH_UNKNOWN:
		add_pieces(t, data, index, replicas);
		return;
	case CHI_REBATCH_UNKNOWN_SHARED:
		add_pieces(t, data, id, chi_input_replicas(data));
		return;
	case CHI_REBATCH_STREAM:
		if (data->o.workers > 1) {
			add_turns(t, data, id);
			return;
		}
		break;
	case CHI_REBATCH_SHARED:
		break;
	}
	add_rows(t, data, id);
}

size_t choir_distributed_dataset_describe(
		const choir_distributed_dataset *data, char *out, size_t size)
{
	chi_text t = { NULL, 0, 0, false };
	if (out != NULL && size > 0)
		out[0] = '\0';
	for (int w = 0; data != NULL && w < data->o.workers; w++) {
		const int64_t first = chi_input_first(data, w), n = chi_input_first(data, w + 1) - first;
		const bool here = w == data->o.worker && data->o.workers > 1;
		chi_text_add(&t, "worker %d reads ", w);
		add_what_is_read(&t, data, w);
		chi_text_add(&t, here ? " (this worker)\n" : "\n");
		for (int64_t i = 0; i < n; i++)
			add_replica(&t, data, first + i, i, n);
	}
	const size_t length = t.failed ? 0 : t.length;
	if (out != NULL && size > 0 && length > 0)
		snprintf(out, size, "%s", t.data);
	chi_text_free(&t);
	return length;
}

bool choir_distributed_dataset_fell_back(const choir_distributed_dataset *data)
{
	return data != NULL && data->fell_back;
}
