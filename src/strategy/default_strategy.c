// The strategy of programs without a scope: one replica on one device.
#include "strategy/kinds/kinds.h"
#include "strategy/run/run.h"
#include "strategy/strategy.h"

static choir_strategy *the_default;
static chi_mutex default_lock = CHI_MUTEX_STATIC(CHI_RANK_STRATEGY, "default strategy");

// For leak checkers.
__attribute__((destructor)) static void free_default(void)
{
	choir_strategy *s = the_default;
	the_default = NULL;
	if (s == NULL)
		return;
	s->is_default = false;
	choir_strategy_free(s);
}

choir_strategy *choir_default_strategy(void)
{
	chi_mutex_lock(&default_lock);
	choir_strategy *s = the_default;
	if (s == NULL) {
		s = chi_strategy_new(&chi_default_table, NULL);
		if (s != NULL && (s->default_run = chi_run_new(s)) == NULL) {
			choir_strategy_free(s);
			s = NULL;
		}
		if (s != NULL) {
			s->is_default = true;
			the_default = s;
		}
	}
	chi_mutex_unlock(&default_lock);
	return s;
}
