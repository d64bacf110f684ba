// Three rendezvous: the devices reduce chunks to this worker's nodes of the canonical tree, one
// thread exchanges the nodes with the other workers, the devices broadcast the sum. The exchange
// is a chunk of its rendezvous, so even a failed wait returns after it.
//
// Small sums are exchanged in buckets: all that a thread has joined when it waits. Buckets need
// one device per worker, so that all join and wait in one order.
#include "collective/multi_worker.h"

#include "base/hash.h"
#include "base/size.h"
#include "base/thresholds.h"
#include "collective/device_sum.h"
#include "collective/rendezvous.h"
#include "collective/tree.h"

#include <stdio.h>
#include <string.h>

enum { LOCAL_REDUCE, EXCHANGE, LOCAL_BROADCAST, RENDEZVOUS_COUNT };

typedef struct {
	const choir_group *group;
	chi_process_group *process_group;
	// A single device in host memory needs only the exchange; other memory is copied to the host.
	bool single_device, staged;
	bool uses_buckets;
	bool takes_devices; // all workers' transports take the memory of their devices
	chi_device_sum device_sum;
	chi_tree_nodes nodes;
	chi_rendezvous rendezvous[RENDEZVOUS_COUNT];
	chi_stream **stream;
	choir_collective *shown;
	const choir_collective **here;
	char *scratch;
	chi_mutex lock; // held while memory grows
	chi_scratch parts, total;
	const char *sum;
	chi_atomic32 exchanging; // 1 during an exchange with other workers
	// single_device: joined, received, awaited
	const choir_collective *waits[CHI_RENDEZVOUS_ROUNDS];
	const char *sums[CHI_RENDEZVOUS_ROUNDS];
	uint64_t joined, exchanged, request;
} multi_worker;

static int first_of(const multi_worker *w)
{
	return w->single_device ? EXCHANGE : LOCAL_REDUCE;
}

static int last_of(const multi_worker *w)
{
	return w->single_device ? EXCHANGE : LOCAL_BROADCAST;
}

static choir_status open_streams(multi_worker *w)
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

typedef struct {
	int single, host, taken;
} devices_of_one;

static choir_status compare_devices(multi_worker *w)
{
	chi_process_group *p = w->process_group;
	const devices_of_one own = { w->single_device, !w->staged,
		chi_device_sum_is_possible(w->group, p->cluster) };
	devices_of_one *all = chi_alloc_array((size_t) p->workers, sizeof *all);
	CHOIR_TRY(chi_made(all));
	const choir_status status = chi_process_group_all_gather(p, &own, sizeof own, all, "devices");
	w->uses_buckets = p->host = w->takes_devices = true;
	for (int i = 0; status == CHOIR_OK && i < p->workers; i++) {
		w->uses_buckets = w->uses_buckets && all[i].single != 0;
		p->host = p->host && all[i].host != 0;
		w->takes_devices = w->takes_devices && all[i].taken != 0;
	}
	chi_free(all);
	return status;
}

// Last first: a thread that leaves one finds the next aborted.
static void abort_rendezvous(multi_worker *w)
{
	for (int i = last_of(w); i >= first_of(w); i--)
		chi_rendezvous_abort(&w->rendezvous[i]);
}

static void abort_other_workers(multi_worker *w)
{
	if (choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_STATE, "a worker stopped in the middle of a collective");
	chi_process_group_abort(w->process_group);
}

// After a cancelled wait, the thread that failed first informs the other workers.
static void abort_wait(void *self)
{
	if (choir_error_status() != CHOIR_CANCELLED)
		abort_other_workers(self);
	abort_rendezvous(self);
}

// When no thread here is in a collective. An exchange would wait, so it ends first.
static void abort_workers(void *self)
{
	multi_worker *w = self;
	abort_rendezvous(w);
	if (chi_atomic32_load(&w->exchanging) != 0)
		abort_other_workers(w);
}

