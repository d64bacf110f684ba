// Cross-device operations for any devices: whoever comes first when all have joined does the whole
// collective. The parts are copied to one device, summed there in the canonical tree, and the sum
// is copied to every device that wants it. Right everywhere, fast nowhere: what a device with a
// better way is measured against.
#include "cross/relay.h"

static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) group, (void) kind, (void) bytes;
	return 1;
}

static choir_status gather(chi_cargo *g)
{
	const int members = g->haul->relay->way.group->members;
	if (g->haul->c->kind == CHOIR_BROADCAST)
		return chi_cargo_take_whole(g);
	for (int i = 0; i < members; i++)
		CHOIR_TRY(chi_cargo_take(g, i));
	return chi_cargo_finish(g);
}

static choir_status piece(void *self, const chi_slot *slot, int member, int64_t index)
{
	chi_relay *r = self;
	chi_haul h;
	chi_cargo g;
	chi_haul_begin(&h, r, slot, index, member);
	chi_cargo_begin(&g, &h, slot->c[member]->root);
	choir_status status = gather(&g);
	if (status == CHOIR_OK)
		status = chi_cargo_deliver_all(&g, 0, r->way.group->members);
	chi_cargo_end(&g);
	return chi_haul_end(&h, status);
}

static choir_status open_one(void *self, const choir_group *group)
{
	return chi_relay_open(self, group, piece, 1);
}

const choir_cross_device_ops_table chi_reduce_to_one_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "reduce_to_one_device",
	.self_size = sizeof(chi_relay),
	.score = score,
	.open = open_one,
	.close = chi_relay_close,
	.join = chi_way_join,
	.wait = chi_way_wait,
	.abort = chi_way_abort,
	.reset = chi_way_reset,
};
