// The list of cross-device operations and the choice among them: by name, or by score.
#include "collective/cross_device_ops.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

enum { MAX = 16 };
static choir_cross_device_ops_table known[MAX];
static int registered;

static const choir_cross_device_ops_table *table_at(int i)
{
	static const choir_cross_device_ops_table *const own[] = { &chi_direct_table,
		&chi_reduce_to_one_device_table, &chi_ring_table, &chi_hierarchical_copy_table };
	const int n = (int) (sizeof own / sizeof own[0]);
	return i < n ? own[i] : i - n < registered ? &known[i - n] : NULL;
}

static choir_status no_join(void *self, int member, const choir_collective *c, uint64_t *request)
{
	(void) self, (void) member, (void) request;
	return choir_fail(CHOIR_UNSUPPORTED, "%s: these cross-device operations cannot", c->name);
}

static choir_status no_wait(void *self, int member, uint64_t request, double seconds)
{
	(void) self, (void) member, (void) request, (void) seconds;
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
	if (registered == MAX)
		return choir_fail(CHOIR_INVALID, "cross-device operations: more than %d", MAX);
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

choir_status chi_communicator_open(chi_communicator *g, int members, int replicas,
		choir_device *const *devices, const char *name)
{
	g->base = (choir_group){ sizeof(choir_group), members, replicas, devices };
	const choir_cross_device_ops_table *best = NULL, *t;
	if (name != NULL) {
		CHOIR_TRY(find_by_name(name, &best));
		if (best->score(&g->base, CHOIR_ALL_REDUCE, 1 << 20) <= 0)
			return choir_fail(CHOIR_UNSUPPORTED,
					"cross-device operations \"%s\" cannot serve "
					"these devices",
					name);
	} else {
		int max = 0;
		for (int i = 0; (t = table_at(i)) != NULL; i++) {
			const int score = t->score(&g->base, CHOIR_ALL_REDUCE, 1 << 20);
			if (score > max) {
				max = score;
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
	return best->open(g->self, &g->base);
}

choir_status chi_communicator_check_name(const char *name)
{
	const choir_cross_device_ops_table *named;
	return find_by_name(name, &named);
}

choir_status chi_communicator_open_among_workers(chi_communicator *g, int members,
		choir_device *const *devices, chi_process_group *p, const char *name)
{
	if (name != NULL)
		CHOIR_TRY(chi_communicator_check_name(name));
	g->base = (choir_group){ sizeof(choir_group), members, p->replicas, devices };
	g->self = chi_alloc(chi_multi_worker_table.self_size);
	if (g->self == NULL)
		return choir_error_status();
	g->table = &chi_multi_worker_table;
	chi_multi_worker_set_process_group(g->self, p);
	return g->table->open(g->self, &g->base);
}

void chi_communicator_close(chi_communicator *g)
{
	if (g->self != NULL)
		g->table->close(g->self);
	chi_free(g->self);
	*g = (chi_communicator){ 0 };
}

choir_status chi_communicator_join(
		chi_communicator *g, int member, const choir_collective *c, uint64_t *request)
{
	return g->table->join(g->self, member, c, request);
}

choir_status chi_communicator_wait(
		chi_communicator *g, int member, uint64_t request, double seconds)
{
	return g->table->wait(g->self, member, request, seconds);
}

void chi_communicator_abort(chi_communicator *g)
{
	g->table->abort(g->self);
}

void chi_communicator_reset(chi_communicator *g)
{
	g->table->reset(g->self);
}
