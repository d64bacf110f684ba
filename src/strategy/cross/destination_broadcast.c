// Destinations, and copies of a value at their devices.
#include "strategy/cross/cross.h"

choir_value *chi_cross_destination(choir_cross *x, int count, choir_device *const devices[])
{
	choir_value *v = chi_value_new(x->frame, CHOIR_VALUE_DESTINATION, count);
	for (int i = 0; v != NULL && i < count; i++)
		v->device[i] = devices[i];
	return v;
}

choir_value *choir_cross_destination(choir_cross *x, const char *devices)
{
	if (chi_cross_check(x, "destination") != CHOIR_OK)
		return NULL;
	const choir_strategy *s = chi_cross_of(x)->strategy;
	if (devices == NULL)
		return chi_cross_destination(x, s->devices, s->device);
	enum { MAX = 64 };
	choir_device *found[MAX];
	int count = 0;
	if (chi_device_list(devices, MAX, found, &count) != CHOIR_OK) {
		chi_error_prefix("destination");
		return chi_frame_record_null(x->frame);
	}
	return chi_cross_destination(x, count, found);
}

choir_value *chi_cross_value_at(choir_cross *x, const choir_value *to)
{
	const choir_variable *v = to->variable;
	if (v != NULL && v->shards > 0) // an update takes each shard's rows
		v = v->shard[0];
	const int count = v != NULL ? v->copies : to->count;
	choir_value *result = chi_value_new(x->frame, CHOIR_VALUE_MIRRORED, count);
	for (int i = 0; result != NULL && i < count; i++)
		result->device[i] = v != NULL ? v->copy[i].device : to->device[i];
	return result;
}

choir_tensor *chi_cross_same_memory(const choir_value *result, int i)
{
	for (int k = 0; k < i; k++)
		if (chi_device_shares(result->device[i], result->device[k]))
			return result->component[k];
	return NULL;
}

choir_status chi_cross_fill(choir_cross *x, choir_value *result, choir_tensor *t)
{
	for (int i = 0; i < result->count; i++) {
		result->component[i] = chi_cross_same_memory(result, i);
		if (result->component[i] != NULL)
			continue;
		choir_frame *f = chi_cross_frame_on(chi_cross_of(x), result->device[i]);
		result->component[i] = f == NULL ? NULL : chi_value_view(f, t);
		if (result->component[i] == NULL)
			return chi_frame_record_error(x->frame);
	}
	return CHOIR_OK;
}

choir_status chi_cross_check_own(
		choir_cross *x, const choir_value *v, const choir_value *to, const char *what)
{
	const choir_strategy *s = chi_cross_of(x)->strategy;
	CHOIR_TRY(chi_cross_check_variable(s, x->frame, v->variable, what));
	return chi_cross_check_variable(s, x->frame, to->variable, what);
}

choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to)
{
	if (v == NULL || to == NULL || chi_cross_check(x, "broadcast_to") != CHOIR_OK ||
			chi_cross_check_own(x, v, to, "broadcast_to") != CHOIR_OK)
		return NULL;
	choir_tensor *t = v->kind == CHOIR_VALUE_VARIABLE ? choir_variable_read(v->variable, x->frame)
													  : choir_value_tensor(v);
	if (t == NULL)
		return chi_frame_record_null(x->frame);
	if (t->is_number)
		return choir_tensor_as_value(choir_number(x->frame, t->number));
	choir_value *result = chi_cross_value_at(x, to);
	return result != NULL && chi_cross_fill(x, result, t) == CHOIR_OK ? result : NULL;
}
