// Ranges of numbers, and constant tensors.
#include "data/dataset.h"

#include <string.h>

#include "base/hash.h"

typedef struct {
	choir_dataset base;
	int64_t start, stride;
} range;

static choir_status range_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	const range *r = (range *) d;
	int64_t *to = column[0];
	for (int64_t i = 0; i < count && to; i++)
		to[i] = r->start + (first + i) * r->stride;
	return CHOIR_OK;
}

static uint64_t range_signature(const choir_dataset *d)
{
	const range *r = (const range *) d;
	return chi_hash_mix((uint64_t) r->start) + (uint64_t) r->stride;
}

static const chi_stage range_stage = {
	.name = "range dataset",
	.range = range_range,
	.signature = range_signature,
};

static choir_status count_numbers(int64_t start, int64_t stop, int64_t stride, int64_t *n)
{
	int64_t way;
	if (stride == 0)
		return choir_fail(CHOIR_INVALID, "range dataset: step 0 given; any other needed");
	if (stride > 0 ? stop <= start : stop >= start) {
		*n = 0;
		return CHOIR_OK;
	}
	if (stride == INT64_MIN || __builtin_sub_overflow(stop, start, &way) || way == INT64_MIN)
		return choir_fail(CHOIR_INVALID,
				"range dataset: the distance from %lld to %lld has more than 63 bits",
				(long long) start, (long long) stop);
	const int64_t far = way < 0 ? -way : way, wide = stride < 0 ? -stride : stride;
	*n = (far - 1) / wide + 1;
	return CHOIR_OK;
}

choir_dataset *choir_range_dataset_new(
		const char *column, int64_t start, int64_t stop, int64_t stride)
{
	const choir_column c = { .name = column, .dtype = CHOIR_I64 };
	int64_t n = 0;
	if (count_numbers(start, stop, stride, &n) != CHOIR_OK)
		return NULL;
	range *r = chi_source_new(&range_stage, sizeof *r, 1, &c, n);
	if (!r)
		return NULL;
	r->start = start;
	r->stride = stride;
	r->base.random = true;
	return &r->base;
}

typedef struct {
	choir_dataset base;
} constant;

static choir_status constant_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	const constant *c = (constant *) d;
	(void) first;
	for (size_t i = 0; i < d->spec.n; i++)
		for (int64_t k = 0; k < count && column[i]; k++)
			memcpy((char *) column[i] + (size_t) k * d->bytes[i], c->base.rows.column[i],
					d->bytes[i]);
	return CHOIR_OK;
}

static choir_status constant_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	*got = want;
	return constant_range(d, column, 0, want);
}

static choir_status constant_seek(choir_dataset *d, int64_t elements)
{
	(void) d;
	(void) elements;
	return CHOIR_OK;
}

static const chi_stage constant_stage = {
	.name = "constant dataset",
	.range = constant_range,
	.read = constant_read,
	.seek = constant_seek,
};

choir_dataset *choir_constant_dataset_new(int64_t examples, size_t n, const choir_column columns[])
{
	if (examples < 0 && examples != CHOIR_FOREVER)
		return chi_fail_null(CHOIR_INVALID,
				"constant dataset: %lld examples given; 0 or more, or CHOIR_FOREVER, needed",
				(long long) examples);
	constant *c = chi_source_new(&constant_stage, sizeof *c, n, columns, examples);
	if (!c)
		return NULL;
	choir_dataset *d = &c->base;
	d->spec.endless = examples == CHOIR_FOREVER;
	d->random = examples != CHOIR_FOREVER;
	bool good = chi_row_buffer_new(d, 1, &c->base.rows);
	for (size_t i = 0; i < n && good; i++) {
		good = columns[i].data != NULL;
		if (good)
			memcpy(c->base.rows.column[i], columns[i].data, d->bytes[i]);
		else
			choir_fail(
					CHOIR_INVALID, "constant dataset: column \"%s\" has no data", columns[i].name);
	}
	if (good)
		return d;
	return chi_dataset_discard(d);
}
