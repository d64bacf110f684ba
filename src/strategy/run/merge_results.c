// Named tensors, and a run's results. Data that are equal in all replicas are stored once.
#include "strategy/run/merge_results.h"

#include "strategy/run/run.h"
#include "strategy/worker_sync.h"

#include <string.h>

static chi_named *find(const chi_named_tensors *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->named[i].name, name) == 0)
			return &list->named[i];
	return NULL;
}

choir_status chi_named_tensors_put(
		chi_named_tensors *list, choir_frame *f, const char *name, choir_tensor *t)
{
	chi_named *known = find(list, name);
	if (known != NULL) {
		known->tensor = t;
		return CHOIR_OK;
	}
	const bool grown = chi_grow(&list->named, &list->capacity, list->n + 1, sizeof(chi_named));
	const char *copy = grown ? chi_arena_strdup(&f->arena, name) : NULL;
	if (copy == NULL)
		return chi_frame_record_error(f);
	list->named[list->n++] = (chi_named){ copy, t };
	return CHOIR_OK;
}

choir_tensor *chi_named_tensors_find(const chi_named_tensors *list, const char *name)
{
	const chi_named *found = find(list, name);
	return found == NULL ? NULL : found->tensor;
}

void chi_named_tensors_free(chi_named_tensors *unkept)
{
	for (size_t i = 0; i < unkept->capacity; i++)
		chi_free((void *) (uintptr_t) unkept->named[i].name);
	chi_free(unkept->named);
}

choir_status chi_results_check(choir_frame *f, const char *name, const choir_tensor *value)
{
	if (name == NULL || name[0] == '\0')
		return chi_frame_fail(f, CHOIR_INVALID, "return: a leaf needs a name");
	if (value == NULL) {
		chi_frame_null_argument(f, "return");
		return chi_frame_status(f);
	}
	if (value->frame != f)
		return chi_frame_fail(f, CHOIR_INVALID,
				"return: \"%s\" belongs to another frame; copy it to this one", name);
	return chi_tensor_check_any(value);
}

static choir_status lacks(const chi_replica *who, const chi_replica *than, const char *name)
{
	return choir_fail(CHOIR_STATE,
			"replica %d returned no \"%s\", replica %d "
			"did; all replicas must return the same names",
			chi_replica_number(who), name, chi_replica_number(than));
}

static const chi_named_tensors *returned_by(const chi_run *run, int local_replica)
{
	const chi_replica *r = &run->replica[local_replica];
	return run->task.results == NULL ? &r->unkept : &r->returned;
}

static choir_status check_names(const chi_run *run)
{
	const chi_named_tensors *first = returned_by(run, 0);
	for (int r = 1; !run->isolated && r < run->strategy->replicas; r++) {
		const chi_named_tensors *names = returned_by(run, r);
		for (size_t i = 0; i < names->n; i++)
			if (find(first, names->named[i].name) == NULL)
				return lacks(&run->replica[0], &run->replica[r], names->named[i].name);
		for (size_t i = 0; i < first->n; i++)
			if (find(names, first->named[i].name) == NULL)
				return lacks(&run->replica[r], &run->replica[0], first->named[i].name);
	}
	return CHOIR_OK;
}

choir_status chi_results_merge(chi_run *run)
{
	// If results are not kept, replicas usually return nothing: no cache line is read.
	if (run->task.results == NULL)
		return chi_atomic32_load(&run->named) == 0 ? CHOIR_OK : check_names(run);
	CHOIR_TRY(check_names(run));
	const chi_named_tensors *names = &run->replica[0].returned;
	const int n = run->strategy->replicas;
	bool numbers = false;
	choir_frame *f = run->task.results->frame;
	choir_tensor **all = chi_arena_alloc(&f->arena, (size_t) n * sizeof(choir_tensor *));
	choir_value **values = chi_arena_alloc(&f->arena, (names->n + 1) * sizeof(choir_value *));
	if (all == NULL || values == NULL)
		return choir_error_status();
	for (size_t i = 0; i < names->n; i++) {
		for (int r = 0; r < n; r++)
			all[r] = chi_named_tensors_find(&run->replica[r].returned, names->named[i].name);
		numbers = numbers || all[0]->is_number;
		if ((values[i] = chi_value_merge(f, n, all)) == NULL)
			return choir_error_status();
	}
	if (numbers && run->strategy->process_group != NULL)
		CHOIR_TRY(chi_worker_agree_on_numbers(run->strategy, f, "results", names, values));
	for (size_t i = 0; i < names->n; i++)
		CHOIR_TRY(chi_values_put(run->task.results, names->named[i].name, values[i]));
	return CHOIR_OK;
}