static choir_status open_workers(multi_worker *w, const choir_group *group, chi_process_group *p)
{
	const size_t n = (size_t) group->members;
	w->group = group;
	w->process_group = p;
	for (int i = 0; i < group->members; i++)
		w->staged = w->staged || !group->devices[i]->host_memory;
	w->single_device = group->members == 1 && !w->staged;
	chi_mutex_init(&w->lock, CHI_RANK_CROSS, "workers");
	CHOIR_TRY(chi_tree_nodes_open(&w->nodes, chi_process_group_node_count(p, p->worker),
			p->partial_sum + p->first_node[p->worker]));
	w->scratch = chi_alloc_aligned(n * chi_tree_scratch(group->replicas));
	CHOIR_TRY(chi_made(w->scratch));
	for (int i = first_of(w); i <= last_of(w); i++) {
		CHOIR_TRY(chi_rendezvous_open(&w->rendezvous[i], group->members));
		w->rendezvous[i].end = abort_wait;
	}
	if (w->staged)
		CHOIR_TRY(open_streams(w));
	w->device_sum = (chi_device_sum){ .group = group, .stream = w->staged ? w->stream[0] : NULL };
	return compare_devices(w);
}

static void close_workers(void *self)
{
	multi_worker *w = self;
	if (w->group == NULL)
		return;
	if (w->shown != NULL)
		chi_free((void *) (uintptr_t) w->shown[0].partial_sums);
	for (int i = 0; i < RENDEZVOUS_COUNT; i++)
		chi_rendezvous_close(&w->rendezvous[i]);
	for (int i = 0; w->stream != NULL && i < w->group->members; i++)
		chi_stream_free(w->stream[i]);
	chi_mutex_destroy(&w->lock);
	chi_tree_nodes_close(&w->nodes);
	chi_device_sum_close(&w->device_sum);
	void *all[] = { w->stream, w->shown, (void *) w->here, w->scratch, w->parts.memory,
		w->total.memory };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		chi_free(all[i]);
}

// Earlier collectives have done all chunks: their memory may be overwritten.
static choir_status reserve(
		multi_worker *w, chi_scratch *k, size_t times, const choir_collective *c)
{
	size_t bytes;
	if (!chi_size_multiply((size_t) c->elements, chi_dtype_size(c->dtype), &bytes) ||
			!chi_size_multiply(times, bytes, &bytes))
		return choir_fail(CHOIR_NO_MEMORY, "%s: too many elements", c->name);
	chi_mutex_lock(&w->lock);
	const bool there = chi_scratch_reserve(k, bytes);
	chi_mutex_unlock(&w->lock);
	return there ? CHOIR_OK : choir_error_status();
}

// Small sums are faster through the host, in one round.
static bool stays_on_devices(const multi_worker *w, const choir_collective *c)
{
	return w->takes_devices && c->kind == CHOIR_ALL_REDUCE && c->divisor == 1 &&
			!chi_process_group_needs_one_round(w->process_group, chi_collective_bytes(c));
}

static int64_t chunks_of(const choir_collective *c)
{
	return c->elements <= 0 ? 1 : (c->elements - 1) / CHI_CHUNK + 1;
}

static int64_t count_of(const choir_collective *c, int64_t first)
{
	return c->elements - first < CHI_CHUNK ? c->elements - first : CHI_CHUNK;
}

static choir_status stage(multi_worker *w, const chi_round *round)
{
	const size_t size = chi_dtype_size(round->c[0]->dtype);
	const size_t bytes = (size_t) round->c[0]->elements * size;
	size_t parts = 0, capacity;
	for (int i = 0; i < w->group->members; i++)
		parts += round->c[i]->n;
	CHOIR_TRY(reserve(w, &w->parts, parts, round->c[0]));
	if (!chi_size_multiply(parts, sizeof(choir_partial_sum), &capacity))
		return choir_fail(CHOIR_NO_MEMORY, "%s: too many parts", round->c[0]->name);
	choir_partial_sum *part = chi_alloc(capacity + 1);
	CHOIR_TRY(chi_made(part));
	chi_free((void *) (uintptr_t) w->shown[0].partial_sums);
	w->shown[0].partial_sums = part;
	char *to = w->parts.memory;
	choir_device *host = choir_device_find("cpu:0");
	for (int i = 0; i < w->group->members; i++) {
		const choir_collective *c = round->c[i];
		choir_device *from = w->group->devices[i];
		chi_stream made_on = { from, c->stream };
		if (!from->host_memory)
			CHOIR_TRY(chi_stream_wait_up_to(&made_on, round->event[i]));
		w->shown[i] = *c;
		w->shown[i].partial_sums = part;
		for (size_t k = 0; k < c->n; k++, to += bytes) {
			*part++ = (choir_partial_sum){ c->partial_sums[k].lo, c->partial_sums[k].hi, to };
			CHOIR_TRY(
					chi_device_copy(w->stream[i], host, to, from, c->partial_sums[k].data, bytes));
		}
		CHOIR_TRY(chi_stream_wait(w->stream[i]));
	}
	return CHOIR_OK;
}

