// Variables of an optimizer that belong to no variable that is trained, such as the powers of
// Adam's betas: where they lie, and how they are updated, once for each copy.
#include "strategy/update/update.h"

// The first variable that is of another strategy, or NULL.
static const choir_variable *foreign(
		const choir_strategy *s, size_t n, choir_variable *const variables[])
{
	for (size_t i = 0; i < n; i++)
		if (!chi_strategy_has(s, variables[i]))
			return variables[i];
	return NULL;
}

// Where a strategy's non-slot variables lie does not depend on which variables are trained.
choir_value *choir_cross_non_slot_devices(
		choir_cross *cross, size_t n, choir_variable *const variables[])
{
	if (chi_cross_check(cross, "non_slot_devices") != CHOIR_OK)
		return NULL;
	choir_frame *f = cross->frame;
	const choir_strategy *s = chi_cross_of(cross)->strategy;
	for (size_t i = 0; i < n; i++)
		if (variables[i] == NULL) {
			chi_frame_fail(
					f, CHOIR_INVALID, "non_slot_devices: variable %zu of %zu is NULL", i, n);
			return NULL;
		}
	const choir_variable *other = foreign(s, n, variables);
	if (other != NULL) {
		chi_frame_fail(f, CHOIR_INVALID,
				"non_slot_devices: variable \"%s\" was not made in this "
				"strategy but in %s",
				other->name, other->strategy->label);
		return NULL;
	}
	choir_value *destination = chi_value_new(f, CHOIR_VALUE_PLACE, s->non_slots);
	if (destination == NULL) {
		chi_frame_record_error(f);
		return NULL;
	}
	for (int i = 0; i < s->non_slots; i++)
		destination->device[i] = s->non_slot[i];
	return destination;
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
	if (destination->kind != CHOIR_VALUE_PLACE ||
			!chi_strategy_is_non_slot_destination(x->strategy, destination))
		return chi_frame_fail(cross->frame, CHOIR_INVALID,
				"update_non_slot: it needs the place "
				"that non_slot_devices gives, and this %s",
				destination->kind == CHOIR_VALUE_PLACE ? "has other devices" : "is no place");
	return chi_update_run(&(chi_update){ .cross = x, .destination = destination }, fn, user);
}
