// Cross-device operations of devices that all share memory: nothing is sent. Who waits takes the
// next slice, small enough for the cache, sums it over all parts in the canonical tree, writes it
// to every result that is wanted and calls whoever waits for slices, so that an update can follow
// while the slice is still in the cache.
#include "cross/tree.h"
#include "cross/way.h"

#include "base/alloc.h"
#include "op/vector.h"

#include <string.h>

enum { SLICE = CHI_WAY_SLICE };

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

// A walk over all parts of all members, in the order of replicas.
typedef struct {
	const chi_slot *slot;
	int members, member;
	size_t index;
	choir_dtype dtype;
	size_t size; // of an element
	int64_t first, count;
	bool broken;
} walk;

static const choir_part *next_part(walk *w)
{
	while (w->member < w->members && w->index == w->slot->c[w->member]->n) {
		w->member++;
		w->index = 0;
	}
	return w->member == w->members ? NULL : &w->slot->c[w->member]->parts[w->index];
}

// The sum of the node [lo, hi): a part as it is, or the sum of its halves in to.
static const void *sum_node(walk *w, int lo, int hi, char *to, char *spare)
{
	const choir_part *p = next_part(w);
	if (p != NULL && p->lo == lo && p->hi == hi) {
		w->index++;
		return (const char *) p->data + (size_t) w->first * w->size;
	}
	if (p == NULL || hi - lo < 2 || p->lo != lo) {
		w->broken = true;
		return to;
	}
	const int middle = chi_tree_split(lo, hi);
	const void *left = sum_node(w, lo, middle, to, spare);
	const void *right = w->broken ? to : sum_node(w, middle, hi, spare, spare + SLICE * 8);
	if (!w->broken)
		chi_vector_add(w->dtype, to, left, right, w->count);
	return to;
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

// Gives a finished slice to every other result and calls those who wait for it.
static choir_status hand_out(const direct *d, const chi_slot *slot, const void *data,
		int64_t first, int64_t count, size_t size)
{
	for (int i = 0; i < d->way.group->members; i++) {
		const choir_collective *c = slot->c[i];
		if (chi_slot_first_with(slot, i) != i)
			continue;
		const void *shown = data;
		if (c->result != NULL) {
			char *own = (char *) c->result + (size_t) first * size;
			if (own != data)
				memcpy(own, data, (size_t) count * size);
			shown = own;
		}
		if (c->done != NULL)
			CHOIR_TRY(c->done(c->user, first, count, shown));
	}
	return CHOIR_OK;
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
		return hand_out(d, slot, data, first, count, size);
	}
	walk w = { .slot = slot, .members = d->way.group->members, .dtype = c->dtype, .size = size,
		.first = first, .count = count };
	char *to = target(d, slot, first, size, scratch);
	const void *sum = sum_node(&w, 0, d->way.group->replicas, to, scratch + SLICE * 8);
	if (w.broken || next_part(&w) != NULL)
		return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas", c->name,
				d->way.group->replicas);
	if (c->divisor != 1) {
		if (sum != to)
			memcpy(to, sum, (size_t) count * size);
		sum = to;
		chi_stream stream = { d->way.group->devices[member], c->stream };
		CHOIR_TRY(chi_way_divide(&stream, c->dtype, to, c->divisor, count));
	}
	return hand_out(d, slot, sum, first, count, size);
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