static choir_status local_reduce(void *self, const chi_round *round, int member, int64_t index)
{
	multi_worker *w = self;
	const choir_collective *const *c = w->staged ? w->here : round->c;
	if (stays_on_devices(w, round->c[0]))
		return chi_device_sum_reduce(&w->device_sum, round);
	if (w->staged)
		CHOIR_TRY(stage(w, round));
	if (round->c[0]->kind == CHOIR_BROADCAST)
		return CHOIR_OK;
	chi_mutex_lock(&w->lock);
	choir_status status = chi_tree_nodes_reserve(&w->nodes, c[0]);
	chi_mutex_unlock(&w->lock);
	char *scratch = w->scratch + (size_t) member * chi_tree_scratch(w->group->replicas);
	int64_t first = w->staged ? 0 : index * CHI_CHUNK;
	const int64_t end = w->staged ? c[0]->elements : first + count_of(c[0], first);
	for (; status == CHOIR_OK && first < end; first += CHI_CHUNK)
		status = chi_tree_nodes_sum(&w->nodes, c, w->group->members, first, scratch);
	return status;
}

static choir_status find_total(multi_worker *w, const chi_round *round, char **to)
{
	for (int i = 0; i < w->group->members; i++)
		if (round->c[i]->result != NULL && w->group->devices[i]->host_memory) {
			*to = round->c[i]->result;
			return CHOIR_OK;
		}
	CHOIR_TRY(reserve(w, &w->total, 1, round->c[0]));
	*to = w->total.memory;
	return CHOIR_OK;
}

static choir_status exchange(multi_worker *w, const chi_round *round)
{
	const choir_collective *c = round->c[0];
	char *total;
	if (stays_on_devices(w, c))
		return chi_device_sum_exchange(&w->device_sum, round, w->process_group);
	if (c->kind == CHOIR_BROADCAST) {
		w->sum = (w->staged ? w->here : round->c)[c->root]->partial_sums[0].data;
		return CHOIR_OK;
	}
	CHOIR_TRY(find_total(w, round, &total));
	w->sum = total;
	return chi_process_group_all_reduce(
			w->process_group, 0, c, w->single_device ? c->partial_sums : w->nodes.node, total);
}

static const choir_collective *waiting(const multi_worker *w, uint64_t request)
{
	return w->waits[request % CHI_RENDEZVOUS_ROUNDS];
}

static bool is_small(const choir_collective *c, const choir_collective *like)
{
	return c->kind == CHOIR_ALL_REDUCE && c->dtype == like->dtype &&
			chi_collective_bytes(c) <= CHI_BUCKET_SUM_BYTES;
}

static uint64_t find_bucket(const multi_worker *w, int64_t *all)
{
	const choir_collective *first = waiting(w, w->request);
	uint64_t n = 1;
	*all = first->elements;
	if (!w->uses_buckets || !is_small(first, first))
		return 1;
	while (w->request + n < w->joined) {
		const choir_collective *c = waiting(w, w->request + n);
		if (!is_small(c, first) ||
				(size_t) (*all + c->elements) * chi_dtype_size(c->dtype) > CHI_BUCKET_BYTES)
			break;
		*all += c->elements;
		n++;
	}
	return n;
}

