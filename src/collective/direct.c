// For devices that share memory. A waiting thread claims a chunk, sums it, writes all results and
// calls the done functions, while it is in its cache.
#include "base/alloc.h"
#include "base/thresholds.h"
#include "collective/chunked_algorithm.h"
#include "collective/tree.h"

typedef struct {
	chi_algorithm base;
	size_t scratch_bytes; // per member: one chunk and the levels of the tree
	char *scratch;
} direct;

static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) kind, (void) bytes;
	for (int i = 0; i < group->members; i++)
		if (!group->devices[i]->host_memory)
			return 0;
	return 100;
}

static void close_direct(void *self)
{
	direct *d = self;
	chi_algorithm_close(self);
	chi_free(d->scratch);
}

static char *target(
		const direct *d, const chi_round *round, int64_t first, size_t size, char *scratch)
{
	for (int i = 0; i < d->base.group->members; i++)
		if (round->c[i]->result != NULL)
			return (char *) round->c[i]->result + (size_t) first * size;
	return scratch;
}

static bool is_nontemporal(const chi_round *round, int members)
{
	const choir_collective *c = round->c[0];
	const int64_t own = c->elements * (int64_t) chi_dtype_size(c->dtype);
	for (int i = 0; i < members; i++)
		if (round->c[i]->done != NULL)
			return false;
	return own >= CHI_NONTEMPORAL_SUM_BYTES || c->batch_bytes >= CHI_NONTEMPORAL_SUM_BYTES;
}

static choir_status do_chunk(void *self, const chi_round *round, int member, int64_t index)
{
	direct *d = self;
	const choir_collective *c = round->c[member];
	int64_t first, count;
	chi_algorithm_chunk(&d->base, c, index, &first, &count);
	const size_t size = chi_dtype_size(c->dtype);
	char *scratch = d->scratch + (size_t) member * d->scratch_bytes;
	if (c->kind == CHOIR_BROADCAST) {
		const choir_collective *root = round->c[c->root];
		const char *data = (const char *) root->partial_sums[0].data + (size_t) first * size;
		return chi_round_deliver(round, d->base.group->members, data, first, count, size);
	}
	char *to = target(d, round, first, size, scratch);
	const chi_chunk_sum w = { .c = round->c,
		.members = d->base.group->members,
		.replicas = d->base.group->replicas,
		.first = first,
		.count = count,
		.to = to,
		.nontemporal = to != scratch && is_nontemporal(round, d->base.group->members),
		.scratch = scratch + CHI_TREE_LEVEL };
	chi_stream stream = { d->base.group->devices[member], c->stream };
	const void *sum;
	CHOIR_TRY(chi_chunk_sum_make(&w, &stream, &sum));
	return chi_round_deliver(round, d->base.group->members, sum, first, count, size);
}

static choir_status open_direct(void *self, const choir_group *group)
{
	direct *d = self;
	d->scratch_bytes = CHI_TREE_LEVEL + chi_tree_scratch(group->replicas);
	d->scratch = chi_alloc_aligned((size_t) group->members * d->scratch_bytes);
	CHOIR_TRY(chi_made(d->scratch));
	return chi_algorithm_open(&d->base, group, do_chunk, 0);
}

const choir_cross_device_ops_table chi_direct_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "direct",
	.self_size = sizeof(direct),
	.score = score,
	.open = open_direct,
	.close = close_direct,
	.join = chi_algorithm_join,
	.wait = chi_algorithm_wait,
	.abort = chi_algorithm_abort,
	.reset = chi_algorithm_reset,
};
