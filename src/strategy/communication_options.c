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

// The communicator that a name stands for, opened when it is first asked for.
static chi_communicator *find_communicator(choir_strategy *s, const char *name)
{
	if (name == NULL || strcmp(name, "auto") == 0 ||
			strcmp(name, s->communicator.table->name) == 0)
		return &s->communicator;
	for (chi_more_communicators *g = s->more_communicators; g != NULL; g = g->next)
		if (strcmp(name, g->communicator.table->name) == 0)
			return &g->communicator;
	if (s->process_group != NULL) // one way between workers, whatever it is called
		return chi_communicator_check_name(name) == CHOIR_OK ? &s->communicator : NULL;
	chi_more_communicators *g = chi_alloc(sizeof *g);
	if (g == NULL)
		return NULL;
	if (chi_communicator_open(&g->communicator, s->devices, s->replicas, s->device, name) !=
			CHOIR_OK) {
		chi_communicator_close(&g->communicator);
		chi_free(g);
		return NULL;
	}
	g->next = s->more_communicators;
	s->more_communicators = g;
	return &g->communicator;
}

choir_status chi_communication_resolve(
		choir_strategy *s, const choir_communication_options *o, chi_communication *communication)
{
	choir_communication_options call;
	CHOIR_TRY(chi_communication_check(o, &call));
	const choir_communication_options *own = &s->communication;
	const bool packs = call.bytes_per_pack != 0 || call.num_packs != 0;
	communication->bytes_per_pack = packs ? call.bytes_per_pack : own->bytes_per_pack;
	communication->num_packs = packs ? call.num_packs : own->num_packs;
	communication->timeout = call.timeout != 0 ? call.timeout
			: own->timeout != 0				   ? own->timeout
											   : s->timeout;
	communication->slices = call.slices != CHOIR_SLICES_CONCATENATED ? call.slices : own->slices;
	communication->communicator = find_communicator(s, call.implementation);
	return communication->communicator == NULL ? choir_error_status() : CHOIR_OK;
}
