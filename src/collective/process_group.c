// An all-reduce is a reduce-scatter and an all-gather, which transfer the fewest bytes. In a small
// one, every worker receives all parts in one round and sums them itself.
#include "collective/process_group.h"

#include "base/hash.h"
#include "base/size.h"
#include "base/text.h"
#include "base/thresholds.h"
#include "collective/tree.h"

#include <stdio.h>
#include <string.h>

static choir_status find_all_nodes(chi_process_group *p)
{
	for (int w = 0; w < p->workers; w++)
		p->first_node[w + 1] = p->first_node[w] +
				chi_tree_find_nodes(p->replicas, p->first[w], p->first[w + 1], NULL);
	p->partial_sum = chi_alloc_array((size_t) p->first_node[p->workers], sizeof *p->partial_sum);
	CHOIR_TRY(chi_made(p->partial_sum));
	for (int w = 0; w < p->workers; w++)
		(void) chi_tree_find_nodes(
				p->replicas, p->first[w], p->first[w + 1], p->partial_sum + p->first_node[w]);
	return CHOIR_OK;
}

static choir_status open_process_group(chi_process_group *p, int own)
{
	const size_t n = (size_t) p->workers;
	p->first = chi_alloc_array(n + 1, sizeof *p->first);
	p->first_node = chi_alloc_array(n + 1, sizeof *p->first_node);
	p->message = chi_alloc_array(2 * n, sizeof *p->message);
	p->wait = chi_alloc_array(2 * n, sizeof(chi_message *));
	p->bytes = chi_alloc_array(n, sizeof *p->bytes);
	int64_t *each = chi_alloc_array(n, sizeof *each);
	choir_status status = p->first == NULL || p->first_node == NULL || p->message == NULL ||
					p->wait == NULL || p->bytes == NULL || each == NULL
			? chi_cluster_give_up(p->cluster) // so that no worker waits for this one
			: chi_process_group_all_gather(p, &(int64_t){ own }, sizeof *each, each, "replicas");
	for (int w = 0; status == CHOIR_OK && w < p->workers; w++)
		p->first[w + 1] = p->first[w] + (int) each[w];
	chi_free(each);
	if (status != CHOIR_OK)
		return status;
	p->replicas = p->first[p->workers];
	return find_all_nodes(p);
}

choir_status chi_process_group_open(chi_process_group *p, choir_cluster *c, int tag, int own)
{
	*p = (chi_process_group){
		.cluster = c, .tag = tag, .workers = c->workers, .worker = c->worker
	};
	const choir_status status = open_process_group(p, own);
	return status == CHOIR_OK ? status : chi_cluster_give_up(c);
}

void chi_process_group_close(chi_process_group *p)
{
	chi_free(p->first);
	chi_free(p->first_node);
	chi_free(p->partial_sum);
	chi_free(p->message);
	chi_free(p->wait);
	chi_free(p->bytes);
	chi_free(p->scratch.memory);
	chi_buffer_release(p->device_scratch);
}

choir_status chi_process_group_abort(chi_process_group *p)
{
	return chi_cluster_give_up(p->cluster);
}

typedef struct {
	char *data;
	size_t bytes;
} block;

typedef block block_fn(const void *of, int worker);

typedef struct {
	chi_process_group *group;
	chi_fingerprint fingerprint;
	double deadline;
	bool bare_frames; // as in chi_message
} exchange;

static uint64_t next(chi_process_group *p)
{
	return p->tag == CHI_TAG_COLLECTIVES ? chi_cluster_next(p->cluster) : ++p->exchanges;
}

static exchange begin(chi_process_group *p)
{
	exchange e = { .group = p };
	e.deadline = chi_cluster_deadline(p->cluster, p->cluster->timeout);
	return e;
}

// *n: the number of messages, also after a failure. Others wait for sends, so these come first.
static choir_status begin_round(exchange *e, block_fn *out, block_fn *in, const void *of, int *n)
{
	chi_process_group *p = e->group;
	for (int i = 1; i < p->workers; i++) {
		const int to = (p->worker + i) % p->workers;
		const block b = out(of, to);
		chi_message *m = p->wait[*n] = &p->message[p->workers + to];
		m->bare_frame = e->bare_frames;
		CHOIR_TRY(chi_message_send(m, p->cluster, to, p->tag, &e->fingerprint, b.data, b.bytes));
		++*n;
	}
	for (int i = 1; i < p->workers; i++) {
		const int from = (p->worker - i + p->workers) % p->workers;
		const block b = in(of, from);
		chi_message *m = p->wait[*n] = &p->message[from];
		m->bare_frame = e->bare_frames;
		CHOIR_TRY(chi_message_receive(
				m, p->cluster, from, p->tag, &e->fingerprint, b.data, b.bytes));
		++*n;
	}
	return CHOIR_OK;
}

