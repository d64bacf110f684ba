// Runs a single replica. Calls that need others fail, and gradients are dropped
// (gradients/collect.c).
#include "strategy/kinds/kinds.h"
#include "strategy/run/run.h"

#include "tensor/dlpack.h"

static choir_status check(const choir_strategy *s, int local_replica, choir_replica_fn *fn)
{
	const chi_context *c = chi_context_current();
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "run_replica"));
	if (c != NULL && c->kind == CHI_IN_CROSS && c->what != NULL)
		return choir_fail(CHOIR_STATE,
				"run_replica: it was called in a merge function; call it outside of runs");
	if (fn == NULL)
		return choir_fail(CHOIR_INVALID, "run_replica: the function is NULL");
	if (local_replica < 0 || local_replica >= s->replicas)
		return choir_fail(CHOIR_INVALID,
				"run_replica: local replica %d does not exist; there are 0 to %d", local_replica,
				s->replicas - 1);
	return chi_strategy_check_not_stopped(s);
}

choir_status choir_strategy_run_replica(
		choir_strategy *s, int local_replica, choir_replica_fn *fn, void *user, choir_values *args)
{
	CHOIR_TRY(check(s, local_replica, fn));
	if (!chi_atomic32_change(&s->running, 0, 1))
		return choir_fail(CHOIR_STATE,
				"run_replica: a run of this strategy (\"%s\") is in progress", s->kind);
	chi_context inside;
	chi_context *entry = chi_context_enter(&inside, CHI_IN_CROSS, s, NULL);
	chi_dlpack_hold(true);
	const choir_status status = chi_run_isolated(s->run, local_replica, fn, user, args);
	chi_dlpack_hold(false);
	chi_context_pop(entry);
	chi_atomic32_store(&s->running, 0);
	chi_dlpack_run_deleters();
	return status;
}

choir_status choir_strategy_set_gradient_hook(choir_strategy *s, choir_gradient_fn *fn, void *user)
{
	CHOIR_TRY(chi_strategy_check(s));
	s->owner->watch = fn;
	s->owner->watch_user = user;
	return CHOIR_OK;
}
