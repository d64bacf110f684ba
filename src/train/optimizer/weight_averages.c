// Averages of weights are exchanged with the values through the host. Memory for the largest
// variable is found first.
#include "train/optimizer/optimizer.h"

#include "base/alloc.h"
#include "strategy/context.h"
#include "strategy/remote_variables.h"
#include "strategy/worker_sync.h"

#include <string.h>

static choir_status exchange(choir_variable *v, choir_variable *average, void *values, void *means)
{
	CHOIR_TRY(chi_variable_to_host(v, 0, values));
	CHOIR_TRY(chi_variable_to_host(average, 0, means));
	CHOIR_TRY(chi_variable_from_host(v, means));
	return chi_variable_from_host(average, values);
}

static choir_status exchange_all(choir_optimizer *o, char *values, size_t bytes)
{
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < o->targets && status == CHOIR_OK; i++) {
		const chi_optimized_variable *t = o->target[i];
		choir_variable *average = t->slot[o->slots - 1];
		if (average != NULL && chi_atomic32_load(&t->averaged) != 0)
			status = exchange(t->variable, average, values, values + bytes);
	}
	for (size_t i = 0; i < o->targets && status != CHOIR_OK; i++) {
		chi_variable_undefine(o->target[i]->variable);
		if (o->target[i]->slot[o->slots - 1] != NULL)
			chi_variable_undefine(o->target[i]->slot[o->slots - 1]);
	}
	return status;
}

choir_status choir_optimizer_swap_averages(choir_optimizer *o)
{
	if (o == NULL)
		return choir_fail(CHOIR_INVALID, "swap_averages: the optimizer is NULL");
	CHOIR_TRY(chi_context_need_cross(o->strategy, "swap_averages"));
	if (o->slots == o->kind->slots)
		return choir_fail(CHOIR_INVALID,
				"swap_averages: %s has no averages; the option ema_momentum makes them",
				o->kind->name);
	CHOIR_TRY(chi_remote_refresh_to_write(o->strategy));
	size_t bytes = 1;
	for (size_t i = 0; i < o->targets; i++)
		if (chi_variable_bytes(o->target[i]->variable) > bytes)
			bytes = chi_variable_bytes(o->target[i]->variable);
	char *values = chi_alloc_array(bytes, 2);
	const choir_status status =
			values == NULL ? choir_error_status() : exchange_all(o, values, bytes);
	chi_free(values);
	if (status != CHOIR_OK)
		return chi_strategy_abort(o->strategy, status); // other workers have swapped
	o->swapped = !o->swapped;
	return CHOIR_OK;
}

bool choir_optimizer_has_swapped(const choir_optimizer *o)
{
	return o != NULL && o->swapped;
}
