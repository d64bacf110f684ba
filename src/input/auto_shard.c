// The files or examples of a worker, by its policy (choir/input.h).
#include "input/input.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/log.h"

static choir_status by_hint(const choir_distributed_dataset *data, choir_dataset *d)
{
	if (chi_dataset_shard_hints(d, data->o.workers, data->o.worker) == CHOIR_OK)
		return CHOIR_OK;
	return chi_error_prefix("distribute_dataset");
}

static choir_status list_files(choir_distributed_dataset *data, const choir_dataset *d)
{
	const int workers = data->o.workers;
	data->files_of = chi_alloc_array((size_t) workers + 1, sizeof *data->files_of);
	CHOIR_TRY(chi_made(data->files_of));
	for (int w = 0; w < workers; w++) {
		CHOIR_TRY(chi_dataset_list_files(d, workers, w, &data->files));
		data->files_of[w + 1] = data->files.n;
	}
	return CHOIR_OK;
}

static void forget_files(choir_distributed_dataset *data)
{
	chi_glob_free(&data->files);
	chi_free(data->files_of);
	data->files_of = NULL;
}

static choir_status by_file(choir_distributed_dataset *data, choir_dataset *d)
{
	CHOIR_TRY(list_files(data, d));
	if (chi_dataset_shard_files(d, data->o.workers, data->o.worker) == CHOIR_OK)
		return CHOIR_OK;
	forget_files(data);
	return chi_error_prefix("distribute_dataset");
}

static choir_status automatically(choir_distributed_dataset *data, choir_dataset *d)
{
	chi_error before;
	chi_error_save(&before);
	const choir_status status = by_file(data, d);
	if (status != CHOIR_NOT_FOUND) // too few files is an error
		return status;
	chi_log(CHOIR_LOG_WARNING,
			"%s; all %d workers read everything and keep the examples of their replicas",
			choir_error(), data->o.workers);
	chi_error_restore(&before);
	data->o.auto_shard = CHOIR_AUTO_SHARD_DATA;
	data->fell_back = true;
	return CHOIR_OK;
}

choir_status chi_input_shard(choir_distributed_dataset *data, choir_dataset *d)
{
	if (data->o.workers == 1)
		return CHOIR_OK;
	if (data->o.auto_shard != CHOIR_AUTO_SHARD_HINT && chi_dataset_has_hint(d))
		return choir_fail(CHOIR_STATE,
				"distribute_dataset: the dataset has a shard stage with CHOIR_SHARD_HINT; the "
				"policy CHOIR_AUTO_SHARD_HINT needed");
	switch (data->o.auto_shard) {
	case CHOIR_AUTO_SHARD_HINT:
		return by_hint(data, d);
	case CHOIR_AUTO_SHARD_FILE:
		return by_file(data, d);
	case CHOIR_AUTO_SHARD_AUTO:
		CHOIR_TRY(automatically(data, d));
		if (!data->fell_back)
			data->o.auto_shard = CHOIR_AUTO_SHARD_FILE;
		return CHOIR_OK;
	case CHOIR_AUTO_SHARD_DATA:
	case CHOIR_AUTO_SHARD_OFF:
		break;
	}
	return CHOIR_OK;
}

choir_auto_shard choir_distributed_dataset_auto_shard(const choir_distributed_dataset *data)
{
	return data == NULL ? CHOIR_AUTO_SHARD_DATA : data->o.auto_shard;
}
