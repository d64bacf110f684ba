// For any devices: one thread sums all parts on the root, and copies the sum to the others.
#include "collective/chunk_transfer.h"

static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) group, (void) kind, (void) bytes;
	return 1;
}

static choir_status gather(chi_chunk *g)
{
	const int members = g->task->algorithm->base.group->members;
	if (g->task->c->kind == CHOIR_BROADCAST)
		return chi_chunk_take_whole(g);
	for (int i = 0; i < members; i++)
		CHOIR_TRY(chi_chunk_take(g, i));
	return chi_chunk_finish(g);
}

static choir_status do_chunk(void *self, const chi_round *round, int member, int64_t index)
{
	chi_chunk_algorithm *r = self;
	chi_chunk_task h;
	chi_chunk g;
	chi_chunk_task_begin(&h, r, round, index, member);
	chi_chunk_begin(&g, &h, round->c[member]->root);
	choir_status status = gather(&g);
	if (status == CHOIR_OK)
		status = chi_chunk_deliver_all(&g, 0, r->base.group->members);
	chi_chunk_end(&g);
	return chi_chunk_task_end(&h, status);
}

static choir_status open_one(void *self, const choir_group *group)
{
	return chi_chunk_algorithm_open(self, group, do_chunk, 1);
}

const choir_cross_device_ops_table chi_reduce_to_one_device_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "reduce_to_one_device",
	.self_size = sizeof(chi_chunk_algorithm),
	.score = score,
	.open = open_one,
	.close = chi_chunk_algorithm_close,
	.join = chi_algorithm_join,
	.wait = chi_chunk_algorithm_wait,
	.abort = chi_algorithm_abort,
	.reset = chi_chunk_algorithm_reset,
};
