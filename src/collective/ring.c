// One chunk per member is summed on its way around the ring to its owner, and delivered in another
// round, so all links work at once. Unlike in the usual ring, only the two halves of a tree node
// are added (docs/decisions/0042). Of two members, each fetches the other's half.
#include "collective/chunk_transfer.h"

static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) kind;
	const bool long_enough = bytes >= (int64_t) group->members * CHI_CHUNK * 4;
	int min = 2;
	for (int i = 0; i < group->members; i++)
		if (group->devices[i]->host_memory)
			min = 3;
	return chi_group_memories(group) >= min && long_enough ? 20 : 1;
}

static choir_status gather(chi_chunk *g)
{
	const int members = g->task->algorithm->base.group->members, first = g->at;
	if (g->task->c->kind == CHOIR_BROADCAST)
		return chi_chunk_take_whole(g);
	for (int k = 0; k < members; k++) {
		const int next = (first + k) % members;
		if (members > 2)
			CHOIR_TRY(chi_chunk_move(g, next));
		CHOIR_TRY(chi_chunk_take(g, next));
	}
	return chi_chunk_finish(g);
}

static choir_status pass_on(const chi_chunk *g)
{
	const int members = g->task->algorithm->base.group->members;
	int from = g->at;
	const void *data = g->data;
	for (int k = 0; k < members; k++) {
		const int next = (g->at + k) % members;
		const void *shown = NULL;
		CHOIR_TRY(chi_chunk_deliver(g, from, data, next, &shown));
		if (shown != NULL) {
			from = next;
			data = shown;
		}
	}
	return CHOIR_OK;
}

static choir_status do_chunk(void *self, const chi_round *round, int member, int64_t index)
{
	chi_chunk_algorithm *r = self;
	const choir_collective *c = round->c[member];
	const int members = r->base.group->members;
	const int owner = chi_chunk_algorithm_root(r, c, index);
	chi_chunk_task h;
	chi_chunk g;
	chi_chunk_task_begin(&h, r, round, index, member);
	const bool stays = c->kind == CHOIR_BROADCAST || members <= 2;
	chi_chunk_begin(&g, &h, stays ? owner : (owner + 1) % members);
	choir_status status = gather(&g);
	if (status == CHOIR_OK)
		status = pass_on(&g);
	chi_chunk_end(&g);
	return chi_chunk_task_end(&h, status);
}

static choir_status open_ring(void *self, const choir_group *group)
{
	return chi_chunk_algorithm_open(self, group, do_chunk, group->members);
}

const choir_cross_device_ops_table chi_ring_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "ring",
	.self_size = sizeof(chi_chunk_algorithm),
	.score = score,
	.open = open_ring,
	.close = chi_chunk_algorithm_close,
	.join = chi_algorithm_join,
	.wait = chi_chunk_algorithm_wait,
	.abort = chi_algorithm_abort,
	.reset = chi_chunk_algorithm_reset,
};
