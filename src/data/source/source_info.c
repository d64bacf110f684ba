// Queries about the sources of a chain.
#include "choir/source.h"

#include <string.h>

#include "data/source/csv/categories.h"
#include "data/stage.h"

static const chi_categories *categories_of(const choir_dataset *d, const char *column)
{
	const size_t i = d && column ? chi_column_find(d, column) : 0;
	return d && column && i < d->spec.n ? d->spec.categories[i] : NULL;
}

size_t choir_dataset_categories(const choir_dataset *d, const char *column)
{
	const chi_categories *c = categories_of(d, column);
	return c ? chi_categories_count(c) : 0;
}

const char *choir_dataset_category(const choir_dataset *d, const char *column, int64_t i)
{
	const chi_categories *c = categories_of(d, column);
	return c && i >= 0 ? chi_categories_text(c, (size_t) i) : NULL;
}

int64_t choir_dataset_dropped(const choir_dataset *d)
{
	if (!d)
		return 0;
	return (int64_t) chi_atomic64_load(&d->dropped) + choir_dataset_dropped(d->from[0]) +
			choir_dataset_dropped(d->from[1]);
}

int64_t choir_dataset_skipped(const choir_dataset *d)
{
	if (!d)
		return 0;
	return (int64_t) chi_atomic64_load(&d->skipped) + choir_dataset_skipped(d->from[0]) +
			choir_dataset_skipped(d->from[1]);
}