static void name_bucket(const multi_worker *w, uint64_t n, char name[64])
{
	uint64_t hash = n;
	for (uint64_t i = 0; i < n; i++) {
		const choir_collective *c = waiting(w, w->request + i);
		hash = chi_hash_mix(hash ^ chi_hash_text(c->name) ^ (uint64_t) c->elements);
	}
	snprintf(name, 64, "%d sums from \"%.20s\" on, %016llx", (int) n, waiting(w, w->request)->name,
			(unsigned long long) hash);
}

static void pack(const multi_worker *w, uint64_t n)
{
	for (int k = 0; k < w->nodes.n; k++) {
		char *to = w->nodes.node[k].data;
		for (uint64_t i = 0; i < n; i++) {
			const choir_collective *c = waiting(w, w->request + i);
			if (chi_collective_bytes(c) > 0)
				memcpy(to, c->partial_sums[k].data, chi_collective_bytes(c));
			to += chi_collective_bytes(c);
		}
	}
}

static choir_status exchange_bucket(multi_worker *w, uint64_t n, int64_t elements)
{
	char name[64];
	choir_collective all = *waiting(w, w->request);
	all.name = name;
	all.elements = elements;
	for (uint64_t i = 0; i < n; i++)
		if (waiting(w, w->request + i)->n != (size_t) w->nodes.n)
			return choir_fail(CHOIR_INTERNAL, "%s: the parts of this worker are not its nodes",
					waiting(w, w->request + i)->name);
	CHOIR_TRY(chi_tree_nodes_reserve(&w->nodes, &all));
	CHOIR_TRY(reserve(w, &w->total, 1, &all));
	name_bucket(w, n, name);
	pack(w, n);
	CHOIR_TRY(chi_process_group_all_reduce(
			w->process_group, 0, &all, w->nodes.node, w->total.memory));
	const char *sum = w->total.memory;
	for (uint64_t i = 0; i < n; i++) {
		w->sums[(w->request + i) % CHI_RENDEZVOUS_ROUNDS] = sum;
		sum += chi_collective_bytes(waiting(w, w->request + i));
	}
	return CHOIR_OK;
}

static choir_status exchange_single_device(multi_worker *w, const chi_round *round)
{
	int64_t elements;
	if (w->request >= w->exchanged) {
		const uint64_t n = find_bucket(w, &elements);
		if (n == 1) {
			CHOIR_TRY(exchange(w, round));
			w->sums[w->request % CHI_RENDEZVOUS_ROUNDS] = w->sum;
		} else {
			CHOIR_TRY(exchange_bucket(w, n, elements));
		}
		w->exchanged = w->request + n;
	}
	w->sum = w->sums[w->request % CHI_RENDEZVOUS_ROUNDS];
	return CHOIR_OK;
}

static choir_status deliver_to_members(
		multi_worker *w, const chi_round *round, int member, int64_t first)
{
	const choir_collective *c = round->c[member];
	const size_t size = chi_dtype_size(c->dtype);
	const int64_t count = count_of(c, first);
	char *at = (char *) (uintptr_t) w->sum + (size_t) first * size;
	if (c->divisor != 1) {
		chi_stream stream = { w->group->devices[member], c->stream };
		CHOIR_TRY(chi_sum_divide(&stream, c->dtype, at, c->divisor, count));
	}
	return chi_round_deliver(round, w->group->members, at, first, count, size);
}

static choir_status exchange_with_workers(
		void *self, const chi_round *round, int member, int64_t index)
{
	multi_worker *w = self;
	(void) index;
	chi_atomic32_store(&w->exchanging, 1);
	choir_status status = w->single_device ? exchange_single_device(w, round) : exchange(w, round);
	chi_atomic32_store(&w->exchanging, 0);
	if (status != CHOIR_OK)
		return chi_process_group_abort(w->process_group);
	for (int64_t i = 0; w->single_device && status == CHOIR_OK && i < chunks_of(round->c[0]); i++)
		status = deliver_to_members(w, round, member, i * CHI_CHUNK);
	return status;
}

