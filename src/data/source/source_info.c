// Sums of dropped and skipped rows.
#include "choir/source.h"

#include <string.h>

#include "data/stage.h"

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
