// Options of communication: what a call says wins, then what the strategy was made with.
#include "strategy/cross/sum.h"

#include "base/alloc.h"
#include "base/options.h"

#include <string.h>

choir_status chi_communication_check(
		const choir_communication_options *o, choir_communication_options *all)
{
	CHOIR_TRY(chi_options_take("communication: the options'", all, sizeof *all, o));
	if (all->bytes_per_pack < 0 || all->num_packs < 0)
		return choir_fail(CHOIR_INVALID, "communication: %s %lld: 0 or more are needed",
				all->num_packs < 0 ? "num_packs" : "bytes_per_pack",
				(long long) (all->num_packs < 0 ? all->num_packs : all->bytes_per_pack));
	if (all->bytes_per_pack > 0 && all->num_packs > 0)
		return choir_fail(CHOIR_INVALID,
				"communication: bytes_per_pack %lld and num_packs %lld: "
				"packs are cut by one of them",
				(long long) all->bytes_per_pack, (long long) all->num_packs);
	if (!(all->timeout >= 0) && all->timeout != CHOIR_NONE)
		return choir_fail(CHOIR_INVALID,
				"communication: a timeout of %g seconds: 0 or more, or CHOIR_NONE, is needed",
				all->timeout);
	if ((unsigned) all->slices > CHOIR_SLICES_SMALLEST)
		return choir_fail(CHOIR_INVALID,
				"communication: slices %d: CONCATENATED, MERGED and "
				"SMALLEST are known",
				(int) all->slices);
	return CHOIR_OK;
}

// The group that a name stands for, opened when it is first asked for.
static chi_communicator *find_group(choir_strategy *s, const char *name)
{
	if (name == NULL || strcmp(name, "auto") == 0 || strcmp(name, s->group.table->name) == 0)
		return &s->group;
	for (chi_more_groups *g = s->more_groups; g != NULL; g = g->next)
		if (strcmp(name, g->group.table->name) == 0)
			return &g->group;
	if (s->process_group != NULL) // one way between workers, whatever it is called
		return chi_communicator_check_name(name) == CHOIR_OK ? &s->group : NULL;
	chi_more_groups *g = chi_alloc(sizeof *g);
	if (g == NULL)
		return NULL;
	if (chi_communicator_open(&g->group, s->lanes, s->replicas, s->device, name) != CHOIR_OK) {
		chi_communicator_close(&g->group);
		chi_free(g);
		return NULL;
	}
	g->next = s->more_groups;
	s->more_groups = g;
	return &g->group;
}

choir_status chi_ways_find(choir_strategy *s, const choir_communication_options *o, chi_ways *ways)
{
	choir_communication_options call;
	CHOIR_TRY(chi_communication_check(o, &call));
	const choir_communication_options *own = &s->communication;
	const bool packs = call.bytes_per_pack != 0 || call.num_packs != 0;
	ways->bytes_per_pack = packs ? call.bytes_per_pack : own->bytes_per_pack;
	ways->num_packs = packs ? call.num_packs : own->num_packs;
	ways->timeout = call.timeout != 0 ? call.timeout
			: own->timeout != 0		  ? own->timeout
									  : s->timeout;
	ways->slices = call.slices != CHOIR_SLICES_CONCATENATED ? call.slices : own->slices;
	ways->group = find_group(s, call.implementation);
	return ways->group == NULL ? choir_error_status() : CHOIR_OK;
}