static choir_status go_round(exchange *e, block_fn *out, block_fn *in, const void *of)
{
	int n = 0;
	const choir_status status = begin_round(e, out, in, of, &n);
	if (status == CHOIR_OK)
		return chi_message_wait(e->group->wait, n, e->deadline);
	while (n > 0)
		chi_message_drop(e->group->wait[--n]);
	return status;
}

typedef struct {
	chi_process_group *group;
	const choir_collective *c;
	const choir_partial_sum *own;
	size_t size;
	chi_stream *stream; // of the device with all memory; NULL: the host's memory
	bool once;
	char *packed;
	char *come;
	char *spare, *apart;
	char *sum;
} all_reducing;

static int64_t cut(const all_reducing *s, int w)
{
	enum { STEP = 64 };
	const int64_t steps = s->c->elements / STEP, each = steps / s->group->workers;
	return w == s->group->workers
			? s->c->elements
			: (each * w + (steps % s->group->workers) * w / s->group->workers) * STEP;
}

static int64_t first_of(const all_reducing *s, int w)
{
	return s->once ? 0 : cut(s, w);
}

static size_t bytes_of(const all_reducing *s, int w)
{
	return (size_t) (s->once ? s->c->elements : cut(s, w + 1) - cut(s, w)) * s->size;
}

static block parts_for(const void *of, int w)
{
	const all_reducing *s = of;
	const int nodes = chi_process_group_node_count(s->group, s->group->worker);
	const size_t before = (size_t) first_of(s, w) * s->size, bytes = bytes_of(s, w);
	if (s->packed == NULL)
		return (block){ (char *) s->own[0].data + before, bytes };
	return (block){ s->packed + (size_t) nodes * before, (size_t) nodes * bytes };
}

// NULL: small, stays in the message.
static block parts_from(const void *of, int w)
{
	const all_reducing *s = of;
	const chi_process_group *p = s->group;
	const size_t bytes = bytes_of(s, p->worker),
				 all = (size_t) chi_process_group_node_count(p, w) * bytes;
	const int before =
			p->first_node[w] - (w > p->worker ? chi_process_group_node_count(p, p->worker) : 0);
	const bool stays = all <= CHI_MESSAGE_CAPACITY && s->stream == NULL;
	return (block){ stays ? NULL : s->come + (size_t) before * bytes, all };
}

static block sum_of(const all_reducing *s, int w)
{
	return (block){ s->sum + (size_t) first_of(s, w) * s->size, bytes_of(s, w) };
}

static block sums_for(const void *of, int w)
{
	(void) w;
	const all_reducing *s = of;
	return sum_of(s, s->group->worker);
}

static block sums_from(const void *of, int w)
{
	return sum_of(of, w);
}

static choir_status copy(const all_reducing *s, void *to, const void *from, size_t bytes)
{
	if (s->stream != NULL)
		return chi_stream_copy(s->stream, to, from, bytes);
	memcpy(to, from, bytes);
	return CHOIR_OK;
}

static choir_status copy_nodes(const all_reducing *s)
{
	const chi_process_group *p = s->group;
	const int nodes = chi_process_group_node_count(p, p->worker);
	for (int w = 0; w < (s->once ? 1 : p->workers); w++) {
		const size_t before = (size_t) first_of(s, w) * s->size, bytes = bytes_of(s, w);
		char *to = s->packed + (size_t) nodes * before;
		for (int i = 0; i < nodes && bytes > 0; i++, to += bytes)
			CHOIR_TRY(copy(s, to, (const char *) s->own[i].data + before, bytes));
	}
	return CHOIR_OK;
}

static choir_status pack(const all_reducing *s)
{
	if (s->packed == NULL)
		return CHOIR_OK;
	const choir_status status = copy_nodes(s);
	return s->stream == NULL ? status : chi_stream_finish(s->stream, status);
}

