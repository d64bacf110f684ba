// concatenate: one dataset after another.
#include "data/component.h"

#include "base/size.h"

typedef struct {
	choir_dataset base;
	int which;
} concatenate;

static choir_status concatenate_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	choir_dataset *a = d->from[0], *b = d->from[1];
	void *to[CHI_MAX_COLUMNS];
	int64_t end = a->spec.examples, n = first < end ? end - first : 0;
	if (n > count)
		n = count;
	if (n > 0)
		CHOIR_TRY(a->stage->range(a, column, first, n));
	if (n == count)
		return CHOIR_OK;
	chi_columns_move(d, column, n, to);
	return b->stage->range(b, to, first + n - end, count - n);
}

static choir_status concatenate_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	concatenate *c = (concatenate *) d;
	if (c->which == 0) {
		choir_status status = chi_dataset_read(d->from[0], column, want, got);
		if (status != CHOIR_END)
			return status;
		c->which = 1;
	}
	return chi_dataset_read(d->from[1], column, want, got);
}

static choir_status concatenate_rewind(choir_dataset *d)
{
	((concatenate *) d)->which = 0;
	CHOIR_TRY(chi_dataset_begin(d->from[0], d->pass));
	return chi_dataset_begin(d->from[1], d->pass);
}

static choir_status concatenate_seek(choir_dataset *d, int64_t elements)
{
	concatenate *c = (concatenate *) d;
	const int64_t first = d->from[0]->elements;
	if (first != CHOIR_UNKNOWN_CARDINALITY && elements > first) {
		c->which = 1;
		return chi_dataset_pass_over(d->from[1], elements - first);
	}
	if (first != CHOIR_UNKNOWN_CARDINALITY || d->from[0]->spec.endless)
		return chi_dataset_pass_over(d->from[0], elements);
	return chi_dataset_read_over(d, 0, elements);
}

static const chi_stage concatenate_stage = {
	.name = "concatenate",
	.range = concatenate_range,
	.read = concatenate_read,
	.rewind = concatenate_rewind,
	.seek = concatenate_seek,
};

static int64_t sum(int64_t a, int64_t b)
{
	int64_t both;
	return a != CHOIR_UNKNOWN_CARDINALITY && b != CHOIR_UNKNOWN_CARDINALITY &&
					chi_int64_add(a, b, &both)
			? both
			: CHOIR_UNKNOWN_CARDINALITY;
}

static choir_status check(const choir_dataset *a, const choir_dataset *b)
{
	const char *differs = chi_columns_differ(&a->spec, &b->spec);
	if (a == b)
		return choir_fail(
				CHOIR_INVALID, "concatenate: both datasets are the same object; use repeat");
	if (differs)
		return choir_fail(CHOIR_INVALID,
				"concatenate: the datasets differ in %s; both need the same columns", differs);
	if (!a->spec.batch != !b->spec.batch)
		return choir_fail(CHOIR_INVALID,
				"concatenate: one dataset has batches, the other "
				"single examples; both need the same");
	return CHOIR_OK;
}

choir_dataset *choir_dataset_concatenate(choir_dataset *a, choir_dataset *b)
{
	concatenate *c = NULL;
	if (chi_dataset_given(a, "concatenate") && chi_dataset_given(b, "concatenate") &&
			check(a, b) == CHOIR_OK)
		c = chi_transform_new(&concatenate_stage, sizeof *c, a);
	else
		choir_dataset_free(a);
	if (!c) {
		if (a != b)
			choir_dataset_free(b);
		return NULL;
	}
	choir_dataset *d = chi_dataset_add_source(&c->base, b);
	if (!d)
		return NULL;
	d->elements = sum(a->elements, b->elements);
	d->spec.examples = sum(a->spec.examples, b->spec.examples);
	d->spec.endless = a->spec.endless || b->spec.endless;
	d->random = a->random && b->random;
	d->ragged = a->ragged || b->ragged || chi_dataset_has_short_batch(a) ||
			a->spec.batch != b->spec.batch;
	if (a->spec.global != b->spec.global)
		d->spec.global = CHOIR_UNKNOWN_CARDINALITY;
	d->spec.full = a->spec.full && b->spec.full && a->spec.batch == b->spec.batch;
	if (b->spec.batch > a->spec.batch)
		d->spec.batch = b->spec.batch;
	return d;
}
