// take, skip and shard: elements by number. A stream reads the others, too.
#include "data/dataset/take_skip_shard.h"
#include "data/reorder.h"

#include "base/hash.h"
#include "base/size.h"

typedef struct {
	choir_dataset base;
	int64_t count;
	int64_t done;
} subset;

typedef struct {
	choir_dataset base;
	int64_t count, index;
	int64_t seen;
} shard;

static int64_t examples_of_first(const choir_dataset *from, int64_t elements)
{
	if (elements == 0)
		return 0;
	if (elements == from->elements)
		return from->spec.examples;
	int64_t examples;
	if (from->ragged || !chi_int64_multiply(elements, chi_dataset_unit(from), &examples))
		return CHOIR_UNKNOWN_CARDINALITY;
	return examples;
}

static choir_status take_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	return d->from[0]->stage->range(d->from[0], column, first, count);
}

static choir_status take_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	subset *c = (subset *) d;
	int64_t left = c->count - c->done;
	if (left == 0)
		return CHOIR_END;
	if (!d->spec.batch && want > left)
		want = left;
	CHOIR_TRY(chi_dataset_read(d->from[0], column, want, got));
	c->done += d->spec.batch ? 1 : *got;
	return CHOIR_OK;
}

static choir_status skip_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	return d->from[0]->stage->range(d->from[0], column, ((subset *) d)->count + first, count);
}

static choir_status skip_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	subset *c = (subset *) d;
	if (c->done < c->count) {
		int64_t dropped;
		CHOIR_TRY(chi_dataset_drop(d->from[0], c->count - c->done, &dropped));
		c->done = c->count;
	}
	return chi_dataset_read(d->from[0], column, want, got);
}

static choir_status subset_rewind(choir_dataset *d)
{
	((subset *) d)->done = 0;
	return chi_rewind_from(d);
}

static choir_status take_seek(choir_dataset *d, int64_t elements)
{
	subset *c = (subset *) d;
	if (elements > c->count)
		return chi_dataset_too_short(d, c->count, elements);
	c->done = elements;
	return chi_dataset_pass_over(d->from[0], elements);
}

static choir_status skip_seek(choir_dataset *d, int64_t elements)
{
	subset *c = (subset *) d;
	int64_t there;
	if (!chi_int64_add(c->count, elements, &there))
		return chi_dataset_too_short(d, 0, elements);
	c->done = c->count;
	return chi_dataset_pass_over(d->from[0], there);
}

static uint64_t subset_signature(const choir_dataset *d)
{
	return (uint64_t) ((const subset *) d)->count;
}

static const void *skip_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	int64_t skipped = examples_of_first(d->from[0], ((subset *) d)->count);
	if (skipped == CHOIR_UNKNOWN_CARDINALITY || !chi_int64_add(first, skipped, &first))
		return NULL;
	return chi_dataset_peek(d->from[0], column, first, count);
}

static const chi_stage take_stage = {
	.name = "take",
	.range = take_range,
	.read = take_read,
	.rewind = subset_rewind,
	.peek = chi_peek_from,
	.seek = take_seek,
	.signature = subset_signature,
};
static const chi_stage skip_stage = {
	.name = "skip",
	.range = skip_range,
	.read = skip_read,
	.rewind = subset_rewind,
	.peek = skip_peek,
	.seek = skip_seek,
	.signature = subset_signature,
};

static subset *subset_new(const chi_stage *stage, choir_dataset *from, int64_t count)
{
	if (!chi_dataset_given(from, stage->name))
		return NULL;
	if (count < 0)
		return chi_refuse(from, CHOIR_INVALID, "%s: %lld elements given; 0 or more needed",
				stage->name, (long long) count);
	subset *c = chi_transform_new(stage, sizeof *c, from);
	if (!c)
		return NULL;
	c->count = count;
	c->base.random = from->random;
	return c;
}

choir_dataset *choir_dataset_take(choir_dataset *from, int64_t count)
{
	choir_dataset *moved = chi_reorder_take(&from);
	if (moved)
		return chi_reorder_put(moved, choir_dataset_take(from, count));
	subset *c = subset_new(&take_stage, from, count);
	if (!c)
		return NULL;
	choir_dataset *d = &c->base;
	if (from->elements != CHOIR_UNKNOWN_CARDINALITY && from->elements < count)
		return d;
	d->spec.examples = CHOIR_UNKNOWN_CARDINALITY;
	if (from->spec.endless || from->elements != CHOIR_UNKNOWN_CARDINALITY) {
		d->elements = count;
		d->spec.examples = examples_of_first(from, count);
	}
	d->spec.endless = false;
	return d;
}

choir_dataset *choir_dataset_skip(choir_dataset *from, int64_t count)
{
	choir_dataset *moved = chi_reorder_take(&from);
	if (moved)
		return chi_reorder_put(moved, choir_dataset_skip(from, count));
	subset *c = subset_new(&skip_stage, from, count);
	if (!c)
		return NULL;
	choir_dataset *d = &c->base;
	if (from->elements == CHOIR_UNKNOWN_CARDINALITY)
		return d;
	if (c->count > from->elements)
		c->count = from->elements;
	d->elements = from->elements - c->count;
	int64_t skipped = examples_of_first(from, c->count);
	bool known = skipped != CHOIR_UNKNOWN_CARDINALITY &&
			from->spec.examples != CHOIR_UNKNOWN_CARDINALITY;
	d->spec.examples = known ? from->spec.examples - skipped : CHOIR_UNKNOWN_CARDINALITY;
	return d;
}

