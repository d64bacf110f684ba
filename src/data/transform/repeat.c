// Several passes, or endlessly many, as one. Each goes through the source from its start, so
// that a shuffle in it comes in another order.
#include "data/step.h"

#include "base/size.h"

typedef struct {
	choir_dataset base;
	int64_t times; // CHOIR_NONE: for ever
	int64_t pass;
	bool some; // this pass has had an example
} repeat;

// The source's pass follows from the repeat's and its own, so that whoever goes to a place finds
// the order that whoever read up to there has.
static choir_status begin_inner(repeat *r)
{
	uint64_t many = r->times == CHOIR_NONE ? UINT64_C(1) << 32 : (uint64_t) r->times;
	uint64_t pass = (uint64_t) r->base.pass * many + (uint64_t) r->pass;
	return chi_dataset_begin(r->base.from[0], (int64_t) pass);
}

static choir_status repeat_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	repeat *r = (repeat *) d;
	for (;;) {
		choir_status status = chi_dataset_read(d->from[0], column, want, got);
		if (status == CHOIR_OK)
			r->some = true;
		if (status != CHOIR_END)
			return status;
		// A source with nothing in it would be repeated here for ever.
		if (!r->some || r->pass + 1 == r->times)
			return CHOIR_END;
		r->pass++;
		r->some = false;
		CHOIR_TRY(begin_inner(r));
	}
}

static choir_status repeat_rewind(choir_dataset *d)
{
	repeat *r = (repeat *) d;
	r->pass = 0;
	r->some = false;
	return begin_inner(r);
}

static choir_status repeat_seek(choir_dataset *d, int64_t elements)
{
	repeat *r = (repeat *) d;
	int64_t whole = d->from[0]->elements;
	if (whole == CHOIR_NONE || whole == 0)
		return chi_dataset_read_over(d, 0, elements);
	r->pass = (elements - 1) / whole; // a pass that is at its end, not the next at its start
	r->some = true;
	CHOIR_TRY(begin_inner(r));
	return chi_dataset_pass_over(d->from[0], elements - r->pass * whole);
}

static uint64_t repeat_signature(const choir_dataset *d)
{
	return (uint64_t) ((const repeat *) d)->times;
}

static const chi_step repeat_step = {
	.name = "repeat",
	.range = chi_no_range,
	.read = repeat_read,
	.rewind = repeat_rewind,
	.peek = chi_no_peek,
	.free = chi_no_free,
	.seek = repeat_seek,
	.signature = repeat_signature,
	.files = CHI_FILES_THROUGH,
};

static int64_t times_as_many(int64_t known, int64_t times)
{
	int64_t product;
	return known != CHOIR_NONE && chi_int64_multiply(known, times, &product) ? product
																			 : CHOIR_NONE;
}

choir_dataset *choir_dataset_repeat(choir_dataset *from, int64_t times)
{
	if (!chi_dataset_given(from, "repeat"))
		return NULL;
	if (times < 1 && times != CHOIR_NONE)
		return chi_refuse(from, CHOIR_INVALID,
				"repeat: %lld times given, at least 1 or CHOIR_NONE (for ever) needed",
				(long long) times);
	repeat *r = chi_transform_new(&repeat_step, sizeof *r, from);
	if (!r)
		return NULL;
	choir_dataset *d = &r->base;
	r->times = times;
	if (times == CHOIR_NONE) {
		d->spec.endless = from->elements != 0; // nothing repeated for ever is nothing
		d->spec.examples = d->elements = d->spec.endless ? CHOIR_NONE : 0;
	} else {
		d->spec.examples = times_as_many(from->spec.examples, times);
		d->elements = times_as_many(from->elements, times);
	}
	d->ragged = from->ragged || (times != 1 && chi_dataset_has_short_batch(from));
	return d;
}
