// Each pass is shuffled anew. If its length is unknown, seek points mark where passes begin:
// `record` is the source's pass, `file` repeat's.
#include "data/seek_index.h"
#include "data/dataset.h"

#include "base/size.h"

typedef struct {
	choir_dataset base;
	int64_t times;
	int64_t pass;
	bool some;
	int64_t delivered;
	chi_seek_index seek_index;
} repeat;

// From both counters, so that a seek finds the same order.
static choir_status begin_inner(repeat *r)
{
	uint64_t many = r->times == CHOIR_FOREVER ? UINT64_C(1) << 32 : (uint64_t) r->times;
	uint64_t pass = (uint64_t) r->base.pass * many + (uint64_t) r->pass;
	return chi_dataset_begin(r->base.from[0], (int64_t) pass);
}

// The source's counts restart.
static choir_status go_on(repeat *r)
{
	choir_dataset *d = &r->base;
	const int64_t dropped = choir_dataset_dropped(d), skipped = choir_dataset_skipped(d);
	r->pass++;
	r->some = false;
	if (d->from[0]->elements == CHOIR_UNKNOWN_CARDINALITY) {
		const chi_seek_point mark = { .elements = r->delivered,
			.file = d->pass,
			.files = (int64_t) chi_dataset_signature(d->from[0]),
			.record = r->pass,
			.dropped = dropped,
			.skipped = skipped };
		CHOIR_TRY(chi_seek_index_add(&r->seek_index, &mark));
		chi_atomic64_store(&d->delivered, (uint64_t) r->delivered);
	}
	const choir_status status = begin_inner(r);
	chi_atomic64_store(&d->dropped, (uint64_t) dropped);
	chi_atomic64_store(&d->skipped, (uint64_t) skipped);
	return status;
}

static choir_status repeat_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	repeat *r = (repeat *) d;
	for (;;) {
		choir_status status = chi_dataset_read(d->from[0], column, want, got);
		if (status == CHOIR_OK) {
			r->some = true;
			r->delivered += d->spec.batch ? 1 : *got;
		}
		if (status != CHOIR_END)
			return status;
		// An empty source would repeat forever.
		if (!r->some || r->pass + 1 == r->times)
			return CHOIR_END;
		CHOIR_TRY(go_on(r));
	}
}

static choir_status begin_at(repeat *r, const chi_seek_point *start)
{
	choir_dataset *d = &r->base;
	r->pass = start->record;
	r->delivered = start->elements;
	r->some = false;
	chi_atomic64_store(&d->delivered, (uint64_t) start->elements);
	chi_atomic64_store(&d->dropped, (uint64_t) start->dropped);
	chi_atomic64_store(&d->skipped, (uint64_t) start->skipped);
	return begin_inner(r);
}

static choir_status repeat_rewind(choir_dataset *d)
{
	const chi_seek_point start = { 0 };
	chi_seek_index_keep(&((repeat *) d)->seek_index, d->pass);
	return begin_at((repeat *) d, &start);
}

static bool is_blind(const choir_dataset *d)
{
	return d && (d->stage->blind || is_blind(d->from[0]) || is_blind(d->from[1]));
}

// start: of a pass of unknown length.
static choir_status seek_from(repeat *r, const chi_seek_point *start, int64_t elements)
{
	choir_dataset *d = &r->base;
	chi_error before;
	chi_error_save(&before);
	CHOIR_TRY(begin_at(r, start));
	if (!is_blind(d->from[0])) {
		const int64_t there = elements - start->elements;
		const choir_status status = chi_dataset_pass_over(d->from[0], there);
		r->some = there > 0;
		r->delivered = elements;
		if (status != CHOIR_INVALID)
			return status;
		chi_error_restore(&before);
		CHOIR_TRY(begin_at(r, start));
	}
	return chi_dataset_read_over(d, start->elements, elements);
}

static choir_status repeat_seek(choir_dataset *d, int64_t elements)
{
	repeat *r = (repeat *) d;
	int64_t whole = d->from[0]->elements;
	chi_seek_point start = { 0 };
	if (whole == CHOIR_UNKNOWN_CARDINALITY || whole == 0) {
		chi_seek_index_find(&r->seek_index, elements, &start);
		return seek_from(r, &start, elements);
	}
	start.record = (elements - 1) / whole;
	CHOIR_TRY(begin_at(r, &start));
	r->some = true;
	r->delivered = elements;
	return chi_dataset_pass_over(d->from[0], elements - r->pass * whole);
}

static chi_seek_index *repeat_seek_index(choir_dataset *d)
{
	return &((repeat *) d)->seek_index;
}

static bool repeat_fits(const choir_dataset *d, const chi_seek_point *mark)
{
	const repeat *r = (const repeat *) d;
	return mark->elements > 0 && mark->file >= 0 && mark->record > 0 && mark->dropped >= 0 &&
			mark->skipped >= 0 && (r->times == CHOIR_FOREVER || mark->record < r->times) &&
			mark->files == (int64_t) chi_dataset_signature(d->from[0]);
}

static void repeat_free(choir_dataset *d)
{
	chi_seek_index_free(&((repeat *) d)->seek_index);
}

static uint64_t repeat_signature(const choir_dataset *d)
{
	return (uint64_t) ((const repeat *) d)->times;
}

static const chi_stage repeat_stage = {
	.name = "repeat",
	.read = repeat_read,
	.rewind = repeat_rewind,
	.free = repeat_free,
	.seek = repeat_seek,
	.seek_index = repeat_seek_index,
	.fits = repeat_fits,
	.signature = repeat_signature,
};

static int64_t times_as_many(int64_t known, int64_t times)
{
	int64_t product;
	return known != CHOIR_UNKNOWN_CARDINALITY && chi_int64_multiply(known, times, &product)
			? product
			: CHOIR_UNKNOWN_CARDINALITY;
}

choir_dataset *choir_dataset_repeat(choir_dataset *from, int64_t times)
{
	if (!chi_dataset_given(from, "repeat"))
		return NULL;
	if (times < 1 && times != CHOIR_FOREVER)
		return chi_refuse(from, CHOIR_INVALID,
				"repeat: %lld times given; at least 1 or CHOIR_FOREVER needed", (long long) times);
	repeat *r = chi_transform_new(&repeat_stage, sizeof *r, from);
	if (!r)
		return NULL;
	choir_dataset *d = &r->base;
	chi_seek_index_init(&r->seek_index);
	r->times = times;
	if (times == CHOIR_FOREVER) {
		d->spec.endless = from->elements != 0;
		d->spec.examples = d->elements = d->spec.endless ? CHOIR_UNKNOWN_CARDINALITY : 0;
	} else {
		d->spec.examples = times_as_many(from->spec.examples, times);
		d->elements = times_as_many(from->elements, times);
	}
	d->ragged = from->ragged || (times != 1 && chi_dataset_has_short_batch(from));
	return d;
}
