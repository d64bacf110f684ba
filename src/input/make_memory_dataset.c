// The first worker's arrays are sent once, as a dataset on each worker.
#include "input/input.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "collective/process_group.h"
#include "strategy/strategy.h"

static uint64_t hash_columns(size_t n, const choir_column columns[])
{
	uint64_t sum = n;
	for (size_t i = 0; i < n; i++) {
		sum = chi_hash_mix(sum ^ chi_hash_text(columns[i].name));
		sum = chi_hash_mix(sum ^ (uint64_t) columns[i].dtype);
		for (int k = 0; k < columns[i].shape.rank; k++)
			sum = chi_hash_mix(sum ^ (uint64_t) columns[i].shape.dim[k]);
	}
	return sum;
}

static choir_status check_columns(choir_strategy *s, size_t n, const choir_column columns[],
		size_t bytes[], int64_t *examples)
{
	static const char what[] = "arrays";
	int64_t own = *examples,
			*all = chi_alloc_array((size_t) s->process_group->workers, sizeof *all);
	choir_status status = chi_made(all);
	if (status == CHOIR_OK)
		status = chi_columns_check(what, false, n, columns, bytes);
	for (size_t i = 0; status == CHOIR_OK && s->process_group->worker == 0 && i < n; i++)
		if (columns[i].data == NULL || own < 0)
			status = choir_fail(CHOIR_INVALID,
					"arrays: %lld examples given, and column \"%s\" has %s; the first worker "
					"needs the data of all columns",
					(long long) own, columns[i].name, columns[i].data ? "data" : "no data");
	status = chi_input_check_creation(s, status, status == CHOIR_OK ? hash_columns(n, columns) : 0,
			"columns differ from worker 0's");
	if (status == CHOIR_OK)
		status = chi_process_group_all_gather(
				s->process_group, &own, sizeof own, all, "the number of examples");
	if (status == CHOIR_OK)
		*examples = all[0];
	chi_free(all);
	return status;
}

// The first worker has the data: its *memory stays NULL.
static choir_status reserve(
		choir_strategy *s, size_t n, const size_t bytes[], int64_t examples, char **memory)
{
	size_t total = 0, size;
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < n; i++)
		if (!chi_size_multiply(bytes[i], (size_t) examples, &size) ||
				!chi_size_add(total, size, &total))
			status = choir_fail(CHOIR_INVALID, "arrays: the examples do not fit in memory");
	if (status == CHOIR_OK && s->process_group->worker > 0) {
		*memory = chi_alloc(total);
		status = chi_made(*memory);
	}
	return chi_input_check_creation(s, status, total, "arrays have another size than worker 0's");
}

static choir_status spread(choir_strategy *s, size_t n, choir_column copy[], const size_t bytes[],
		int64_t examples, char *memory)
{
	for (size_t i = 0; i < n; i++) {
		const size_t size = bytes[i] * (size_t) examples;
		void *data = memory == NULL ? (void *) (uintptr_t) copy[i].data : memory;
		CHOIR_TRY(chi_process_group_broadcast(
				s->process_group, 0, data, size, "column \"%s\"", copy[i].name));
		copy[i].data = data;
		if (memory != NULL)
			memory += size;
	}
	return CHOIR_OK;
}

choir_dataset *choir_strategy_make_memory_dataset(
		choir_strategy *s, int64_t examples, size_t n, const choir_column columns[])
{
	choir_column copy[CHI_MAX_COLUMNS];
	size_t bytes[CHI_MAX_COLUMNS];
	char *memory = NULL;
	if (chi_strategy_check(s) != CHOIR_OK ||
			chi_context_need_cross(s, "make_memory_dataset") != CHOIR_OK)
		return NULL;
	if (s->process_group == NULL)
		return choir_memory_dataset_new(examples, n, columns, true);
	choir_status status = check_columns(s, n, columns, bytes, &examples);
	if (status == CHOIR_OK)
		status = reserve(s, n, bytes, examples, &memory);
	if (status == CHOIR_OK) {
		memcpy(copy, columns, n * sizeof *copy);
		status = spread(s, n, copy, bytes, examples, memory);
	}
	choir_dataset *d =
			status == CHOIR_OK ? choir_memory_dataset_new(examples, n, copy, true) : NULL;
	chi_free(memory);
	return d;
}
