// Batches: the one step that changes what an element is. The source writes its examples straight
// into the rows of the batch.
#include "data/step.h"

#include "base/size.h"

static choir_status batch_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	(void) want; // at least a batch
	return chi_dataset_fill(d->from[0], column, d->spec.batch, got);
}

// The last batch is read, since it may be a short one.
static choir_status batch_seek(choir_dataset *d, int64_t elements)
{
	int64_t before, found;
	if (!chi_int64_multiply(elements - 1, d->spec.batch, &before))
		return chi_dataset_too_short(d, 0, elements);
	CHOIR_TRY(chi_dataset_pass_over(d->from[0], before));
	CHOIR_TRY(chi_dataset_drop(d, 1, &found));
	return found == 1 ? CHOIR_OK : chi_dataset_too_short(d, elements - 1, elements);
}

static const void *batch_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	return chi_dataset_peek(d->from[0], column, first, count);
}

static const chi_step batch_step = {
	.name = "batch",
	.range = chi_no_range,
	.read = batch_read,
	.rewind = chi_rewind_from,
	.peek = batch_peek,
	.free = chi_no_free,
	.seek = batch_seek,
	.files = CHI_FILES_THROUGH,
};

// An axis more is left for the batch, and a batch is no larger than memory can be.
static bool fits(const choir_dataset *from, size_t i, int64_t size)
{
	size_t bytes;
	return from->spec.column[i].shape.rank < CHOIR_MAX_RANK &&
			chi_size_multiply((size_t) size, from->bytes[i], &bytes) && bytes <= PTRDIFF_MAX;
}

choir_dataset *choir_dataset_batch(choir_dataset *from, int64_t size)
{
	if (!chi_dataset_given(from, "batch"))
		return NULL;
	if (size < 1)
		return chi_refuse(from, CHOIR_INVALID, "batch: a size of %lld given, at least 1 needed",
				(long long) size);
	if (from->spec.batch)
		return chi_refuse(from, CHOIR_INVALID,
				"batch: the dataset already comes in batches of %lld, single examples needed",
				(long long) from->spec.batch);
	for (size_t i = 0; i < from->spec.n; i++)
		if (!fits(from, i, size))
			return chi_refuse(from, CHOIR_INVALID,
					"batch: %lld examples of column \"%s\" (rank %d, %zu bytes each) do not "
					"fit in a tensor",
					(long long) size, from->spec.column[i].name, from->spec.column[i].shape.rank,
					from->bytes[i]);
	choir_dataset *d = chi_transform_new(&batch_step, sizeof *d, from);
	if (!d)
		return NULL;
	d->spec.batch = d->spec.global = size;
	if (d->elements != CHOIR_NONE)
		d->elements = d->elements / size + (d->elements % size != 0);
	return d;
}