static choir_status deliver(multi_worker *w, const chi_round *round, int member)
{
	const choir_collective *c = round->c[member];
	choir_device *d = w->group->devices[member];
	const size_t bytes = chi_collective_bytes(c);
	const void *shown = w->sum;
	if (chi_round_first_with(round, member) != member)
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

static choir_status divide_all(multi_worker *w, const choir_collective *c)
{
	choir_device *host = choir_device_find("cpu:0");
	chi_stream *stream = c->divisor == 1 ? NULL : chi_stream_new(host);
	if (c->divisor == 1 || stream == NULL)
		return c->divisor == 1 ? CHOIR_OK : choir_error_status();
	choir_status status =
			chi_sum_divide(stream, c->dtype, (void *) (uintptr_t) w->sum, c->divisor, c->elements);
	if (status == CHOIR_OK)
		status = chi_stream_wait(stream);
	chi_stream_free(stream);
	return status;
}

static choir_status local_broadcast(void *self, const chi_round *round, int member, int64_t index)
{
	multi_worker *w = self;
	if (!w->staged)
		return deliver_to_members(w, round, member, index * CHI_CHUNK);
	if (stays_on_devices(w, round->c[0]))
		return chi_device_sum_deliver(&w->device_sum, round);
	CHOIR_TRY(divide_all(w, round->c[0]));
	for (int i = 0; i < w->group->members; i++)
		CHOIR_TRY(deliver(w, round, i));
	return CHOIR_OK;
}

static choir_status join(void *self, int member, const choir_collective *c, uint64_t *request)
{
	multi_worker *w = self;
	const int64_t chunks = w->staged ? 1 : chunks_of(c);
	if (!w->single_device) {
		CHOIR_TRY(chi_rendezvous_record_event(
				&w->rendezvous[LOCAL_REDUCE], member, w->group->devices[member], c));
		CHOIR_TRY(
				chi_rendezvous_join(&w->rendezvous[LOCAL_BROADCAST], member, c, chunks, request));
		CHOIR_TRY(chi_rendezvous_join(&w->rendezvous[LOCAL_REDUCE], member, c, chunks, request));
	}
	CHOIR_TRY(chi_rendezvous_join(&w->rendezvous[EXCHANGE], member, c, 1, request));
	if (w->single_device) {
		w->waits[*request % CHI_RENDEZVOUS_ROUNDS] = c;
		w->joined = *request + 1;
	}
	return CHOIR_OK;
}

// seconds limits the wait for this worker's devices, the cluster's timeout the exchange. After a
// failure a member waits for the later rendezvous, where others may read its collective.
static choir_status wait(void *self, int member, uint64_t request, double seconds)
{
	static chi_chunk_fn *const chunk[RENDEZVOUS_COUNT] = { local_reduce, exchange_with_workers,
		local_broadcast };
	multi_worker *w = self;
	choir_status status = CHOIR_OK;
	if (w->single_device)
		w->request = request;
	for (int i = first_of(w); status == CHOIR_OK && i <= last_of(w); i++)
		status = chi_rendezvous_wait(
				&w->rendezvous[i], member, request, i == first_of(w) ? seconds : -1, chunk[i], w);
	if (status == CHOIR_OK)
		return status;
	abort_wait(w);
	for (int i = first_of(w); i <= last_of(w); i++)
		chi_rendezvous_drain(&w->rendezvous[i], request);
	return status;
}

static void reset_workers(void *self)
{
	multi_worker *w = self;
	w->joined = w->exchanged = 0;
	for (int i = first_of(w); i <= last_of(w); i++)
		chi_rendezvous_reset(&w->rendezvous[i]);
}

static const choir_cross_device_ops_table table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "workers",
	.self_size = sizeof(multi_worker),
	.close = close_workers,
	.join = join,
	.wait = wait,
	.abort = abort_workers,
	.reset = reset_workers,
};

choir_status chi_communicator_open_among_workers(chi_communicator *g, int members,
		choir_device *const *devices, chi_process_group *p, const char *name)
{
	if (name != NULL)
		CHOIR_TRY(chi_communicator_check_name(name));
	g->base = (choir_group){ sizeof(choir_group), members, p->replicas, devices };
	g->self = chi_alloc(table.self_size);
	CHOIR_TRY(chi_made(g->self));
	g->table = &table;
	return open_workers(g->self, &g->base, p);
}
