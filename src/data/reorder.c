// Converting examples commutes with selecting or moving them. So to_float moves behind a shuffle,
// whose buffer then holds bytes instead of floats.
#include "data/reorder.h"

#include "data/dataset.h"

static size_t example_bytes(const choir_dataset *d)
{
	size_t sum = 0;
	for (size_t i = 0; i < d->spec.n; i++)
		sum += d->bytes[i];
	return sum;
}

choir_dataset *chi_reorder_take(choir_dataset **d)
{
	choir_dataset *moved = *d;
	if (!moved || !moved->stage->reorderable || moved->random ||
			example_bytes(moved) < example_bytes(moved->from[0]))
		return NULL;
	*d = moved->from[0];
	moved->from[0] = NULL;
	return moved;
}

choir_dataset *chi_reorder_put(choir_dataset *moved, choir_dataset *d)
{
	if (!d)
		return chi_dataset_discard(moved);
	moved->from[0] = d;
	moved->spec.global = d->spec.global;
	moved->spec.full = d->spec.full;
	moved->spec.examples = d->spec.examples;
	moved->spec.endless = d->spec.endless;
	moved->elements = d->elements;
	moved->ragged = d->ragged;
	return moved;
}
