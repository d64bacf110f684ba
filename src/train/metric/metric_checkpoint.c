// Metrics in checkpoints: they are saved as components [replicas, elements].
#include "train/metric/metric.h"

#include "base/alloc.h"

#include <string.h>

static const char *name(const void *self)
{
	return ((const choir_metric *) self)->name;
}

static choir_status save_parts(choir_variable *v, const char *what, chi_state_dict *to)
{
	const choir_shape shape = CHOIR_SHAPE(chi_strategy_parts(v), v->elements);
	double *part = chi_state_dict_add(to, what, CHOIR_F64, &shape);
	return part == NULL ? choir_error_status() : chi_strategy_all_parts(v, part);
}

static choir_status save(void *self, chi_state_dict *to)
{
	const choir_metric *m = self;
	CHOIR_TRY(save_parts(m->total, "total", to));
	return m->count == NULL ? CHOIR_OK : save_parts(m->count, "count", to);
}

static choir_status take_parts(const choir_variable *v, const char *what, chi_state_dict *from,
		const double **part, int64_t *parts)
{
	const chi_state_dict_entry *e = chi_state_dict_find(from, what);
	*parts = e != NULL && e->shape.rank == 2 ? e->shape.dim[0] : chi_strategy_parts(v);
	const void *data;
	CHOIR_TRY(
			chi_state_dict_take(from, what, CHOIR_F64, &CHOIR_SHAPE(*parts, v->elements), &data));
	*part = data;
	return CHOIR_OK;
}

static choir_status check(void *self, chi_state_dict *from)
{
	const choir_metric *m = self;
	const double *part;
	int64_t parts;
	CHOIR_TRY(take_parts(m->total, "total", from, &part, &parts));
	return m->count == NULL ? CHOIR_OK : take_parts(m->count, "count", from, &part, &parts);
}

// With another number of replicas, the first gets the sum.
static choir_status restore_parts(choir_variable *v, const char *what, chi_state_dict *from)
{
	const double *part;
	int64_t parts;
	const int64_t before = v->strategy->replica_offset;
	CHOIR_TRY(take_parts(v, what, from, &part, &parts));
	const bool as_many = parts == chi_strategy_parts(v);
	double *own = chi_alloc_array((size_t) v->elements, sizeof *own);
	if (own == NULL)
		return choir_error_status();
	for (int64_t i = 0; !as_many && before == 0 && i < parts; i++)
		for (int64_t k = 0; k < v->elements; k++)
			own[k] += part[i * v->elements + k];
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < v->copies; i++) {
		status = chi_variable_copy_from_host(
				v, i, as_many ? part + (before + i) * v->elements : own);
		memset(own, 0, chi_variable_bytes(v));
	}
	chi_free(own);
	return status;
}

static choir_status restore(void *self, chi_state_dict *from)
{
	const choir_metric *m = self;
	CHOIR_TRY(restore_parts(m->total, "total", from));
	return m->count == NULL ? CHOIR_OK : restore_parts(m->count, "count", from);
}

const chi_stateful_table chi_metric_state = {
	.free = chi_metric_free, .name = name, .save = save, .check = check, .restore = restore
};
