// What a program may ask a variable.
#include "value/variable.h"

#include <string.h>

const char *choir_variable_name(const choir_variable *v)
{
	return v == NULL ? "" : v->name;
}

const choir_shape *choir_variable_shape(const choir_variable *v)
{
	return v == NULL ? NULL : &v->shape;
}

choir_status choir_variable_describe(const choir_variable *v, choir_variable_options *options)
{
	if (v == NULL || options == NULL ||
			options->size < offsetof(choir_variable_options, initializer))
		return choir_fail(CHOIR_INVALID,
				"variable: describe needs a variable and options whose "
				"size is set");
	const choir_variable_options all = {
		.size = options->size,
		.dtype = v->dtype,
		.synchronization = v->synchronization,
		.aggregation = v->aggregation,
		.trainable = v->trainable ? CHOIR_ON : CHOIR_OFF,
	};
	memcpy(options, &all, options->size < sizeof all ? options->size : sizeof all);
	return CHOIR_OK;
}

int choir_variable_copies(const choir_variable *v)
{
	return v == NULL ? 0 : v->copies;
}

const char *choir_variable_copy_name(const choir_variable *v, int copy)
{
	if (v == NULL || copy < 0 || copy >= v->copies)
		return NULL;
	return copy == 0 ? v->name : v->copy[copy].name;
}

choir_device *choir_variable_device(const choir_variable *v, int copy)
{
	return v == NULL || copy < 0 || copy >= v->copies ? NULL : v->copy[copy].device;
}

choir_variable *choir_tensor_variable(const choir_tensor *t)
{
	return t == NULL || t->source == NULL ? NULL : t->source->owner;
}
