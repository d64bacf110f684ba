// A seek begins the pass anew; stages that cannot jump read up to the position.
#include "data/dataset.h"

#include "base/hash.h"

choir_status chi_rewind_from(choir_dataset *d)
{
	return chi_dataset_begin(d->from[0], d->pass);
}

choir_status chi_seek_from(choir_dataset *d, int64_t elements)
{
	return chi_dataset_pass_over(d->from[0], elements);
}

const void *chi_peek_from(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	return chi_dataset_peek(d->from[0], column, first, count);
}

choir_status chi_dataset_begin(choir_dataset *d, int64_t pass)
{
	d->ended = d->failed = false;
	d->position = 0;
	d->pass = pass;
	chi_atomic64_store(&d->dropped, 0);
	chi_atomic64_store(&d->skipped, 0);
	chi_atomic64_store(&d->delivered, 0);
	choir_status status = d->random || !d->stage->rewind ? CHOIR_OK : d->stage->rewind(d);
	return status == CHOIR_OK ? CHOIR_OK : chi_dataset_keep_failure(d, status);
}

choir_status chi_dataset_rewind(choir_dataset *d)
{
	if (!chi_dataset_given(d, "dataset"))
		return choir_error_status();
	return chi_dataset_begin(d, d->pass + 1);
}

int64_t chi_dataset_pass(const choir_dataset *d)
{
	return d->pass;
}

choir_status chi_dataset_too_short(const choir_dataset *d, int64_t found, int64_t needed)
{
	return choir_fail(CHOIR_INVALID,
			"%s: pass %lld has %lld elements, the position is after %lld; it needs the dataset "
			"that it was saved with",
			d->stage->name, (long long) d->pass, (long long) found, (long long) needed);
}

choir_status chi_dataset_read_over(choir_dataset *d, int64_t from, int64_t to)
{
	int64_t found;
	CHOIR_TRY(chi_dataset_drop(d, to - from, &found));
	return found == to - from ? CHOIR_OK : chi_dataset_too_short(d, from + found, to);
}

choir_status chi_dataset_pass_over(choir_dataset *d, int64_t elements)
{
	if (elements == 0)
		return CHOIR_OK;
	if (d->elements != CHOIR_UNKNOWN_CARDINALITY && elements > d->elements)
		return chi_dataset_too_short(d, d->elements, elements);
	if (d->random) {
		d->position = elements;
		return CHOIR_OK;
	}
	return d->stage->seek ? d->stage->seek(d, elements) : chi_dataset_read_over(d, 0, elements);
}

choir_status chi_dataset_seek(choir_dataset *d, int64_t pass, int64_t elements)
{
	if (!chi_dataset_given(d, "dataset"))
		return choir_error_status();
	if (pass < 0 || elements < 0)
		return choir_fail(CHOIR_INVALID,
				"dataset: pass %lld and element %lld given; 0 or more needed", (long long) pass,
				(long long) elements);
	CHOIR_TRY(chi_dataset_begin(d, pass));
	choir_status status = chi_dataset_pass_over(d, elements);
	return status == CHOIR_OK ? CHOIR_OK : chi_dataset_keep_failure(d, status);
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
	return chi_hash_mix(sum ^ chi_hash_mix(value));
}

uint64_t chi_dataset_signature(const choir_dataset *d)
{
	if (!d)
		return 0;
	uint64_t sum = chi_hash_text(d->stage->name);
	if (d->stage->signature)
		sum = mix(sum, d->stage->signature(d));
	for (size_t i = 0; i < d->spec.n; i++) {
		const choir_column *c = &d->spec.column[i];
		sum = mix(mix(sum, chi_hash_text(c->name)), (uint64_t) c->dtype);
		for (int k = 0; k < c->shape.rank; k++)
			sum = mix(sum, (uint64_t) c->shape.dim[k]);
	}
	sum = mix(sum, (uint64_t) d->spec.batch);
	sum = d->spec.full ? mix(sum, 1) : sum;
	for (int i = 0; i < 2; i++)
		sum = mix(sum, chi_dataset_signature(d->from[i]));
	return sum;
}
