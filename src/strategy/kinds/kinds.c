// Strategies by name: the registry, and the default strategy.
#include "strategy/kinds/kinds.h"

#include "base/registry.h"
#include "strategy/run/run.h"

static const void *const builtin[] = { &chi_default_table, &chi_one_device_table,
	&chi_mirrored_table, &chi_central_storage_table, &chi_parameter_server_table,
	&chi_multi_worker_mirrored_table, NULL };
static choir_strategy_table registered[CHI_REGISTRY_MAX];
static chi_registry registry = { "strategy", sizeof registered[0], builtin, registered, { 0 } };

static int no_devices(void *self, int capacity, choir_device *devices[])
{
	(void) self, (void) capacity, (void) devices;
	choir_fail(CHOIR_UNSUPPORTED, "strategy: its table has no parameter_devices");
	return CHOIR_NONE;
}

static int no_place(void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	(void) self, (void) capacity, (void) devices;
	choir_fail(CHOIR_UNSUPPORTED, "variable \"%s\": the strategy's table has no place_variable",
			v->name);
	return CHOIR_NONE;
}

static choir_status no_open(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	(void) self, (void) options, (void) n, (void) devices;
	return CHOIR_OK;
}

static void no_close(void *self)
{
	(void) self;
}

choir_status choir_register_strategy(const choir_strategy_table *given)
{
	return chi_registry_add(&registry, given) != NULL ? CHOIR_OK : choir_error_status();
}

choir_strategy_table chi_strategy_table_filled(const choir_strategy_table *table)
{
	choir_strategy_table t = *table;
	t.open = t.open != NULL ? t.open : no_open;
	t.close = t.close != NULL ? t.close : no_close;
	t.parameter_devices = t.parameter_devices != NULL ? t.parameter_devices : no_devices;
	t.non_slot_devices = t.non_slot_devices != NULL ? t.non_slot_devices : t.parameter_devices;
	t.place_variable = t.place_variable != NULL ? t.place_variable : no_place;
	return t;
}

choir_strategy *choir_strategy_new(const char *name, const choir_strategy_options *o)
{
	const choir_strategy_table *t = chi_registry_find(&registry, name == NULL ? "" : name);
	return t == NULL ? NULL : chi_strategy_new(t, o);
}

choir_strategy *choir_strategy_copy_new(const choir_strategy *s)
{
	if (s == NULL || s->is_default) {
		choir_fail(s == NULL ? CHOIR_INVALID : CHOIR_STATE, "strategy: %s",
				s == NULL ? "it is NULL" : "the default strategy cannot be copied");
		return NULL;
	}
	return chi_strategy_new(&s->table, &s->options);
}

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