static char *find_scratch(const all_reducing *s, size_t bytes)
{
	chi_process_group *p = s->group;
	if (s->stream == NULL)
		return chi_scratch_reserve(&p->scratch, bytes) ? p->scratch.memory : NULL;
	chi_buffer *there = p->device_scratch;
	if (there == NULL || there->device != s->stream->device || there->bytes < bytes) {
		chi_buffer_release(there);
		p->device_scratch = chi_buffer_new(s->stream->device, bytes);
	}
	return p->device_scratch == NULL ? NULL : p->device_scratch->memory;
}

static choir_status reserve(all_reducing *s)
{
	chi_process_group *p = s->group;
	const size_t nodes = (size_t) chi_process_group_node_count(p, p->worker);
	const size_t others = (size_t) p->first_node[p->workers] - nodes;
	const size_t all = (size_t) s->c->elements * s->size;
	size_t packed = 0, come, capacity;
	const size_t spare = chi_tree_scratch(p->replicas), aside = spare + CHI_SEPARATE_SUM_BYTES;
	if ((nodes > 1 && !chi_size_multiply(nodes, all, &packed)) ||
			!chi_size_multiply(others, bytes_of(s, p->worker), &come) ||
			!chi_size_round_up(packed, 64, &packed) || !chi_size_round_up(come, 64, &come) ||
			!chi_size_add(packed, come, &capacity) || !chi_size_add(capacity, aside, &capacity))
		return choir_fail(CHOIR_NO_MEMORY, "%s: too many elements", s->c->name);
	char *scratch = find_scratch(s, capacity);
	if (scratch == NULL)
		return choir_error_status();
	s->packed = nodes > 1 ? scratch : NULL;
	s->come = scratch + packed;
	s->spare = s->come + come;
	s->apart = s->spare + spare;
	return CHOIR_OK;
}

static void find_parts(const all_reducing *s, int64_t from, int64_t count)
{
	chi_process_group *p = s->group;
	for (int w = 0; w < p->workers; w++)
		for (int i = p->first_node[w]; i < p->first_node[w + 1]; i++)
			p->partial_sum[i].data = w == p->worker
					? (char *) s->own[i - p->first_node[w]].data + (size_t) from * s->size
					: (char *) p->message[w].data +
							(size_t) (i - p->first_node[w]) * (size_t) count * s->size;
}

static choir_status add_up_on_device(const all_reducing *s)
{
	chi_process_group *p = s->group;
	const int64_t from = first_of(s, p->worker);
	const size_t bytes = bytes_of(s, p->worker);
	const int64_t count = (int64_t) (bytes / s->size);
	chi_buffer *spent = NULL;
	chi_partial_sums sums;
	choir_status status = CHOIR_OK;
	chi_partial_sums_begin(&sums, p->replicas, s->c->dtype, &(choir_shape){ 1, { count } });
	sums.spent = &spent;
	find_parts(s, from, count);
	for (int i = 0; status == CHOIR_OK && i < p->first_node[p->workers] && count > 0; i++)
		status = chi_partial_sums_add_node(&sums, p->partial_sum[i], NULL, false, s->stream);
	if (status == CHOIR_OK && count > 0)
		status = copy(s, s->sum + (size_t) from * s->size, sums.node[0].data, bytes);
	status = chi_stream_finish(s->stream, status);
	chi_partial_sums_clear(&sums);
	chi_buffer_release_all(&spent);
	return status;
}

static choir_status add_up(const all_reducing *s)
{
	chi_process_group *p = s->group;
	const int64_t from = first_of(s, p->worker);
	const int64_t count = (int64_t) (bytes_of(s, p->worker) / s->size);
	find_parts(s, from, count);
	const choir_collective all = { .name = s->c->name,
		.dtype = s->c->dtype,
		.divisor = 1,
		.n = (size_t) p->first_node[p->workers],
		.partial_sums = p->partial_sum };
	const choir_collective *const one[] = { &all };
	// With two rounds, sums are made apart and then copied (0060).
	const int64_t max = CHI_SEPARATE_SUM_BYTES / (int64_t) s->size;
	const int64_t step = s->once || max > CHI_CHUNK ? CHI_CHUNK : max;
	for (int64_t first = 0; first < count; first += step) {
		const int64_t left = count - first;
		char *to = s->sum + (size_t) (from + first) * s->size;
		const chi_chunk_sum chunk = { .c = one,
			.members = 1,
			.replicas = p->replicas,
			.first = first,
			.count = left < step ? left : step,
			.to = s->once ? to : s->apart,
			.scratch = s->spare };
		const void *sum;
		CHOIR_TRY(chi_chunk_sum_make(&chunk, NULL, &sum));
		if (sum != to)
			memcpy(to, sum, (size_t) chunk.count * s->size);
	}
	return CHOIR_OK;
}

