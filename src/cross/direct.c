// Cross-device operations of devices that all share memory: nothing is sent. Who waits takes the
// next slice, small enough for the cache, sums it over all parts in the canonical tree, writes it
// to every result that is wanted and calls whoever waits for slices, so that an update can follow
// while the slice is still in the cache.
#include "cross/host.h"
#include "cross/tree.h"

#include "base/alloc.h"

enum { SLICE = CHI_WAY_SLICE };

// Results of so many bytes, with what they are made of, are more than the caches of most machines.
enum { PAST_CACHES = 32 << 20 };

typedef struct {
	chi_way way; // first, so that the table's slots are its
	int levels;
	char *scratch; // for each member: levels slices of 8-byte elements
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
	chi_way_close(self);
	chi_free(d->scratch);
}

// The memory in which a slice's sum is made: the first result there is, or scratch.
static char *target(
		const direct *d, const chi_slot *slot, int64_t first, size_t size, char *scratch)
{
	for (int i = 0; i < d->way.group->members; i++)
		if (slot->c[i]->result != NULL)
			return (char *) slot->c[i]->result + (size_t) first * size;
	return scratch;
}

// Whether the result of slot goes past the caches: not where somebody waits for its slices.
static bool goes_past(const chi_slot *slot, int members)
{
	const choir_collective *c = slot->c[0];
	const int64_t own = c->elements * (int64_t) chi_dtype_size(c->dtype);
	for (int i = 0; i < members; i++)
		if (slot->c[i]->done != NULL)
			return false;
	return own >= PAST_CACHES || c->together >= PAST_CACHES;
}

static choir_status piece(void *self, const chi_slot *slot, int member, int64_t index)
{
	direct *d = self;
	const choir_collective *c = slot->c[member];
	int64_t first, count;
	chi_way_cut(&d->way, c, index, &first, &count);
	const size_t size = chi_dtype_size(c->dtype);
	char *scratch = d->scratch + (size_t) member * (size_t) d->levels * SLICE * 8;
	if (c->kind == CHOIR_BROADCAST) {
		const choir_collective *root = slot->c[c->root];
		const char *data = (const char *) root->parts[0].data + (size_t) first * size;
		return chi_hand_out(slot, d->way.group->members, data, first, count, size);
	}
	char *to = target(d, slot, first, size, scratch);
	const chi_slice_sum w = { .c = slot->c,
		.members = d->way.group->members,
		.replicas = d->way.group->replicas,
		.first = first,
		.count = count,
		.to = to,
		.past = to != scratch && goes_past(slot, d->way.group->members),
		.scratch = scratch + SLICE * 8 };
	chi_stream stream = { d->way.group->devices[member], c->stream };
	const void *sum;
	CHOIR_TRY(chi_way_sum(&w, &stream, &sum));
	return chi_hand_out(slot, d->way.group->members, sum, first, count, size);
}

static choir_status open_direct(void *self, const choir_group *group)
{
	direct *d = self;
	d->levels = chi_tree_depth(group->replicas) + 1;
	d->scratch = chi_alloc_aligned((size_t) group->members * (size_t) d->levels * SLICE * 8);
	if (d->scratch == NULL)
		return choir_error_status();
	return chi_way_open(&d->way, group, piece, 0);
}

const choir_cross_device_ops_table chi_direct_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "direct",
	.self_size = sizeof(direct),
	.score = score,
	.open = open_direct,
	.close = close_direct,
	.join = chi_way_join,
	.wait = chi_way_wait,
	.abort = chi_way_abort,
	.reset = chi_way_reset,
};
