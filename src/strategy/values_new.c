// A set of values has its strategy's layout.
#include "strategy/strategy.h"

choir_values *choir_values_new(choir_strategy *s)
{
	if (s == NULL && (s = choir_default_strategy()) == NULL)
		return NULL;
	choir_values *set = chi_strategy_check(s) == CHOIR_OK ? chi_values_new(s, &s->layout) : NULL;
	if (set != NULL) {
		set->before = s->replica_offset;
		set->in_sync = s->in_sync;
	}
	return set;
}