// One round saves messages, but its cost grows with the square of the nodes.
bool chi_process_group_needs_one_round(const chi_process_group *p, size_t bytes)
{
	const size_t nodes = (size_t) p->first_node[p->workers];
	return bytes <= CHI_ONE_ROUND_BYTES / (nodes * (nodes - 1));
}

static choir_status all_reduce(exchange *e, all_reducing *s)
{
	const chi_process_group *p = e->group;
	const size_t all = (size_t) s->c->elements * s->size;
	e->bare_frames = s->stream != NULL;
	s->once = !e->bare_frames && chi_process_group_needs_one_round(p, all);
	for (int i = 0; i < chi_process_group_node_count(p, p->worker); i++) {
		const choir_partial_sum *is = &s->own[i],
								*due = &p->partial_sum[p->first_node[p->worker] + i];
		if (is->lo != due->lo || is->hi != due->hi)
			return choir_fail(
					CHOIR_INTERNAL, "%s: the parts of this worker are not its nodes", s->c->name);
	}
	CHOIR_TRY(reserve(s));
	CHOIR_TRY(pack(s));
	CHOIR_TRY(go_round(e, parts_for, parts_from, s));
	CHOIR_TRY(s->stream == NULL ? add_up(s) : add_up_on_device(s));
	return s->once ? CHOIR_OK : go_round(e, sums_for, sums_from, s);
}

static chi_fingerprint fingerprint_of(
		chi_process_group *p, uint64_t key, const choir_collective *c)
{
	const uint64_t sequence = next(p);
	if (key == 0)
		key = chi_hash_mix(
					  chi_hash_text(c->name) + (uint64_t) c->elements * 16 + (uint64_t) c->dtype) |
				1;
	chi_cached_fingerprint *k = &p->fingerprint_cache[key % CHI_CACHED_FINGERPRINTS];
	if (k->key != key) {
		k->key = key;
		chi_fingerprint_set(&k->fingerprint, sequence, "all_reduce of %lld %s, %s",
				(long long) c->elements, choir_dtype_name(c->dtype), c->name);
	}
	k->fingerprint.sequence = sequence;
	k->fingerprint.order = chi_atomic64_load(&p->order);
	return k->fingerprint;
}

choir_status chi_process_group_all_reduce(chi_process_group *p, uint64_t key,
		const choir_collective *c, const choir_partial_sum own[], void *to)
{
	exchange e = begin(p);
	e.fingerprint = fingerprint_of(p, key, c);
	all_reducing s = {
		.group = p, .c = c, .own = own, .size = chi_dtype_size(c->dtype), .sum = to
	};
	const choir_status status = all_reduce(&e, &s);
	return status == CHOIR_OK ? status : chi_process_group_abort(p);
}

choir_status chi_process_group_all_reduce_on_device(chi_process_group *p, chi_stream *stream,
		const choir_collective *c, const choir_partial_sum own[], void *to)
{
	exchange e = begin(p);
	e.fingerprint = fingerprint_of(p, 0, c);
	all_reducing s = { .group = p,
		.c = c,
		.own = own,
		.size = chi_dtype_size(c->dtype),
		.stream = stream,
		.sum = to };
	const choir_status status = all_reduce(&e, &s);
	return status == CHOIR_OK ? status : chi_process_group_abort(p);
}

typedef struct {
	chi_process_group *group;
	const void *own;
	size_t each;
	const size_t *bytes;
	char *all;
} all_gathering;

static size_t size_of(const all_gathering *g, int w)
{
	return g->bytes == NULL ? g->each : g->bytes[w];
}

static block place_of(const all_gathering *g, int w)
{
	size_t before = 0;
	for (int i = 0; i < w; i++)
		before += size_of(g, i);
	return (block){ before == 0 ? g->all : g->all + before, size_of(g, w) };
}

