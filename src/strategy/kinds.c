// The strategies: mirrored, one-device and the default. They differ in how many replicas and
// devices they allow; replicas, merge calls, frames and scopes are the same for all.
#include "strategy/strategy.h"

#include "base/alloc.h"
#include "strategy/run/run.h"

#include <limits.h>
#include <string.h>

choir_strategy *choir_mirrored_strategy_new(const choir_strategy_options *o)
{
	return chi_strategy_new("mirrored", o, INT_MAX);
}

choir_strategy *choir_one_device_strategy_new(const choir_strategy_options *o)
{
	return chi_strategy_new("one_device", o, 1);
}

choir_strategy *choir_strategy_copy_new(const choir_strategy *s)
{
	if (s == NULL || s->is_default) {
		choir_fail(s == NULL ? CHOIR_INVALID : CHOIR_STATE, "strategy: %s",
				s == NULL ? "it is NULL" : "the default strategy cannot be copied");
		return NULL;
	}
	return chi_strategy_new(s->kind, &s->options,
			strcmp(s->kind, "one_device") == 0 ? 1 : INT_MAX);
}

static choir_strategy *the_default;
static chi_mutex default_lock = CHI_MUTEX_STATIC(CHI_RANK_STRATEGY, "default strategy");

// Freed with the process, so that leak checkers see nothing.
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
		s = chi_strategy_new("default", NULL, 1);
		if (s != NULL && (s->standing = chi_run_new(s)) == NULL) {
			choir_strategy_free(s);
			s = NULL;
		}
		if (s != NULL) {
			s->is_default = true;
			s->standing->replica[0].state = CHI_RUNS;
			the_default = s;
		}
	}
	chi_mutex_unlock(&default_lock);
	return s;
}
