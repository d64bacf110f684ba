// The list of cross-device operations and the choice among them: by name, or by score.
#include "cross/group.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

enum { MOST = 16 };
static choir_cross_device_ops_table known[MOST];
static int registered;

static const choir_cross_device_ops_table *table_at(int i)
{
	static const choir_cross_device_ops_table *const own[] = { &chi_direct_table,
		&chi_reduce_to_one_table, &chi_ring_table, &chi_hierarchical_copy_table };
	const int n = (int) (sizeof own / sizeof own[0]);
	return i < n ? own[i] : i - n < registered ? &known[i - n] : NULL;
}

static choir_status no_join(void *self, int member, const choir_collective *c, uint64_t *ticket)
{
	(void) self, (void) member, (void) ticket;
	return choir_fail(CHOIR_UNSUPPORTED, "%s: these cross-device operations cannot", c->name);
}

static choir_status no_wait(void *self, int member, uint64_t ticket, double seconds)
{
	(void) self, (void) member, (void) ticket, (void) seconds;
	return choir_fail(CHOIR_UNSUPPORTED, "these cross-device operations cannot wait");
}

static choir_status no_open(void *self, const choir_group *group)
{
	(void) self, (void) group;
	return CHOIR_OK;
}

static int no_score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) group, (void) kind, (void) bytes;
	return 0;
}

static void nothing(void *self)
{
	(void) self;
}

choir_status choir_register_cross_device_ops(const choir_cross_device_ops_table *given)
{
	choir_cross_device_ops_table own;
	const choir_cross_device_ops_table *table = &own;
	CHOIR_TRY(chi_table_take("cross-device operations", &own, sizeof own,
			offsetof(choir_cross_device_ops_table, name) + sizeof own.name, given));
	if (own.name == NULL)
		return choir_fail(CHOIR_INVALID, "cross-device operations: the table needs a name");
	for (int i = 0; table_at(i) != NULL; i++)
		if (strcmp(table_at(i)->name, table->name) == 0)
			return choir_fail(CHOIR_INVALID, "cross-device operations \"%s\" are known already",
					table->name);
	if (registered == MOST)
		return choir_fail(CHOIR_INVALID, "cross-device operations: more than %d", MOST);
	choir_cross_device_ops_table *t = &known[registered];
	*t = *table;
	t->score = t->score != NULL ? t->score : no_score;
	t->open = t->open != NULL ? t->open : no_open;
	t->close = t->close != NULL ? t->close : nothing;
	t->join = t->join != NULL ? t->join : no_join;
	t->wait = t->wait != NULL ? t->wait : no_wait;
	t->abort = t->abort != NULL ? t->abort : nothing;
	t->reset = t->reset != NULL ? t->reset : nothing;
	registered++;
	return CHOIR_OK;
}

static choir_status find_by_name(const char *name, const choir_cross_device_ops_table **out)
{
	for (int i = 0; (*out = table_at(i)) != NULL; i++)
		if (strcmp((*out)->name, name) == 0)
			return CHOIR_OK;
	chi_text names = { 0 };
	for (int i = 0; table_at(i) != NULL; i++)
		chi_text_add(&names, "%s%s", i == 0 ? "" : ", ", table_at(i)->name);
	choir_fail(CHOIR_NOT_FOUND, "cross-device operations \"%s\" are not known: there are %s", name,
			names.data == NULL ? "none" : names.data);
	chi_text_free(&names);
	return CHOIR_NOT_FOUND;
}

choir_status chi_group_open(
		chi_group *g, int members, int replicas, choir_device *const *devices, const char *name)
{
	g->shown = (choir_group){ sizeof(choir_group), members, replicas, devices };
	const choir_cross_device_ops_table *best = NULL, *t;
	if (name != NULL) {
		CHOIR_TRY(find_by_name(name, &best));
		if (best->score(&g->shown, CHOIR_ALL_REDUCE, 1 << 20) <= 0)
			return choir_fail(CHOIR_UNSUPPORTED,
					"cross-device operations \"%s\" cannot serve "
					"these devices",
					name);
	} else {
		int most = 0;
		for (int i = 0; (t = table_at(i)) != NULL; i++) {
			const int score = t->score(&g->shown, CHOIR_ALL_REDUCE, 1 << 20);
			if (score > most) {
				most = score;
				best = t;
			}
		}
	}
	if (best == NULL)
		return choir_fail(CHOIR_UNSUPPORTED, "no cross-device operations can serve these devices");
	g->self = chi_alloc(best->self_size);
	if (g->self == NULL)
		return choir_error_status();
	g->table = best;
	return best->open(g->self, &g->shown);
}

choir_status chi_group_known(const char *name)
{
	const choir_cross_device_ops_table *named;
	return find_by_name(name, &named);
}

choir_status chi_group_open_among(
		chi_group *g, int members, choir_device *const *devices, chi_peers *p, const char *name)
{
	if (name != NULL)
		CHOIR_TRY(chi_group_known(name));
	g->shown = (choir_group){ sizeof(choir_group), members, p->replicas, devices };
	g->self = chi_alloc(chi_workers_table.self_size);
	if (g->self == NULL)
		return choir_error_status();
	g->table = &chi_workers_table;
	chi_workers_tell(g->self, p);
	return g->table->open(g->self, &g->shown);
}

void chi_group_close(chi_group *g)
{
	if (g->self != NULL)
		g->table->close(g->self);
	chi_free(g->self);
	*g = (chi_group){ 0 };
}

choir_status chi_group_join(chi_group *g, int member, const choir_collective *c, uint64_t *ticket)
{
	return g->table->join(g->self, member, c, ticket);
}

choir_status chi_group_wait(chi_group *g, int member, uint64_t ticket, double seconds)
{
	return g->table->wait(g->self, member, ticket, seconds);
}

void chi_group_abort(chi_group *g)
{
	g->table->abort(g->self);
}

void chi_group_reset(chi_group *g)
{
	g->table->reset(g->self);
}
