// Components are not copied; views of them are made in the value's frame.
#include "value/value.h"

#include "value/variable.h"

choir_status chi_value_materialize(choir_value *v)
{
	if (v == NULL || v->materialize == NULL)
		return CHOIR_OK;
	CHOIR_TRY(v->materialize(v));
	v->materialize = NULL;
	return CHOIR_OK;
}

choir_tensor *chi_value_for_replica(const choir_value *v, int local_replica, const choir_device *d)
{
	if (v->kind == CHOIR_VALUE_PER_REPLICA)
		return v->component[local_replica];
	for (int i = 0; i < v->count; i++)
		if (chi_device_shares(v->device[i], d))
			return v->component[i];
	return v->count > 0 ? v->component[0] : NULL;
}

choir_tensor *choir_value_tensor(choir_value *v)
{
	if (v == NULL)
		return NULL;
	switch (v->kind) {
	case CHOIR_VALUE_PLAIN:
	case CHOIR_VALUE_MIRRORED:
		return choir_value_local(v, 0);
	case CHOIR_VALUE_PER_REPLICA:
		return chi_frame_fail_null(v->frame, CHOIR_INVALID,
				"value: is per-replica, of %d replicas; "
				"reduce it, or take one with choir_value_local",
				v->count);
	case CHOIR_VALUE_VARIABLE:
		return chi_frame_fail_null(v->frame, CHOIR_INVALID,
				"value: variable \"%s\" is not a tensor; read it", v->variable->name);
	case CHOIR_VALUE_DESTINATION:
		break;
	}
	return chi_frame_fail_null(v->frame, CHOIR_INVALID, "value: a destination has no tensor");
}

choir_variable *choir_value_variable(choir_value *v)
{
	return v == NULL ? NULL : v->variable;
}

choir_value_kind choir_value_kind_of(const choir_value *v)
{
	return v == NULL ? CHOIR_VALUE_PLAIN : v->kind;
}

int choir_value_local_count(const choir_value *v)
{
	if (v == NULL)
		return 0;
	if (v->kind != CHOIR_VALUE_VARIABLE)
		return v->count;
	return v->variable->shards > 0 ? 1 : v->variable->copies;
}

choir_tensor *choir_value_local(choir_value *v, int index)
{
	if (v == NULL)
		return NULL;
	if (v->frame == NULL)
		return chi_fail_null(
				CHOIR_INVALID, "value: variable \"%s\" has no frame; read it", v->variable->name);
	if (v->kind == CHOIR_VALUE_VARIABLE && index >= 0 && index < choir_value_local_count(v))
		return chi_variable_view(v->variable, index, v->frame);
	if (v->component == NULL || index < 0 || index >= v->count)
		return chi_frame_fail_null(v->frame, CHOIR_INVALID,
				"value: has no local result %d; it has %d", index, choir_value_local_count(v));
	if (chi_value_materialize(v) != CHOIR_OK)
		return NULL;
	return chi_value_view(v->frame, v->component[index]);
}

choir_tensor *chi_value_view(choir_frame *f, choir_tensor *t)
{
	if (t == NULL)
		return NULL;
	if (!chi_device_shares(choir_tensor_device(t), f->device))
		return choir_copy(t, f);
	return t->frame == f ? t : chi_tensor_alias(f, t);
}