static block own_bytes(const void *of, int w)
{
	(void) w;
	const all_gathering *g = of;
	return (block){ (char *) (uintptr_t) g->own, size_of(g, g->group->worker) };
}

static block bytes_from(const void *of, int w)
{
	return place_of(of, w);
}

CHOIR_PRINTF(3, 0)
static void describe(exchange *e, chi_process_group *p, const char *fmt, va_list args)
{
	char text[CHI_ERROR_SIZE];
	chi_text_format(text, sizeof text, fmt, args);
	*e = begin(p);
	chi_fingerprint_set(&e->fingerprint, next(p), "%s", text);
	e->fingerprint.order = chi_atomic64_load(&p->order);
}

static choir_status all_gather(exchange *e, const all_gathering *g)
{
	const block own = place_of(g, g->group->worker);
	if (own.bytes > 0 && own.data != g->own)
		memcpy(own.data, g->own, own.bytes);
	const choir_status status = go_round(e, own_bytes, bytes_from, g);
	return status == CHOIR_OK ? status : chi_process_group_abort(g->group);
}

choir_status chi_process_group_all_gather(
		chi_process_group *p, const void *own, size_t bytes, void *all, const char *fmt, ...)
{
	exchange e;
	va_list args;
	va_start(args, fmt);
	describe(&e, p, fmt, args);
	va_end(args);
	return all_gather(&e, &(all_gathering){ .group = p, .own = own, .each = bytes, .all = all });
}

choir_status chi_process_group_all_gather_v(chi_process_group *p, const void *own,
		const size_t bytes[], void *all, const char *fmt, ...)
{
	exchange e;
	va_list args;
	va_start(args, fmt);
	describe(&e, p, fmt, args);
	va_end(args);
	return all_gather(&e, &(all_gathering){ .group = p, .own = own, .bytes = bytes, .all = all });
}

typedef struct {
	const chi_process_group *group;
	int from;
	char *data;
	size_t bytes;
} broadcasting;

static block broadcast_to(const void *of, int w)
{
	(void) w;
	const broadcasting *s = of;
	return (block){ s->data, s->group->worker == s->from ? s->bytes : 0 };
}

static block broadcast_from(const void *of, int w)
{
	const broadcasting *s = of;
	return (block){ s->data, w == s->from ? s->bytes : 0 };
}

choir_status chi_process_group_broadcast(
		chi_process_group *p, int from, void *data, size_t bytes, const char *fmt, ...)
{
	exchange e;
	va_list args;
	va_start(args, fmt);
	describe(&e, p, fmt, args);
	va_end(args);
	const broadcasting s = { p, from, data, bytes };
	const choir_status status = go_round(&e, broadcast_to, broadcast_from, &s);
	return status == CHOIR_OK ? status : chi_process_group_abort(p);
}

static bool is_own(const chi_process_group *p, const chi_error *why)
{
	return chi_atomic32_load(&p->cluster->failed) == 0 && why->status != CHOIR_CANCELLED &&
			why->status != CHOIR_TIMEOUT && why->status != CHOIR_PEER_LOST;
}

static const char *without_replica(const char *text)
{
	int end = 0;
	return sscanf(text, "replica %*d: %n", &end) == 0 && end > 0 ? text + end : text;
}

typedef struct {
	char *text;
	size_t bytes;
} failing;

static block own_text(const void *of, int w)
{
	(void) w;
	const failing *f = of;
	return (block){ f->text, f->bytes };
}

static block text_from(const void *of, int w)
{
	(void) w;
	return (block){ NULL, ((const failing *) of)->bytes };
}

choir_status chi_process_group_fail(chi_process_group *p)
{
	chi_error why;
	chi_error_save(&why);
	if (!is_own(p, &why))
		return chi_process_group_abort(p);
	exchange e = begin(p);
	e.deadline = chi_cluster_failing(p->cluster, &why);
	chi_fingerprint_set(&e.fingerprint, next(p), "failed: %s: %s", choir_status_name(why.status),
			without_replica(why.text));
	e.fingerprint.order = CHI_ORDER_FAILED;
	const failing f = { .text = why.text, .bytes = sizeof why.text };
	(void) go_round(&e, own_text, text_from, &f);
	(void) chi_cluster_failing(p->cluster, NULL);
	return chi_error_restore(&why);
}
