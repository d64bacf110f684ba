// Steps that come later than they were asked for. A step that makes each example of one example,
// whatever comes before and behind it, gives the same in front of a step that only leaves out or
// moves examples as behind it. So to_float in front of a shuffle goes behind it: the buffer holds
// bytes instead of floats, is filled in a quarter of the time, and what take and skip leave out is
// never converted.
#include "data/stage.h"

static size_t example_bytes(const choir_dataset *d)
{
	size_t sum = 0;
	for (size_t i = 0; i < d->spec.n; i++)
		sum += d->bytes[i];
	return sum;
}

choir_dataset *chi_reorder_take(choir_dataset **d)
{
	choir_dataset *late = *d;
	if (!late || !late->stage->reorderable || late->random ||
			example_bytes(late) < example_bytes(late->from[0]))
		return NULL;
	*d = late->from[0];
	late->from[0] = NULL;
	return late;
}

choir_dataset *chi_reorder_put(choir_dataset *late, choir_dataset *d)
{
	if (!d)
		return (choir_dataset_free(late), NULL);
	late->from[0] = d;
	late->spec.global = d->spec.global;
	late->spec.full = d->spec.full;
	late->spec.examples = d->spec.examples;
	late->spec.endless = d->spec.endless;
	late->elements = d->elements;
	late->ragged = d->ragged;
	return late;
}
