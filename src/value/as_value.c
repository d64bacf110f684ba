// Values of tensors and of variables. Components are not copied.
#include "value/variable.h"

choir_value *chi_value_new(choir_frame *f, choir_value_kind kind, int count)
{
	choir_value *v = chi_arena_alloc(&f->arena, sizeof *v);
	if (v == NULL)
		return chi_frame_record_null(f);
	v->kind = kind;
	v->frame = f;
	v->count = count;
	if (count == 0)
		return v;
	v->component = chi_arena_alloc(&f->arena, (size_t) count * sizeof(choir_tensor *));
	v->device = chi_arena_alloc(&f->arena, (size_t) count * sizeof(choir_device *));
	if (v->component == NULL || v->device == NULL)
		return chi_frame_record_null(f);
	return v;
}

choir_value *chi_value_of_variable(choir_frame *f, choir_variable *variable)
{
	choir_value *v = chi_value_new(f, CHOIR_VALUE_VARIABLE, 0);
	if (v != NULL)
		v->variable = variable;
	return v;
}

choir_value *choir_variable_as_value(choir_variable *variable)
{
	return variable == NULL ? NULL : &variable->value;
}

choir_value *choir_tensor_as_value(choir_tensor *t)
{
	if (t == NULL)
		return NULL;
	if (t->component)
		return chi_value_of_variable(t->frame, choir_tensor_variable(t));
	choir_value *v = chi_value_new(t->frame, CHOIR_VALUE_PLAIN, 1);
	if (v != NULL) {
		v->component[0] = t;
		v->device[0] = choir_tensor_device(t);
	}
	return v;
}

static bool same_number(const choir_tensor *a, const choir_tensor *b)
{
	return a->is_number && b->is_number && a->number == b->number;
}

choir_value *chi_value_merge(choir_frame *f, int count, choir_tensor *const tensors[])
{
	bool numbers = true, components = true;
	for (int i = 0; i < count; i++) {
		numbers = numbers && same_number(tensors[0], tensors[i]);
		components = components && tensors[i]->component &&
				choir_tensor_variable(tensors[i]) == choir_tensor_variable(tensors[0]);
	}
	if (components)
		return chi_value_of_variable(f, choir_tensor_variable(tensors[0]));
	// A new number: a replica's may end before the value.
	if (numbers)
		return choir_tensor_as_value(choir_number(f, tensors[0]->number));
	choir_value *v = chi_value_new(f, CHOIR_VALUE_PER_REPLICA, count);
	if (v == NULL)
		return NULL;
	for (int i = 0; i < v->count; i++) {
		v->component[i] = tensors[i];
		v->device[i] = choir_tensor_device(tensors[i]);
	}
	return v;
}
