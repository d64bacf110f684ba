// Where update functions without a variable run.
#include "strategy/update/update.h"

// The variables are only checked.
choir_value *choir_cross_non_slot_devices(
		choir_cross *cross, size_t n, choir_variable *const variables[])
{
	if (chi_cross_check(cross, "non_slot_devices") != CHOIR_OK)
		return NULL;
	choir_frame *f = cross->frame;
	const choir_strategy *s = chi_cross_of(cross)->strategy;
	for (size_t i = 0; i < n; i++) {
		const choir_variable *v = variables[i];
		if (v != NULL && chi_strategy_has(s, v))
			continue;
		if (v == NULL)
			chi_frame_fail(
					f, CHOIR_INVALID, "non_slot_devices: variable %zu of %zu is NULL", i, n);
		else
			chi_frame_fail(f, CHOIR_INVALID,
					"non_slot_devices: variable \"%s\" belongs to another strategy (%s)", v->name,
					v->strategy->label);
		return NULL;
	}
	return chi_cross_destination(cross, s->non_slots, s->non_slot);
}
