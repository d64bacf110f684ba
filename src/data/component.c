// Elements as components for the program's functions.
#include "data/component.h"
#include "data/source/csv/categories.h"

#include <string.h>

static choir_shape whole_shape(const choir_dataset *d, size_t i, int64_t examples)
{
	const choir_shape *one = &d->spec.column[i].shape;
	if (!d->spec.batch)
		return *one;
	choir_shape shape = { .rank = one->rank + 1, .dim = { examples } };
	memcpy(shape.dim + 1, one->dim, (size_t) one->rank * sizeof shape.dim[0]);
	return shape;
}

static bool in_ragged_value(const choir_dataset *d, size_t i)
{
	return chi_shape_varies(&d->spec.column[i].shape);
}

void chi_components_of(const choir_dataset *d, void *const column[], int64_t at, int64_t examples,
		choir_component component[])
{
	void *there[CHI_MAX_COLUMNS];
	chi_columns_move(d, column, at, there);
	for (size_t i = 0; i < d->spec.n; i++) {
		component[i] = (choir_component){ .dtype = d->spec.column[i].dtype };
		if (in_ragged_value(d, i)) {
			const chi_ragged_value *value = there[i];
			component[i].data = value->data;
			component[i].shape = value->shape;
		} else {
			component[i].data = there[i];
			component[i].shape = whole_shape(d, i, examples);
		}
	}
}

choir_status chi_components_for(const choir_dataset *d, void *const column[], int64_t at,
		int64_t examples, choir_component component[], chi_component_capacity capacity[])
{
	void *there[CHI_MAX_COLUMNS];
	chi_columns_move(d, column, at, there);
	for (size_t i = 0; i < d->spec.n; i++) {
		const choir_column *c = &d->spec.column[i];
		component[i] = (choir_component){ .data = there[i], .dtype = c->dtype };
		component[i].shape = whole_shape(d, i, examples);
		if (!in_ragged_value(d, i))
			continue;
		capacity[i] = (chi_component_capacity){ there[i], c };
		component[i].internal = &capacity[i];
		for (int k = 0; k < c->shape.rank; k++)
			if (c->shape.dim[k] == CHOIR_UNKNOWN)
				component[i].shape.dim[k] = 0;
		CHOIR_TRY(chi_ragged_value_shape(capacity[i].ragged_value, c->dtype, &component[i].shape));
		component[i].data = capacity[i].ragged_value->data;
	}
	return CHOIR_OK;
}

choir_status choir_component_resize(choir_component *component, const choir_shape *shape)
{
	if (!component || !shape)
		return choir_fail(CHOIR_INVALID, "component: the component or the shape is NULL");
	chi_component_capacity *capacity = component->internal;
	if (!capacity)
		return choir_fail(CHOIR_INVALID,
				"component: it is an input or its shape is fixed; only outputs of columns with "
				"CHOIR_UNKNOWN in their shape can be resized");
	if (!chi_shape_fits(&capacity->column->shape, shape))
		return choir_fail(CHOIR_INVALID,
				"column \"%s\": the new shape differs in rank or in a fixed dimension; only "
				"dimensions that are CHOIR_UNKNOWN can change",
				capacity->column->name);
	CHOIR_TRY(chi_ragged_value_shape(capacity->ragged_value, component->dtype, shape));
	component->data = capacity->ragged_value->data;
	component->shape = *shape;
	return CHOIR_OK;
}

choir_status chi_components_check(const choir_dataset *d, const char *what)
{
	for (size_t i = 0; d->spec.batch && i < d->spec.n; i++)
		if (in_ragged_value(d, i))
			return choir_fail(CHOIR_UNSUPPORTED,
					"%s: the shape of column \"%s\" varies after batch; put "
					"this stage before the batch stage",
					what, d->spec.column[i].name);
	return CHOIR_OK;
}

choir_status chi_function_failed(choir_status status, const char *what, int64_t element)
{
	if (choir_error_status() != status || !choir_error()[0])
		choir_fail(status, "the function returned %s", choir_status_name(status));
	chi_error_prefix("%s: element %lld", what, (long long) element);
	return status;
}

const char *chi_columns_differ(const chi_spec *a, const chi_spec *b)
{
	if (a->n != b->n)
		return "the number of columns";
	for (size_t i = 0; i < a->n; i++) {
		const choir_column *x = &a->column[i], *y = &b->column[i];
		if (strcmp(x->name, y->name) != 0)
			return "the name of a column";
		if (x->dtype != y->dtype)
			return "the dtype of a column";
		if (x->shape.rank != y->shape.rank)
			return "the rank of a column";
		for (int k = 0; k < x->shape.rank; k++)
			if (x->shape.dim[k] != y->shape.dim[k])
				return "the shape of a column";
		if (!a->categories[i] != !b->categories[i])
			return "whether a column has categories (a map that declares its columns drops them)";
		if (!chi_categories_equal(a->categories[i], b->categories[i]))
			return "the texts of a column's categories (CSV: list them in the options)";
	}
	return NULL;
}
