// Cross-device operations in a ring. A collective is cut into as many pieces as there are members,
// and each piece goes once around to be summed, ending at its owner, and once more around to be
// handed out: so all links are used at the same time, and no device carries more than another. A
// ring that adds up as it goes would begin each piece's sum at another replica, and so change its
// bits. Here a piece carries the nodes of the canonical tree that it has gathered: what makes a
// larger node is folded at the station where that becomes possible, the rest travels on side by
// side, and the owner has the tree's sum (docs/decisions/0042).
#include "cross/relay.h"

static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) kind;
	const bool long_enough = bytes >= (int64_t) group->members * CHI_WAY_SLICE * 4;
	return chi_group_memories(group) >= 3 && long_enough ? 20 : 1;
}

static choir_status gather(chi_cargo *g)
{
	const int members = g->haul->relay->way.group->members, first = g->at;
	if (g->haul->c->kind == CHOIR_BROADCAST)
		return chi_cargo_take_whole(g);
	for (int k = 0; k < members; k++) {
		const int next = (first + k) % members;
		CHOIR_TRY(chi_cargo_move(g, next));
		CHOIR_TRY(chi_cargo_take(g, next));
	}
	return chi_cargo_finish(g);
}

// Each member that wants the result passes it on to the next one.
static choir_status hand_on(const chi_cargo *g)
{
	const int members = g->haul->relay->way.group->members;
	int from = g->at;
	const void *data = g->data;
	for (int k = 0; k < members; k++) {
		const int next = (g->at + k) % members;
		const void *shown = NULL;
		CHOIR_TRY(chi_cargo_deliver(g, from, data, next, &shown));
		if (shown != NULL) {
			from = next;
			data = shown;
		}
	}
	return CHOIR_OK;
}

static choir_status piece(void *self, const chi_slot *slot, int member, int64_t index)
{
	chi_relay *r = self;
	const choir_collective *c = slot->c[member];
	const int members = r->way.group->members;
	const int owner = chi_relay_root(r, c, index);
	chi_haul h;
	chi_cargo g;
	chi_haul_begin(&h, r, slot, index, member);
	chi_cargo_begin(&g, &h, c->kind == CHOIR_BROADCAST ? owner : (owner + 1) % members);
	choir_status status = gather(&g);
	if (status == CHOIR_OK)
		status = hand_on(&g);
	chi_cargo_end(&g);
	return chi_haul_end(&h, status);
}

static choir_status open_ring(void *self, const choir_group *group)
{
	return chi_relay_open(self, group, piece, group->members);
}

const choir_cross_device_ops_table chi_ring_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "ring",
	.self_size = sizeof(chi_relay),
	.score = score,
	.open = open_ring,
	.close = chi_relay_close,
	.join = chi_way_join,
	.wait = chi_way_wait,
	.abort = chi_way_abort,
	.reset = chi_way_reset,
};