static choir_status shard_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	const shard *s = (shard *) d;
	void *to[CHI_MAX_COLUMNS];
	for (int64_t i = 0; i < count; i++) {
		chi_columns_move(d, column, i, to);
		int64_t number = s->index + (first + i) * s->count;
		CHOIR_TRY(d->from[0]->stage->range(d->from[0], to, number, 1));
	}
	return CHOIR_OK;
}

// CHOIR_INVALID: fewer elements than shards; every shard notices.
static choir_status pass_over(shard *s, int64_t elements)
{
	int64_t n;
	CHOIR_TRY(chi_dataset_drop(s->base.from[0], elements, &n));
	s->seen += n;
	if (n == elements)
		return CHOIR_OK;
	if (s->seen > 0 && s->seen < s->count)
		return choir_fail(CHOIR_INVALID,
				"shard: %lld elements for %lld shards; at least 1 each needed",
				(long long) s->seen, (long long) s->count);
	return CHOIR_END;
}

// A shard waits until all shards have an element.
static choir_status shard_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	shard *s = (shard *) d;
	const bool first = s->seen == 0;
	CHOIR_TRY(pass_over(s, first || s->seen == s->count ? s->index : s->count - 1));
	choir_status status = chi_dataset_read(d->from[0], column, d->spec.batch ? want : 1, got);
	if (status == CHOIR_END)
		return pass_over(s, 1);
	CHOIR_TRY(status);
	s->seen++;
	return first ? pass_over(s, s->count - 1 - s->index) : CHOIR_OK;
}

static choir_status shard_rewind(choir_dataset *d)
{
	((shard *) d)->seen = 0;
	return chi_rewind_from(d);
}

static choir_status shard_seek(choir_dataset *d, int64_t elements)
{
	shard *s = (shard *) d;
	int64_t there;
	if (!chi_int64_multiply(elements - 1, s->count, &there) ||
			!chi_int64_add(there, s->index + 1, &there))
		return chi_dataset_too_short(d, 0, elements);
	s->seen = there;
	return chi_dataset_pass_over(d->from[0], there);
}

// Without a hint: any number of workers reads the same data.
static uint64_t shard_signature(const choir_dataset *d)
{
	const shard *s = (const shard *) d;
	return d->hint ? 0 : chi_hash_mix((uint64_t) s->count) + (uint64_t) s->index;
}

static const chi_stage shard_stage = {
	.name = "shard",
	.range = shard_range,
	.read = shard_read,
	.rewind = shard_rewind,
	.seek = shard_seek,
	.signature = shard_signature,
};

static void shard_count(shard *s, const choir_dataset *from)
{
	choir_dataset *d = &s->base;
	d->spec.examples = d->elements = CHOIR_UNKNOWN_CARDINALITY;
	if (from->elements == CHOIR_UNKNOWN_CARDINALITY || d->hint)
		return;
	int64_t n = from->elements, unit = chi_dataset_unit(from), whole;
	d->elements = n / s->count + (n % s->count > s->index);
	bool last = n > 0 && (n - 1) % s->count == s->index;
	if (d->elements == 0)
		d->spec.examples = 0;
	else if (!from->ragged && from->spec.examples != CHOIR_UNKNOWN_CARDINALITY &&
			chi_int64_multiply(d->elements, unit, &whole))
		d->spec.examples = last ? whole - unit + (from->spec.examples - (n - 1) * unit) : whole;
}

choir_dataset *choir_dataset_shard(choir_dataset *from, int64_t count, int64_t index)
{
	choir_dataset *moved = chi_reorder_take(&from);
	if (moved)
		return chi_reorder_put(moved, choir_dataset_shard(from, count, index));
	if (!chi_dataset_given(from, "shard"))
		return NULL;
	const bool hint = count == CHOIR_SHARD_HINT && index == CHOIR_SHARD_HINT;
	if (hint) {
		count = 1;
		index = 0;
	}
	if (count < 1)
		return chi_refuse(from, CHOIR_INVALID, "shard: %lld shards given; at least 1 needed",
				(long long) count);
	if (index < 0 || index >= count)
		return chi_refuse(from, CHOIR_INVALID, "shard: index %lld given; 0 to %lld needed",
				(long long) index, (long long) count - 1);
	if (from->elements > 0 && from->elements < count)
		return chi_refuse(from, CHOIR_INVALID,
				"shard: %lld elements for %lld shards; at least 1 each needed",
				(long long) from->elements, (long long) count);
	shard *s = chi_transform_new(&shard_stage, sizeof *s, from);
	if (!s)
		return NULL;
	s->count = count;
	s->index = index;
	s->base.hint = hint;
	s->base.random = from->random && !hint; // a hint changes the cardinality
	shard_count(s, from);
	return &s->base;
}

void chi_dataset_take_hint(choir_dataset *d, int64_t count, int64_t index)
{
	((shard *) d)->count = count;
	((shard *) d)->index = index;
}
