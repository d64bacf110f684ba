// The source writes straight into the batch's rows.
#include "data/dataset/batch.h"

#include "base/size.h"
#include "tensor/tensor.h"

typedef struct {
	choir_dataset base;
	int64_t done;
} batch;

static choir_status check_ragged_values(const batch *b, void *const column[], int64_t examples)
{
	const choir_dataset *d = &b->base;
	for (size_t i = 0; i < d->spec.n; i++) {
		const chi_ragged_value *value = column[i];
		if (!value || !chi_shape_varies(&d->spec.column[i].shape))
			continue;
		for (int64_t k = 1; k < examples; k++)
			if (!chi_shape_equal(&value[k].shape, &value[0].shape))
				return choir_fail(CHOIR_INVALID,
						"batch: batch %lld: example %lld of column \"%s\" has another shape than "
						"the first; use padded_batch",
						(long long) b->done, (long long) k, d->spec.column[i].name);
	}
	return CHOIR_OK;
}

static choir_status batch_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	(void) want;
	CHOIR_TRY(chi_dataset_fill(d->from[0], column, d->spec.batch, got));
	if (d->spec.full && *got < d->spec.batch)
		return CHOIR_END;
	CHOIR_TRY(check_ragged_values((batch *) d, column, *got));
	((batch *) d)->done++;
	return CHOIR_OK;
}

static choir_status batch_rewind(choir_dataset *d)
{
	((batch *) d)->done = 0;
	return chi_rewind_from(d);
}

choir_status chi_batch_seek(choir_dataset *d, int64_t elements)
{
	int64_t before;
	if (!chi_int64_multiply(elements - 1, d->spec.batch, &before))
		return chi_dataset_too_short(d, 0, elements);
	CHOIR_TRY(chi_dataset_pass_over(d->from[0], before));
	return chi_dataset_read_over(d, elements - 1, elements);
}

static choir_status batch_seek(choir_dataset *d, int64_t elements)
{
	CHOIR_TRY(chi_batch_seek(d, elements));
	((batch *) d)->done = elements;
	return CHOIR_OK;
}

static const chi_stage batch_stage = {
	.name = "batch",
	.read = batch_read,
	.rewind = batch_rewind,
	.peek = chi_peek_from,
	.seek = batch_seek,
};

static bool fits(const choir_dataset *from, size_t i, int64_t size)
{
	size_t bytes;
	return from->spec.column[i].shape.rank < CHOIR_MAX_RANK &&
			chi_size_multiply((size_t) size, from->bytes[i], &bytes) && bytes <= PTRDIFF_MAX;
}

choir_status chi_batch_check(const choir_dataset *from, const char *what, int64_t size)
{
	if (!chi_dataset_given(from, what))
		return choir_error_status();
	if (size < 1)
		return choir_fail(CHOIR_INVALID, "%s: batch size %lld given; at least 1 needed", what,
				(long long) size);
	if (from->spec.batch)
		return choir_fail(CHOIR_INVALID,
				"%s: the dataset already has batches of %lld; single examples needed", what,
				(long long) from->spec.batch);
	for (size_t i = 0; i < from->spec.n; i++)
		if (!fits(from, i, size))
			return choir_fail(CHOIR_INVALID,
					"%s: %lld examples of column \"%s\" (rank "
					"%d, %zu bytes each) do not fit in a tensor",
					what, (long long) size, from->spec.column[i].name,
					from->spec.column[i].shape.rank, from->bytes[i]);
	return CHOIR_OK;
}

void chi_batch_count(choir_dataset *d, int64_t size, bool drop_remainder)
{
	int64_t n = d->elements;
	d->spec.batch = d->spec.global = size;
	d->spec.full = drop_remainder;
	if (n == CHOIR_UNKNOWN_CARDINALITY)
		return;
	d->elements = n / size + (!drop_remainder && n % size != 0);
	if (drop_remainder)
		d->spec.examples = d->elements * size;
}

static choir_dataset *make(choir_dataset *from, int64_t size, bool drop_remainder)
{
	if (chi_batch_check(from, "batch", size) != CHOIR_OK)
		return chi_dataset_discard(from);
	batch *b = chi_transform_new(&batch_stage, sizeof *b, from);
	if (!b)
		return NULL;
	chi_batch_count(&b->base, size, drop_remainder);
	return &b->base;
}

choir_dataset *choir_dataset_batch(choir_dataset *from, int64_t size)
{
	return make(from, size, false);
}

choir_dataset *choir_dataset_batch_drop_remainder(choir_dataset *from, int64_t size)
{
	return make(from, size, true);
}

typedef struct {
	choir_dataset base;
	int64_t staged, taken;
} unbatch;

static choir_status unbatch_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	unbatch *u = (unbatch *) d;
	if (u->taken == u->staged) {
		u->taken = u->staged = 0;
		CHOIR_TRY(chi_dataset_read(
				d->from[0], u->base.rows.column, d->from[0]->spec.batch, &u->staged));
	}
	int64_t left = u->staged - u->taken;
	*got = want < left ? want : left;
	CHOIR_TRY(chi_row_buffer_copy(d, column, &u->base.rows, u->taken, *got));
	u->taken += *got;
	return CHOIR_OK;
}

static choir_status unbatch_rewind(choir_dataset *d)
{
	((unbatch *) d)->staged = ((unbatch *) d)->taken = 0;
	return chi_rewind_from(d);
}

static choir_status unbatch_seek(choir_dataset *d, int64_t elements)
{
	choir_dataset *from = d->from[0];
	const int64_t unit = from->spec.batch, whole = from->ragged ? 0 : (elements - 1) / unit;
	CHOIR_TRY(chi_dataset_pass_over(from, whole));
	return chi_dataset_read_over(d, whole * unit, elements);
}

static const chi_stage unbatch_stage = {
	.name = "unbatch",
	.read = unbatch_read,
	.rewind = unbatch_rewind,
	.seek = unbatch_seek,
};

choir_dataset *choir_dataset_unbatch(choir_dataset *from)
{
	if (!chi_dataset_given(from, "unbatch"))
		return NULL;
	if (!from->spec.batch)
		return chi_refuse(
				from, CHOIR_INVALID, "unbatch: the dataset has single examples; batches needed");
	unbatch *u = chi_transform_new(&unbatch_stage, sizeof *u, from);
	if (!u)
		return NULL;
	choir_dataset *d = &u->base;
	d->spec.batch = 0;
	d->spec.global = CHOIR_UNKNOWN_CARDINALITY;
	d->spec.full = d->ragged = false;
	d->elements = d->spec.examples;
	if (!chi_row_buffer_new(d, from->spec.batch, &u->base.rows))
		return chi_dataset_discard(d);
	return d;
}

int64_t choir_dataset_batch_size(const choir_dataset *d)
{
	return d ? d->spec.batch : 0;
}
