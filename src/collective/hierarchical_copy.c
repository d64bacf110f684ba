// For two halves of devices with slow links between them. In each half a root gathers the partial
// sums; one root adds the other's: a chunk crosses the slow link twice (docs/decisions/0042).
#include "collective/chunk_transfer.h"

static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) kind, (void) bytes;
	return chi_group_memories(group) >= 4 ? 10 : 1;
}

typedef struct {
	int root, first, last;
} half;

static void split(int members, int root, half *own, half *other)
{
	const int middle = (members + 1) / 2;
	const half low = { root % middle, 0, middle };
	half high = { middle, middle, members };
	if (members > middle)
		high.root += root % (members - middle);
	const bool is_low = root < middle;
	*own = is_low ? low : high;
	*other = is_low ? high : low;
	own->root = root;
}

static choir_status gather_half(chi_chunk *g, const half *h)
{
	for (int i = h->first; i < h->last; i++)
		CHOIR_TRY(chi_chunk_take(g, i));
	return CHOIR_OK;
}

static choir_status gather(chi_chunk *g, const half *own, const half *other)
{
	if (g->task->c->kind == CHOIR_BROADCAST)
		return chi_chunk_take_whole(g);
	CHOIR_TRY(gather_half(g, own));
	if (other->first < other->last) {
		chi_chunk theirs;
		chi_chunk_begin(&theirs, g->task, other->root);
		choir_status status = gather_half(&theirs, other);
		if (status == CHOIR_OK)
			status = chi_chunk_join(g, &theirs);
		chi_chunk_end(&theirs);
		CHOIR_TRY(status);
	}
	return chi_chunk_finish(g);
}

static choir_status deliver_to_members(const chi_chunk *g, const half *own, const half *other)
{
	int from = g->at;
	const void *data = g->data, *shown = NULL;
	CHOIR_TRY(chi_chunk_deliver_all(g, own->first, own->last));
	if (other->first == other->last)
		return CHOIR_OK;
	CHOIR_TRY(chi_chunk_deliver(g, from, data, other->root, &shown));
	if (shown != NULL) {
		from = other->root;
		data = shown;
	}
	for (int i = other->first; i < other->last; i++)
		if (i != other->root)
			CHOIR_TRY(chi_chunk_deliver(g, from, data, i, NULL));
	return CHOIR_OK;
}

static choir_status do_chunk(void *self, const chi_round *round, int member, int64_t index)
{
	chi_chunk_algorithm *r = self;
	const choir_collective *c = round->c[member];
	const int members = r->base.group->members;
	const int root = chi_chunk_algorithm_root(r, c, index);
	half own, other;
	split(members, root, &own, &other);
	chi_chunk_task h;
	chi_chunk g;
	chi_chunk_task_begin(&h, r, round, index, member);
	chi_chunk_begin(&g, &h, root);
	choir_status status = gather(&g, &own, &other);
	if (status == CHOIR_OK)
		status = deliver_to_members(&g, &own, &other);
	chi_chunk_end(&g);
	return chi_chunk_task_end(&h, status);
}

static choir_status open_hierarchical(void *self, const choir_group *group)
{
	return chi_chunk_algorithm_open(self, group, do_chunk, group->members);
}

const choir_cross_device_ops_table chi_hierarchical_copy_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "hierarchical_copy",
	.self_size = sizeof(chi_chunk_algorithm),
	.score = score,
	.open = open_hierarchical,
	.close = chi_chunk_algorithm_close,
	.join = chi_algorithm_join,
	.wait = chi_chunk_algorithm_wait,
	.abort = chi_algorithm_abort,
	.reset = chi_chunk_algorithm_reset,
};
