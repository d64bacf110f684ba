// A worker's interface for the functions of closures: arguments, results, datasets and values.
#include "coordinator/worker_pull.h"

#include "base/alloc.h"

choir_strategy *choir_closure_strategy(choir_closure *c)
{
	return c->worker->strategy;
}

choir_values *choir_closure_args(choir_closure *c)
{
	return c->args;
}

choir_status choir_closure_return(choir_closure *c, const char *name, choir_tensor *value)
{
	if (value == NULL)
		return chi_error_null(
				"return of \"%.80s\": the value is NULL", name == NULL ? "NULL" : name);
	return choir_values_set(c->results, name, choir_tensor_as_value(value));
}

choir_distributed_dataset *choir_closure_dataset(choir_closure *c, const char *name)
{
	chi_remote_worker *w = c->worker;
	const int function = chi_task_find(w->o, name);
	if (function == CHOIR_NONE || w->o->functions[function].dataset == NULL)
		return chi_fail_null(CHOIR_NOT_FOUND,
				"closure: \"%.80s\" is no dataset's function in the table",
				name == NULL ? "NULL" : name);
	for (const chi_named_dataset *d = w->datasets; d != NULL; d = d->next)
		if (d->function == function)
			return d->data;
	chi_named_dataset *d = chi_alloc(sizeof *d);
	if (d == NULL)
		return NULL;
	d->function = function;
	d->data = choir_strategy_distribute_datasets_from_function(
			w->strategy, w->o->functions[function].dataset, w->o->user, NULL);
	if (d->data == NULL) {
		chi_free(d);
		return NULL;
	}
	d->next = w->datasets;
	w->datasets = d;
	return d->data;
}

static choir_status make_values(choir_closure *c, chi_named_values *v)
{
	chi_remote_worker *w = c->worker;
	choir_closure maker = { w, c->id, c->attempt, choir_values_new(w->strategy), NULL };
	v->set = maker.results = choir_values_new(w->strategy);
	choir_status status = maker.args == NULL || v->set == NULL
			? choir_error_status()
			: w->o->functions[v->function].fn(&maker, w->o->user);
	choir_values_free(maker.args);
	return status;
}

choir_values *choir_closure_values(choir_closure *c, const char *name)
{
	chi_remote_worker *w = c->worker;
	const int function = chi_task_find(w->o, name);
	if (function == CHOIR_NONE || w->o->functions[function].fn == NULL)
		return chi_fail_null(CHOIR_NOT_FOUND,
				"closure: \"%.80s\" is no closure's function in the table",
				name == NULL ? "NULL" : name);
	for (const chi_named_values *v = w->values; v != NULL; v = v->next)
		if (v->function == function)
			return v->set;
	chi_named_values *v = chi_alloc(sizeof *v);
	if (v == NULL)
		return NULL;
	v->function = function;
	if (make_values(c, v) != CHOIR_OK) {
		choir_values_free(v->set);
		chi_free(v);
		return NULL;
	}
	v->next = w->values;
	w->values = v;
	return v->set;
}

int choir_closure_worker(const choir_closure *c)
{
	return c->worker->number;
}

int choir_closure_attempt(const choir_closure *c)
{
	return c->attempt;
}
