// Shards by files, or where the program gave a hint. A first pass only checks, so a failure
// changes nothing.
#include "data/dataset/take_skip_shard.h"

static choir_status too_few(const choir_dataset *d, int64_t files, int64_t count)
{
	return choir_fail(CHOIR_INVALID,
			"%s: %lld files for %lld workers; sharding by file needs at least 1 for each",
			d->stage->name, (long long) files, (long long) count);
}

// count 0: are there files?
static choir_status check(const choir_dataset *d, int64_t count)
{
	switch (d->stage->files) {
	case CHI_FILES_HERE:
		return d->files < count ? too_few(d, d->files, count) : CHOIR_OK;
	case CHI_FILES_BEFORE:
		if (d->from[0]->elements > 0 && d->from[0]->elements < count)
			return too_few(d, d->from[0]->elements, count);
		return CHOIR_OK;
	case CHI_FILES_THROUGH:
		break;
	}
	if (!d->from[0])
		return choir_fail(CHOIR_NOT_FOUND,
				"sharding by file: \"%s\" reads no files, or hides those "
				"of its source; shard by data instead",
				d->stage->name);
	for (int i = 0; i < 2 && d->from[i]; i++)
		CHOIR_TRY(check(d->from[i], count));
	return CHOIR_OK;
}

static choir_status shard_list(choir_dataset *reader, int64_t count, int64_t index)
{
	choir_dataset **at = &reader->from[0];
	while ((*at)->shuffles)
		at = &(*at)->from[0];
	*at = choir_dataset_shard(*at, count, index);
	return *at ? CHOIR_OK : choir_error_status();
}

static choir_status tell(choir_dataset *d, int64_t count, int64_t index)
{
	if (d->stage->share)
		CHOIR_TRY(d->stage->share(d, count, index));
	for (int i = 0; i < 2 && d->from[i] && d->stage->files == CHI_FILES_THROUGH; i++)
		CHOIR_TRY(tell(d->from[i], count, index));
	return CHOIR_OK;
}

static choir_status apply(choir_dataset *d, int64_t count, int64_t index)
{
	d->elements = d->spec.examples = CHOIR_UNKNOWN_CARDINALITY;
	if (d->stage->files == CHI_FILES_HERE)
		return d->stage->shard_files == NULL ? CHOIR_OK : d->stage->shard_files(d, count, index);
	if (d->stage->files == CHI_FILES_BEFORE)
		return shard_list(d, count, index);
	for (int i = 0; i < 2 && d->from[i]; i++)
		CHOIR_TRY(apply(d->from[i], count, index));
	return CHOIR_OK;
}

choir_status chi_dataset_shard_files(choir_dataset *d, int64_t count, int64_t index)
{
	CHOIR_TRY(check(d, 0));
	CHOIR_TRY(check(d, count));
	CHOIR_TRY(tell(d, count, index));
	return apply(d, count, index);
}

choir_status chi_dataset_list_files(
		const choir_dataset *d, int64_t count, int64_t index, chi_glob *to)
{
	for (int64_t i = index; d->stage->path && i < d->files; i += count)
		CHOIR_TRY(chi_glob_add_path(to, d->stage->path(d, i)));
	for (int i = 0; d->stage->files == CHI_FILES_THROUGH && i < 2 && d->from[i]; i++)
		CHOIR_TRY(chi_dataset_list_files(d->from[i], count, index, to));
	return CHOIR_OK;
}

choir_status chi_dataset_all_files(const choir_dataset *d, chi_glob *to)
{
	for (int64_t i = 0; d->stage->path && i < d->files; i++)
		CHOIR_TRY(chi_glob_add_path(to, d->stage->path(d, i)));
	for (int i = 0; i < 2 && d->from[i]; i++)
		CHOIR_TRY(chi_dataset_all_files(d->from[i], to));
	return CHOIR_OK;
}

bool chi_dataset_has_hint(const choir_dataset *d)
{
	return d && (d->hint || chi_dataset_has_hint(d->from[0]) || chi_dataset_has_hint(d->from[1]));
}

choir_status chi_dataset_shard_hints(choir_dataset *d, int64_t count, int64_t index)
{
	if (!chi_dataset_has_hint(d))
		return CHOIR_OK;
	if (d->stage->share)
		CHOIR_TRY(d->stage->share(d, count, index));
	if (d->hint)
		chi_dataset_take_hint(d, count, index);
	for (int i = 0; i < 2; i++)
		CHOIR_TRY(chi_dataset_shard_hints(d->from[i], count, index));
	return CHOIR_OK;
}
