// Cross-device operations of one worker of several: first the devices here, then the workers. Who
// waits goes through up to three meetings: in the first, slices of what the devices have are added
// up to this worker's nodes of the tree, in the second one thread exchanges them with the other
// workers, and in the third slices of the whole sum are handed out. A device alone has its nodes
// already, and does the rest in one meeting. Memory that the host may not touch is copied to it
// and back.
//
// What a message costs is mostly that it is one. So where all workers have one device, they
// bundle: small sums that were joined already when the first of them is waited for are exchanged
// as one, laid behind each other. The program joins and waits at the same places everywhere, and
// one thread does it: so all bundle the same. Of several devices nobody knows which has joined
// what.
//
// The exchange is a piece of a meeting like any other: so nobody who gives up takes memory away
// that is being sent.
#include "base/alloc.h"
#include "base/lock.h"
#include "base/philox.h"
#include "base/size.h"
#include "cross/host.h"
#include "cross/tree.h"

#include <stdio.h>
#include <string.h>

enum { BELOW, BETWEEN, ABOVE, MEETINGS };
enum { MOST_BYTES = 64 << 10, BUNDLE_BYTES = 1 << 20 }; // of a sum in a bundle, and of that

typedef struct {
	const choir_group *group;
	chi_peers *peers;
	bool alone, staged; // one device of host memory; a device of other memory
	bool bundles; // all workers are alone
	int nodes; // of this worker
	chi_meeting meeting[MEETINGS]; // alone: only BETWEEN
	chi_stream **stream; // staged: of each member, for copies
	choir_collective *shown; // staged: what members joined with, in host memory
	const choir_collective **here; // staged: of each member
	choir_part *part; // this worker's nodes
	char *spare; // of each member, for slices on the levels of the tree
	chi_mutex lock; // of growing what is kept
	chi_kept parts, node, total;
	const char *sum; // of the collective under way
	chi_atomic32 exchanging; // 1 while somebody exchanges with other workers
	// Alone: what was joined, and of what was exchanged the sums; the ticket that is waited for.
	const choir_collective *waits[CHI_MEETING_SLOTS];
	const char *sums[CHI_MEETING_SLOTS];
	uint64_t joined, exchanged, ticket;
} workers;

// The meetings that there are.
static int first_of(const workers *w)
{
	return w->alone ? BETWEEN : BELOW;
}

static int last_of(const workers *w)
{
	return w->alone ? BETWEEN : ABOVE;
}

void chi_workers_tell(void *self, chi_peers *p)
{
	((workers *) self)->peers = p;
}

static size_t spare_of_one(const workers *w)
{
	return (size_t) (chi_tree_depth(w->group->replicas) + 1) * CHI_WALK_LEVEL;
}

