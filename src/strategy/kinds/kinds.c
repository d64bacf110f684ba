// The list of strategies by name, and the slots of tables that their makers left out.
#include "strategy/strategy.h"

#include "base/options.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

enum { MAX = 16 };
static choir_strategy_table known[MAX];
static int registered;

static const choir_strategy_table *const own[] = { &chi_default_table, &chi_one_device_table,
	&chi_mirrored_table, &chi_central_storage_table, &chi_parameter_server_table,
	&chi_multi_worker_mirrored_table };
enum { OWN = sizeof own / sizeof own[0] };

static const choir_strategy_table *transport_at(int i)
{
	return i < OWN ? own[i] : i - OWN < registered ? &known[i - OWN] : NULL;
}

static const choir_strategy_table *find(const char *name)
{
	const choir_strategy_table *t;
	for (int i = 0; (t = transport_at(i)) != NULL; i++)
		if (strcmp(t->name, name) == 0)
			break;
	return t;
}

static int no_devices(void *self, int capacity, choir_device *devices[])
{
	(void) self, (void) capacity, (void) devices;
	choir_fail(CHOIR_UNSUPPORTED, "strategy: its table does not say which devices hold variables");
	return CHOIR_NONE;
}

static int no_place(void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	(void) self, (void) capacity, (void) devices;
	choir_fail(
			CHOIR_UNSUPPORTED, "variable \"%s\": the strategy's table has no slot place", v->name);
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
	choir_strategy_table taken;
	const choir_strategy_table *table = &taken;
	CHOIR_TRY(chi_table_take("strategy", &taken, sizeof taken,
			offsetof(choir_strategy_table, name) + sizeof taken.name, given));
	if (taken.name == NULL || taken.name[0] == '\0')
		return choir_fail(CHOIR_INVALID, "strategy: the table needs a name");
	if (find(table->name) != NULL)
		return choir_fail(CHOIR_INVALID, "strategy \"%s\" is known already", table->name);
	if (registered == MAX)
		return choir_fail(CHOIR_INVALID, "strategy \"%s\": there are %d registered ones already",
				table->name, MAX);
	known[registered++] = *table;
	return CHOIR_OK;
}

choir_strategy_table chi_strategy_table_filled(const choir_strategy_table *table)
{
	choir_strategy_table t = *table;
	t.open = t.open != NULL ? t.open : no_open;
	t.close = t.close != NULL ? t.close : no_close;
	t.parameter_devices = t.parameter_devices != NULL ? t.parameter_devices : no_devices;
	t.non_slot_devices = t.non_slot_devices != NULL ? t.non_slot_devices : t.parameter_devices;
	t.place = t.place != NULL ? t.place : no_place;
	return t;
}

choir_strategy *choir_strategy_new(const char *name, const choir_strategy_options *o)
{
	const choir_strategy_table *t = name == NULL ? NULL : find(name);
	if (t != NULL)
		return chi_strategy_new(t, o);
	chi_text names = { 0 };
	for (int i = 0; (t = transport_at(i)) != NULL; i++)
		chi_text_add(&names, "%s%s", i == 0 ? "" : ", ", t->name);
	choir_fail(CHOIR_NOT_FOUND, "strategy \"%s\" is not known: there are %s",
			name == NULL ? "" : name, names.data == NULL ? "none" : names.data);
	chi_text_free(&names);
	return NULL;
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
