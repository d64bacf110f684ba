// The registry of cross-device operations: finds one by name or by score.
#include "collective/cross_device_ops.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/registry.h"
#include "base/status.h"
#include "device/cuda_loader.h"

#include <string.h>

static const void *const builtin[] = { &chi_direct_table, &chi_reduce_to_one_device_table,
	&chi_ring_table, &chi_hierarchical_copy_table, NULL };
static choir_cross_device_ops_table registered[CHI_REGISTRY_MAX];
static chi_registry registry = { "cross-device operations", sizeof registered[0], builtin,
	registered, { 0 } };

static choir_status no_join(void *self, int member, const choir_collective *c, uint64_t *request)
{
	(void) self, (void) member, (void) request;
	return choir_fail(
			CHOIR_UNSUPPORTED, "%s: the cross-device operations' table has no join", c->name);
}

static choir_status no_wait(void *self, int member, uint64_t request, double seconds)
{
	(void) self, (void) member, (void) request, (void) seconds;
	return choir_fail(CHOIR_UNSUPPORTED, "the cross-device operations' table has no wait");
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
	choir_cross_device_ops_table t;
	CHOIR_TRY(chi_table_take(registry.what, &t, sizeof t, sizeof(chi_table_head), given));
	t.score = t.score != NULL ? t.score : no_score;
	t.open = t.open != NULL ? t.open : no_open;
	t.close = t.close != NULL ? t.close : nothing;
	t.join = t.join != NULL ? t.join : no_join;
	t.wait = t.wait != NULL ? t.wait : no_wait;
	t.abort = t.abort != NULL ? t.abort : nothing;
	t.reset = t.reset != NULL ? t.reset : nothing;
	return chi_registry_add(&registry, &t) != NULL ? CHOIR_OK : choir_error_status();
}

// libchoir-cuda's have all slots.
static const choir_cross_device_ops_table *table_at(int i)
{
	const choir_cuda_plugin *cuda = chi_cuda_plugin();
	int own = 0;
	for (; own <= i && chi_registry_at(&registry, own) != NULL; own++)
		;
	if (own > i)
		return chi_registry_at(&registry, i);
	return cuda == NULL ? NULL : cuda->cross_device_ops((size_t) (i - own));
}

static const choir_cross_device_ops_table *find_table(const char *name)
{
	const choir_cuda_plugin *cuda = chi_cuda_plugin();
	const choir_cross_device_ops_table *t = NULL;
	for (size_t i = 0; cuda != NULL && (t = cuda->cross_device_ops(i)) != NULL; i++)
		if (strcmp(t->name, name) == 0)
			return t;
	return chi_registry_find(&registry, name);
}

int chi_group_memories(const choir_group *group)
{
	int own = 0;
	for (int i = 0; i < group->members; i++) {
		bool shared = false;
		for (int k = 0; k < i && !shared; k++)
			shared = chi_device_shares(group->devices[i], group->devices[k]);
		own += !shared;
	}
	return own;
}

choir_status chi_communicator_open(chi_communicator *g, int members, int replicas,
		choir_device *const *devices, const char *name)
{
	g->base = (choir_group){ sizeof(choir_group), members, replicas, devices };
	const choir_cross_device_ops_table *best = NULL, *t;
	if (name != NULL) {
		best = find_table(name);
		if (best == NULL)
			return CHOIR_NOT_FOUND;
		if (best->score(&g->base, CHOIR_ALL_REDUCE, 1 << 20) <= 0)
			return choir_fail(CHOIR_UNSUPPORTED,
					"cross-device operations \"%s\" do not support the strategy's devices", name);
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
		return choir_fail(
				CHOIR_UNSUPPORTED, "no cross-device operations support the strategy's devices");
	g->self = chi_alloc(best->self_size);
	CHOIR_TRY(chi_made(g->self));
	g->table = best;
	return best->open(g->self, &g->base);
}

choir_status chi_communicator_check_name(const char *name)
{
	return find_table(name) != NULL ? CHOIR_OK : CHOIR_NOT_FOUND;
}

void chi_communicator_close(chi_communicator *g)
{
	if (g->self != NULL)
		g->table->close(g->self);
	chi_free(g->self);
	*g = (chi_communicator){ 0 };
}
