// Two datasets of equal length; an unknown length is checked at the end.
#include "data/dataset.h"

#include "base/size.h"

typedef struct {
	choir_dataset base;
	int64_t examples;
} zip;

static choir_status zip_range(choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	choir_dataset *a = d->from[0], *b = d->from[1];
	CHOIR_TRY(a->stage->range(a, column, first, count));
	return b->stage->range(b, column + a->spec.n, first, count);
}

static const char *side(const choir_dataset *d, int i)
{
	return d->from[i]->spec.column[0].name;
}

static choir_status ended(const zip *z, int which, int64_t at)
{
	return choir_fail(CHOIR_INVALID,
			"zip: \"%s\" ends after %lld examples, but \"%s\" has at "
			"least %lld; both need the same number",
			side(&z->base, which), (long long) at, side(&z->base, !which), (long long) at + 1);
}

static choir_status check_end(zip *z)
{
	int64_t more;
	CHOIR_TRY(chi_dataset_drop(z->base.from[1], 1, &more));
	return more ? ended(z, 0, z->examples) : CHOIR_END;
}

static choir_status zip_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	zip *z = (zip *) d;
	choir_dataset *a = d->from[0], *b = d->from[1];
	choir_status status = chi_dataset_read(a, column, want, got);
	if (status == CHOIR_END)
		return check_end(z);
	CHOIR_TRY(status);
	int64_t others;
	status = d->spec.batch ? chi_dataset_read(b, column + a->spec.n, want, &others)
						   : chi_dataset_fill(b, column + a->spec.n, *got, &others);
	if (status != CHOIR_OK && status != CHOIR_END)
		return status;
	if (others < *got)
		return ended(z, 1, z->examples + others);
	if (others > *got)
		return ended(z, 0, z->examples + *got);
	z->examples += *got;
	return CHOIR_OK;
}

static choir_status zip_rewind(choir_dataset *d)
{
	((zip *) d)->examples = 0;
	CHOIR_TRY(chi_dataset_begin(d->from[0], d->pass));
	return chi_dataset_begin(d->from[1], d->pass);
}

static choir_status zip_seek(choir_dataset *d, int64_t elements)
{
	CHOIR_TRY(chi_dataset_pass_over(d->from[0], elements));
	CHOIR_TRY(chi_dataset_pass_over(d->from[1], elements));
	if (!chi_int64_multiply(elements, chi_dataset_unit(d), &((zip *) d)->examples))
		((zip *) d)->examples = elements;
	return CHOIR_OK;
}

static const void *zip_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	size_t n = d->from[0]->spec.n;
	return column < n ? chi_dataset_peek(d->from[0], column, first, count)
					  : chi_dataset_peek(d->from[1], column - n, first, count);
}

static const chi_stage zip_stage = {
	.name = "zip",
	.range = zip_range,
	.read = zip_read,
	.rewind = zip_rewind,
	.peek = zip_peek,
	.seek = zip_seek,
};

static choir_status check_lengths(const choir_dataset *a, const choir_dataset *b)
{
	const char *x = a->spec.column[0].name, *y = b->spec.column[0].name;
	int64_t m = a->spec.examples, n = b->spec.examples;
	if (a->spec.batch != b->spec.batch)
		return choir_fail(CHOIR_INVALID,
				"zip: \"%s\" has batches of %lld, \"%s\" of %lld (0: single "
				"examples); both need the same",
				x, (long long) a->spec.batch, y, (long long) b->spec.batch);
	if (m != CHOIR_UNKNOWN_CARDINALITY && n != CHOIR_UNKNOWN_CARDINALITY && m != n)
		return choir_fail(CHOIR_INVALID,
				"zip: %lld examples of \"%s\", but %lld of \"%s\"; both need the same number",
				(long long) m, x, (long long) n, y);
	if ((m != CHOIR_UNKNOWN_CARDINALITY && b->spec.endless) ||
			(n != CHOIR_UNKNOWN_CARDINALITY && a->spec.endless))
		return choir_fail(CHOIR_INVALID,
				"zip: %lld examples of \"%s\", but \"%s\" repeats "
				"for ever; both need the same number",
				(long long) (m != CHOIR_UNKNOWN_CARDINALITY ? m : n),
				m != CHOIR_UNKNOWN_CARDINALITY ? x : y, m != CHOIR_UNKNOWN_CARDINALITY ? y : x);
	return CHOIR_OK;
}

static choir_status check_names(const choir_dataset *a, const choir_dataset *b)
{
	if (a->spec.n + b->spec.n > CHI_MAX_COLUMNS)
		return choir_fail(CHOIR_INVALID,
				"zip: the datasets have %zu and %zu columns; at most %d together", a->spec.n,
				b->spec.n, (int) CHI_MAX_COLUMNS);
	for (size_t i = 0; i < b->spec.n; i++) {
		const char *name = b->spec.column[i].name;
		if (chi_column_find(a, name) < a->spec.n)
			return choir_fail(CHOIR_INVALID,
					"zip: both datasets have a column \"%s\"; the names must differ", name);
	}
	return CHOIR_OK;
}

choir_dataset *choir_dataset_zip(choir_dataset *a, choir_dataset *b)
{
	if (!chi_dataset_given(a, "zip") || !chi_dataset_given(b, "zip")) {
		choir_dataset_free(a);
		choir_dataset_free(b);
		return NULL;
	}
	if (a == b)
		return chi_refuse(
				a, CHOIR_INVALID, "zip: both datasets are the same object; two datasets needed");
	zip *z = NULL;
	if (check_names(a, b) == CHOIR_OK && check_lengths(a, b) == CHOIR_OK)
		z = chi_transform_new(&zip_stage, sizeof *z, a);
	else
		choir_dataset_free(a);
	if (!z)
		return chi_dataset_discard(b);
	choir_dataset *d = chi_dataset_add_source(&z->base, b);
	if (!d)
		return NULL;
	for (size_t i = 0; i < b->spec.n; i++) {
		d->spec.column[d->spec.n] = b->spec.column[i];
		d->spec.categories[d->spec.n] = b->spec.categories[i];
		d->bytes[d->spec.n++] = b->bytes[i];
	}
	if (d->elements == CHOIR_UNKNOWN_CARDINALITY) {
		d->elements = b->elements;
		d->spec.examples = b->spec.examples;
	}
	d->spec.endless = a->spec.endless && b->spec.endless;
	d->ragged = a->ragged || b->ragged;
	d->spec.full = a->spec.full && b->spec.full;
	if (a->spec.global != b->spec.global)
		d->spec.global = CHOIR_UNKNOWN_CARDINALITY;
	d->random = a->random && b->random;
	return d;
}
