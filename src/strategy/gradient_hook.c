// Optimizers call the hook of their strategy.
#include "strategy/strategy.h"

choir_status choir_strategy_set_gradient_hook(choir_strategy *s, choir_gradient_fn *fn, void *user)
{
	CHOIR_TRY(chi_strategy_check(s));
	s->owner->watch = fn;
	s->owner->watch_user = user;
	return CHOIR_OK;
}
