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
		CHOIR_TRY(chi_dataset_rewind(d->from[0]));
	}
}

static choir_status repeat_rewind(choir_dataset *d)
{
	repeat *r = (repeat *) d;
	r->pass = 0;
	r->some = false;
	return chi_dataset_rewind(d->from[0]);
}

static const chi_step repeat_step = { "repeat", chi_no_range, repeat_read, repeat_rewind,
	chi_no_peek, chi_no_free };

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
