// What may be asked of a distributed dataset: what replicas get, how many steps there are, and who
// reads what.
#include "input/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const choir_column *choir_distributed_dataset_column(
		const choir_distributed_dataset *data, size_t i)
{
	return data != NULL && i < data->feed[0].spec->n ? &data->column[i] : NULL;
}

static int64_t steps_of(int64_t items, int64_t each)
{
	return items == CHOIR_NONE ? CHOIR_NONE : items / each + (items % each != 0);
}

int64_t choir_distributed_dataset_cardinality(const choir_distributed_dataset *data)
{
	if (data == NULL)
		return 0;
	const choir_dataset *d = data->feed[0].data;
	if (d->spec.endless)
		return CHOIR_ENDLESS;
	switch (data->split) {
	case CHI_SPLIT_AS_THEY_COME:
	case CHI_SPLIT_UNKNOWN_SHARED:
		return d->elements;
	case CHI_SPLIT_ELEMENTS:
		return data->feeds > 1 ? CHOIR_NONE : steps_of(d->elements, data->strategy->replicas);
	case CHI_SPLIT_ELEMENTS_SHARED:
		return steps_of(d->elements, chi_input_replicas(data));
	case CHI_SPLIT_SHARED:
		return steps_of(d->spec.examples, data->batch);
	case CHI_SPLIT_STREAM:
		return data->o.workers > 1 ? CHOIR_NONE : steps_of(d->spec.examples, data->batch);
	case CHI_SPLIT_UNKNOWN:
		break;
	}
	return data->o.workers > 1 ? CHOIR_NONE : d->elements;
}

choir_auto_shard choir_distributed_dataset_auto_shard(const choir_distributed_dataset *data)
{
	return data == NULL ? CHOIR_AUTO_SHARD_DATA : data->o.auto_shard;
}

bool choir_distributed_dataset_fell_back(const choir_distributed_dataset *data)
{
	return data != NULL && data->fell_back;
}

static const char *what_is_read(const choir_distributed_dataset *data)
{
	if (data->o.workers == 1)
		return "everything";
	switch (data->o.auto_shard) {
	case CHOIR_AUTO_SHARD_FILE:
	case CHOIR_AUTO_SHARD_AUTO:
		return "files of its own";
	case CHOIR_AUTO_SHARD_HINT:
		return "its shard";
	case CHOIR_AUTO_SHARD_DATA:
	case CHOIR_AUTO_SHARD_OFF:
		break;
	}
	return data->feeds > 1 ? "a dataset for each replica" : "everything";
}

// What replica id, its worker's index-th, does with what its worker reads.
static void add_replica(
		chi_text *t, const choir_distributed_dataset *data, int64_t id, int64_t index)
{
	const int64_t n = chi_input_replicas(data), g = data->batch;
	int64_t first = 0, rows = 0;
	chi_text_add(t, "  replica %" PRId64 ": ", id);
	switch (data->split) {
	case CHI_SPLIT_AS_THEY_COME:
		chi_text_add(t, "every batch, as it comes\n");
		return;
	case CHI_SPLIT_ELEMENTS:
		chi_text_add(t, "a whole batch in each step\n");
		return;
	case CHI_SPLIT_ELEMENTS_SHARED:
		chi_text_add(t, "batch %" PRId64 " of each %" PRId64 "\n", id, n);
		return;
	case CHI_SPLIT_UNKNOWN:
	case CHI_SPLIT_UNKNOWN_SHARED:
		chi_text_add(t, "piece %" PRId64 " of the %" PRId64 " that each batch is cut into\n",
				data->split == CHI_SPLIT_UNKNOWN ? index : id, n);
		return;
	case CHI_SPLIT_STREAM:
	case CHI_SPLIT_SHARED:
		break;
	}
	for (int64_t k = 0; k <= id; k++) {
		first += rows;
		rows = g / n + (k < g % n);
	}
	if (rows == 0)
		chi_text_add(t, "nothing: the global batch of %" PRId64 " has too few examples\n", g);
	else if (data->split == CHI_SPLIT_SHARED || data->o.workers == 1)
		chi_text_add(t,
				"examples %" PRId64 " to %" PRId64 " of each global batch of %" PRId64 "\n", first,
				first + rows - 1, g);
	else
		chi_text_add(
				t, "the next %" PRId64 " examples of its worker's, in the first step\n", rows);
}

size_t choir_distributed_dataset_describe(
		const choir_distributed_dataset *data, char *out, size_t size)
{
	chi_text t = { NULL, 0, 0, false };
	if (out != NULL && size > 0)
		out[0] = '\0';
	for (int w = 0; data != NULL && w < data->o.workers; w++) {
		const int64_t end = chi_input_first(data, w + 1);
		chi_text_add(&t, "worker %d reads %s%s\n", w, what_is_read(data),
				w == data->o.worker && data->o.workers > 1 ? " (this worker)" : "");
		for (int64_t id = chi_input_first(data, w); id < end; id++)
			add_replica(&t, data, id, id - chi_input_first(data, w));
	}
	const size_t length = t.failed ? 0 : t.length;
	if (out != NULL && size > 0 && length > 0)
		snprintf(out, size, "%s", t.data);
	chi_text_free(&t);
	return length;
}
