// Updates without a variable: their devices, and the call.
#include "strategy/update/update.h"

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

bool chi_strategy_is_non_slot_destination(const choir_strategy *s, const choir_value *destination)
{
	bool same = destination->count == s->non_slots;
	for (int i = 0; same && i < s->non_slots; i++)
		same = destination->device[i] == s->non_slot[i];
	return same;
}

choir_status choir_cross_update_non_slot(
		choir_cross *cross, choir_value *destination, choir_update_fn *fn, void *user)
{
	CHOIR_TRY(chi_cross_check(cross, "update_non_slot"));
	chi_cross *x = chi_cross_of(cross);
	if (fn == NULL)
		return chi_frame_fail(
				cross->frame, CHOIR_INVALID, "update_non_slot: the function is NULL");
	if (destination == NULL) {
		chi_frame_null_argument(cross->frame, "update_non_slot");
		return chi_frame_status(cross->frame);
	}
	if (destination->kind != CHOIR_VALUE_DESTINATION ||
			!chi_strategy_is_non_slot_destination(x->strategy, destination))
		return chi_frame_fail(cross->frame, CHOIR_INVALID,
				"update_non_slot: it needs the destination of non_slot_devices; this value %s",
				destination->kind == CHOIR_VALUE_DESTINATION ? "has other devices"
															 : "is no destination");
	return chi_update_run(&(chi_update){ .cross = x, .destination = destination }, fn, user);
}