static choir_status open_streams(workers *w)
{
	const size_t n = (size_t) w->group->members;
	w->stream = chi_alloc_array(n, sizeof *w->stream);
	w->shown = chi_alloc_array(n, sizeof *w->shown);
	w->here = chi_alloc_array(n, sizeof(choir_collective *));
	if (w->stream == NULL || w->shown == NULL || w->here == NULL)
		return choir_error_status();
	for (size_t i = 0; i < n; i++) {
		w->here[i] = &w->shown[i];
		if ((w->stream[i] = chi_stream_new(w->group->devices[i])) == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

// What all workers must know of the devices of all.
typedef struct {
	int alone, host;
} devices_of_one;

static choir_status compare_devices(workers *w)
{
	chi_peers *p = w->peers;
	const devices_of_one own = { w->alone, !w->staged };
	devices_of_one *all = chi_alloc_array((size_t) p->workers, sizeof *all);
	if (all == NULL)
		return choir_error_status();
	const choir_status status = chi_peers_gather(p, &own, sizeof own, all, "devices");
	w->bundles = p->host = true;
	for (int i = 0; status == CHOIR_OK && i < p->workers; i++) {
		w->bundles = w->bundles && all[i].alone != 0;
		p->host = p->host && all[i].host != 0;
	}
	chi_free(all);
	return status;
}

// Meetings end from the last to the first, so that who is done with one finds the next one closed.
static void end_meetings(workers *w)
{
	for (int i = last_of(w); i >= first_of(w); i--)
		chi_meeting_abort(&w->meeting[i]);
}

static void give_up(workers *w)
{
	if (choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_STATE, "a worker has stopped in the middle of a collective");
	chi_peers_give_up(w->peers);
}

// A wait has failed. If only because somebody else here has failed, that one tells the others.
static void abort_wait(void *self)
{
	if (choir_error_status() != CHOIR_CANCELLED)
		give_up(self);
	end_meetings(self);
}

// Somebody here has failed, and tells the others when nobody here is in a collective any more: so
// who is, and waits for them, is ended first.
static void abort_workers(void *self)
{
	workers *w = self;
	end_meetings(w);
	if (chi_atomic32_load(&w->exchanging) != 0)
		give_up(w);
}

static choir_status open_workers(void *self, const choir_group *group)
{
	workers *w = self;
	const chi_peers *p = w->peers;
	const size_t n = (size_t) group->members;
	w->group = group;
	for (int i = 0; i < group->members; i++)
		w->staged = w->staged || !group->devices[i]->host_memory;
	w->alone = group->members == 1 && !w->staged;
	w->nodes = chi_peers_nodes(p, p->worker);
	chi_mutex_init(&w->lock, CHI_RANK_CROSS, "workers");
	w->part = chi_alloc_array((size_t) w->nodes, sizeof *w->part);
	w->spare = chi_alloc_aligned(n * spare_of_one(w));
	if (w->part == NULL || w->spare == NULL)
		return choir_error_status();
	memcpy(w->part, p->part + p->node[p->worker], (size_t) w->nodes * sizeof *w->part);
	for (int i = first_of(w); i <= last_of(w); i++) {
		CHOIR_TRY(chi_meeting_open(&w->meeting[i], group->members));
		w->meeting[i].end = abort_wait;
	}
	if (w->staged)
		CHOIR_TRY(open_streams(w));
	return compare_devices(w);
}

static void close_workers(void *self)
{
	workers *w = self;
	if (w->group == NULL)
		return;
	if (w->shown != NULL)
		chi_free((void *) (uintptr_t) w->shown[0].parts);
	for (int i = 0; i < MEETINGS; i++)
		chi_meeting_close(&w->meeting[i]);
	for (int i = 0; w->stream != NULL && i < w->group->members; i++)
		chi_stream_free(w->stream[i]);
	chi_mutex_destroy(&w->lock);
	void *all[] = { w->stream, w->shown, (void *) w->here, w->part, w->spare, w->parts.memory,
		w->node.memory, w->total.memory };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		chi_free(all[i]);
}

// Room for so many times the elements of c. Nobody looks at what an earlier collective left there:
// all of its pieces are done before anybody gets to this one's.
static choir_status keep_room(workers *w, chi_kept *k, size_t times, const choir_collective *c)
{
	size_t bytes;
	if (!chi_size_multiply((size_t) c->elements, chi_dtype_size(c->dtype), &bytes) ||
			!chi_size_multiply(times, bytes, &bytes))
		return choir_fail(CHOIR_NO_MEMORY, "%s: too many elements", c->name);
	chi_mutex_lock(&w->lock);
	const bool there = chi_keep(k, bytes);
	chi_mutex_unlock(&w->lock);
	return there ? CHOIR_OK : choir_error_status();
}

// ---- Below: what the devices of this worker have.

static int64_t slices_of(const choir_collective *c)
{
	return c->elements <= 0 ? 1 : (c->elements - 1) / CHI_WAY_SLICE + 1;
}

static int64_t count_of(const choir_collective *c, int64_t first)
{
	return c->elements - first < CHI_WAY_SLICE ? c->elements - first : CHI_WAY_SLICE;
}

// Elements first .. of this worker's nodes.
static choir_status add_slice(workers *w, const choir_collective *const *c, int by, int64_t first)
{
	return chi_walk_nodes(c, w->group->members, first, (size_t) w->nodes, w->part, w->node.memory,
			w->spare + (size_t) by * spare_of_one(w));
}

// Brings what all members have to the host.
static choir_status stage(workers *w, const chi_slot *slot)
{
	const size_t size = chi_dtype_size(slot->c[0]->dtype);
	const size_t bytes = (size_t) slot->c[0]->elements * size;
	size_t parts = 0, room;
	for (int i = 0; i < w->group->members; i++)
		parts += slot->c[i]->n;
	CHOIR_TRY(keep_room(w, &w->parts, parts, slot->c[0]));
	if (!chi_size_multiply(parts, sizeof(choir_part), &room))
		return choir_fail(CHOIR_NO_MEMORY, "%s: too many parts", slot->c[0]->name);
	choir_part *part = chi_alloc(room + 1);
	if (part == NULL)
		return choir_error_status();
	chi_free((void *) (uintptr_t) w->shown[0].parts);
	w->shown[0].parts = part;
	char *to = w->parts.memory;
	choir_device *host = choir_device_find("cpu:0");
	for (int i = 0; i < w->group->members; i++) {
		const choir_collective *c = slot->c[i];
		choir_device *from = w->group->devices[i];
		chi_stream made_on = { from, c->stream };
		if (!from->host_memory)
			CHOIR_TRY(chi_stream_wait_to(&made_on, slot->mark[i]));
		w->shown[i] = *c;
		w->shown[i].parts = part;
		for (size_t k = 0; k < c->n; k++, to += bytes) {
			*part++ = (choir_part){ c->parts[k].lo, c->parts[k].hi, to };
			CHOIR_TRY(chi_device_copy(w->stream[i], host, to, from, c->parts[k].data, bytes));
		}
		CHOIR_TRY(chi_stream_wait(w->stream[i]));
	}
	return CHOIR_OK;
}

static choir_status below(void *self, const chi_slot *slot, int member, int64_t index)
{
	workers *w = self;
	const choir_collective *const *c = w->staged ? w->here : slot->c;
	if (w->staged)
		CHOIR_TRY(stage(w, slot));
	if (slot->c[0]->kind == CHOIR_BROADCAST)
		return CHOIR_OK;
	CHOIR_TRY(keep_room(w, &w->node, (size_t) w->nodes, slot->c[0]));
	if (!w->staged)
		return add_slice(w, c, member, index * CHI_WAY_SLICE);
	for (int64_t first = 0; first < c[0]->elements; first += CHI_WAY_SLICE)
		CHOIR_TRY(add_slice(w, c, member, first));
	return CHOIR_OK;
}

// ---- Between: the other workers.

// Where the whole sum is made: in the first result in host memory, or aside.
static choir_status find_total(workers *w, const chi_slot *slot, char **to)
{
	for (int i = 0; i < w->group->members; i++)
		if (slot->c[i]->result != NULL && w->group->devices[i]->host_memory) {
			*to = slot->c[i]->result;
			return CHOIR_OK;
		}
	CHOIR_TRY(keep_room(w, &w->total, 1, slot->c[0]));
	*to = w->total.memory;
	return CHOIR_OK;
}

// What is broadcast is the same on all workers already.
static choir_status exchange(workers *w, const chi_slot *slot)
{
	const choir_collective *c = slot->c[0];
	const size_t bytes = (size_t) c->elements * chi_dtype_size(c->dtype);
	char *total;
	if (c->kind == CHOIR_BROADCAST) {
		w->sum = (w->staged ? w->here : slot->c)[c->root]->parts[0].data;
		return CHOIR_OK;
	}
	CHOIR_TRY(find_total(w, slot, &total));
	w->sum = total;
	if (w->alone)
		return chi_peers_sum(w->peers, 0, c, c->parts, total);
	for (int i = 0; i < w->nodes; i++)
		w->part[i].data = w->node.memory + (size_t) i * bytes;
	return chi_peers_sum(w->peers, 0, c, w->part, total);
}

// ---- Bundles.

static const choir_collective *waiting(const workers *w, uint64_t ticket)
{
	return w->waits[ticket % CHI_MEETING_SLOTS];
}

static size_t bytes_of(const choir_collective *c)
{
	return (size_t) c->elements * chi_dtype_size(c->dtype);
}

static bool is_small(const choir_collective *c, const choir_collective *like)
{
	return c->kind == CHOIR_ALL_REDUCE && c->dtype == like->dtype && bytes_of(c) <= MOST_BYTES;
}

// How many collectives from the one that is waited for on go together; all: their elements.
static uint64_t find_bundle(const workers *w, int64_t *all)
{
	const choir_collective *first = waiting(w, w->ticket);
	uint64_t n = 1;
	*all = first->elements;
	if (!w->bundles || !is_small(first, first))
		return 1;
	while (w->ticket + n < w->joined) {
		const choir_collective *c = waiting(w, w->ticket + n);
		if (!is_small(c, first) ||
				(size_t) (*all + c->elements) * chi_dtype_size(c->dtype) > BUNDLE_BYTES)
			break;
		*all += c->elements;
		n++;
	}
	return n;
}

// What must be equal of all of them is in the name.
static void name_bundle(const workers *w, uint64_t n, char name[64])
{
	uint64_t hash = n;
	for (uint64_t i = 0; i < n; i++) {
		const choir_collective *c = waiting(w, w->ticket + i);
		hash = chi_hash_mix(hash ^ chi_hash_text(c->name) ^ (uint64_t) c->elements);
	}
	snprintf(name, 64, "%d sums from \"%.20s\" on, %016llx", (int) n, waiting(w, w->ticket)->name,
			(unsigned long long) hash);
}

// Lays the parts of all of them one behind another, node by node.
static void pack(workers *w, uint64_t n, size_t all)
{
	for (int k = 0; k < w->nodes; k++) {
		char *to = w->node.memory + (size_t) k * all;
		w->part[k].data = to;
		for (uint64_t i = 0; i < n; i++) {
			const choir_collective *c = waiting(w, w->ticket + i);
			if (bytes_of(c) > 0)
				memcpy(to, c->parts[k].data, bytes_of(c));
			to += bytes_of(c);
		}
	}
}

static choir_status exchange_bundle(workers *w, uint64_t n, int64_t elements)
{
	char name[64];
	choir_collective all = *waiting(w, w->ticket);
	all.name = name;
	all.elements = elements;
	for (uint64_t i = 0; i < n; i++)
		if (waiting(w, w->ticket + i)->n != (size_t) w->nodes)
			return choir_fail(CHOIR_INTERNAL, "%s: the parts of this worker are not its nodes",
					waiting(w, w->ticket + i)->name);
	CHOIR_TRY(keep_room(w, &w->node, (size_t) w->nodes, &all));
	CHOIR_TRY(keep_room(w, &w->total, 1, &all));
	name_bundle(w, n, name);
	pack(w, n, bytes_of(&all));
	CHOIR_TRY(chi_peers_sum(w->peers, 0, &all, w->part, w->total.memory));
	const char *sum = w->total.memory;
	for (uint64_t i = 0; i < n; i++) {
		w->sums[(w->ticket + i) % CHI_MEETING_SLOTS] = sum;
		sum += bytes_of(waiting(w, w->ticket + i));
	}
	return CHOIR_OK;
}

// The sum of the one that is waited for, which may have come with an earlier one.
static choir_status exchange_alone(workers *w, const chi_slot *slot)
{
	int64_t elements;
	if (w->ticket >= w->exchanged) {
		const uint64_t n = find_bundle(w, &elements);
		if (n == 1) {
			CHOIR_TRY(exchange(w, slot));
			w->sums[w->ticket % CHI_MEETING_SLOTS] = w->sum;
		} else {
			CHOIR_TRY(exchange_bundle(w, n, elements));
		}
		w->exchanged = w->ticket + n;
	}
	w->sum = w->sums[w->ticket % CHI_MEETING_SLOTS];
	return CHOIR_OK;
}

static choir_status hand_out(workers *w, const chi_slot *slot, int member, int64_t first)
{
	const choir_collective *c = slot->c[member];
	const size_t size = chi_dtype_size(c->dtype);
	const int64_t count = count_of(c, first);
	char *at = (char *) (uintptr_t) w->sum + (size_t) first * size;
	if (c->divisor != 1) {
		chi_stream stream = { w->group->devices[member], c->stream };
		CHOIR_TRY(chi_way_divide(&stream, c->dtype, at, c->divisor, count));
	}
	return chi_hand_out(slot, w->group->members, at, first, count, size);
}

static choir_status between(void *self, const chi_slot *slot, int member, int64_t index)
{
	workers *w = self;
	(void) index;
	chi_atomic32_store(&w->exchanging, 1);
	choir_status status = w->alone ? exchange_alone(w, slot) : exchange(w, slot);
	chi_atomic32_store(&w->exchanging, 0);
	if (status != CHOIR_OK)
		return chi_peers_give_up(w->peers);
	for (int64_t i = 0; w->alone && status == CHOIR_OK && i < slices_of(slot->c[0]); i++)
		status = hand_out(w, slot, member, i * CHI_WAY_SLICE);
	return status;
}

// ---- Above: the sum for the devices of this worker.

// All of the sum for a member on whose device the host may not write.
static choir_status deliver(workers *w, const chi_slot *slot, int member)
{
	const choir_collective *c = slot->c[member];
	choir_device *d = w->group->devices[member];
	const size_t bytes = (size_t) c->elements * chi_dtype_size(c->dtype);
	const void *shown = w->sum;
	if (chi_slot_first_with(slot, member) != member)
		return CHOIR_OK;
	if (c->result != NULL && c->result != w->sum) {
		CHOIR_TRY(chi_device_copy(
				w->stream[member], d, c->result, choir_device_find("cpu:0"), w->sum, bytes));
		CHOIR_TRY(chi_stream_wait(w->stream[member]));
	}
	if (c->result != NULL)
		shown = c->result;
	return c->done == NULL ? CHOIR_OK : c->done(c->user, 0, c->elements, shown);
}

static choir_status divide_all(workers *w, const choir_collective *c)
{
	choir_device *host = choir_device_find("cpu:0");
	chi_stream *stream = c->divisor == 1 ? NULL : chi_stream_new(host);
	if (c->divisor == 1 || stream == NULL)
		return c->divisor == 1 ? CHOIR_OK : choir_error_status();
	choir_status status =
			chi_way_divide(stream, c->dtype, (void *) (uintptr_t) w->sum, c->divisor, c->elements);
	if (status == CHOIR_OK)
		status = chi_stream_wait(stream);
	chi_stream_free(stream);
	return status;
}

static choir_status above(void *self, const chi_slot *slot, int member, int64_t index)
{
	workers *w = self;
	if (!w->staged)
		return hand_out(w, slot, member, index * CHI_WAY_SLICE);
	CHOIR_TRY(divide_all(w, slot->c[0]));
	for (int i = 0; i < w->group->members; i++)
		CHOIR_TRY(deliver(w, slot, i));
	return CHOIR_OK;
}

// ---- The table.

static choir_status join(void *self, int member, const choir_collective *c, uint64_t *ticket)
{
	workers *w = self;
	const int64_t slices = w->staged ? 1 : slices_of(c);
	if (!w->alone) {
		CHOIR_TRY(chi_meeting_mark(&w->meeting[BELOW], member, w->group->devices[member], c));
		CHOIR_TRY(chi_meeting_join(&w->meeting[ABOVE], member, c, slices, ticket));
		CHOIR_TRY(chi_meeting_join(&w->meeting[BELOW], member, c, slices, ticket));
	}
	CHOIR_TRY(chi_meeting_join(&w->meeting[BETWEEN], member, c, 1, ticket));
	if (w->alone) {
		w->waits[*ticket % CHI_MEETING_SLOTS] = c;
		w->joined = *ticket + 1;
	}
	return CHOIR_OK;
}

// Only the devices here have a time-out of their own: the exchange has that of the cluster, and
// ends the others' wait. Who fails in one meeting may be waited for in a later one, where somebody
// looks at what it has joined with.
static choir_status wait(void *self, int member, uint64_t ticket, double seconds)
{
	static chi_piece_fn *const piece[MEETINGS] = { below, between, above };
	workers *w = self;
	choir_status status = CHOIR_OK;
	if (w->alone)
		w->ticket = ticket;
	for (int i = first_of(w); status == CHOIR_OK && i <= last_of(w); i++)
		status = chi_meeting_wait(
				&w->meeting[i], member, ticket, i == first_of(w) ? seconds : -1, piece[i], w);
	if (status == CHOIR_OK)
		return status;
	abort_wait(w);
	for (int i = first_of(w); i <= last_of(w); i++)
		chi_meeting_drain(&w->meeting[i], ticket);
	return status;
}

static void reset_workers(void *self)
{
	workers *w = self;
	w->joined = w->exchanged = 0;
	for (int i = first_of(w); i <= last_of(w); i++)
		chi_meeting_reset(&w->meeting[i]);
}

const choir_cross_device_ops_table chi_workers_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "workers",
	.self_size = sizeof(workers),
	.open = open_workers,
	.close = close_workers,
	.join = join,
	.wait = wait,
	.abort = abort_workers,
	.reset = reset_workers,
};
