// Partial sums work like a binary counter: two halves are added when both exist. But a device's
// replicas may begin anywhere in the tree.
#include "collective/tree.h"

#include "base/size.h"
#include "op/op.h"
#include "op/vector.h"

#include <string.h>

bool chi_tree_is_node(int replicas, int lo, int hi)
{
	int a = 0, b = replicas;
	while (a < lo || b > hi) {
		if (b - a <= 1)
			return false;
		const int middle = chi_tree_split(a, b);
		if (hi <= middle)
			b = middle;
		else if (lo >= middle)
			a = middle;
		else
			return false;
	}
	return a == lo && b == hi;
}

int chi_tree_find_nodes(int replicas, int lo, int hi, choir_partial_sum node[])
{
	int n = 0;
	for (int end; lo < hi; lo = end, n++) {
		for (end = hi; !chi_tree_is_node(replicas, lo, end);)
			end--;
		if (node != NULL)
			node[n] = (choir_partial_sum){ lo, end, NULL };
	}
	return n;
}

int chi_tree_depth(int replicas)
{
	int depth = 1;
	while ((1 << (depth - 1)) < replicas && depth < 31)
		depth++;
	return depth;
}

const void *chi_tree_sum(const chi_tree_adder *adder, void *self, int lo, int hi, int level)
{
	const void *sum;
	if (adder->find(self, lo, hi, level, &sum))
		return sum;
	const int middle = chi_tree_split(lo, hi);
	const void *left = chi_tree_sum(adder, self, lo, middle, level);
	const void *right = chi_tree_sum(adder, self, middle, hi, left == NULL ? level : level + 1);
	if (left == NULL || right == NULL)
		return left == NULL ? right : left;
	return adder->add(self, left, right, level);
}

void chi_partial_sums_begin(
		chi_partial_sums *sums, int replicas, choir_dtype dtype, const choir_shape *shape)
{
	sums->replicas = replicas;
	sums->dtype = dtype;
	sums->shape = *shape;
	sums->n = 0;
	sums->spent = NULL;
}

void chi_partial_sums_clear(chi_partial_sums *sums)
{
	for (int i = 0; i < sums->n; i++)
		chi_buffer_release(sums->buffer[i]);
	sums->n = 0;
}

bool chi_partial_sums_have(const chi_partial_sums *sums, int replica)
{
	for (int i = 0; i < sums->n; i++)
		if (sums->node[i].lo <= replica && replica < sums->node[i].hi)
			return true;
	return false;
}

static choir_buffer shown(const chi_partial_sums *sums, void *data)
{
	return (choir_buffer){ data, sums->dtype, sums->shape };
}

static void insert(
		chi_partial_sums *sums, int at, choir_partial_sum part, chi_buffer *buffer, bool own)
{
	for (int i = sums->n++; i > at; i--) {
		sums->node[i] = sums->node[i - 1];
		sums->buffer[i] = sums->buffer[i - 1];
		sums->own[i] = sums->own[i - 1];
	}
	sums->node[at] = part;
	sums->buffer[at] = buffer;
	sums->own[at] = own;
}

static void take_out(chi_partial_sums *sums, int at)
{
	sums->n--;
	for (int i = at; i < sums->n; i++) {
		sums->node[i] = sums->node[i + 1];
		sums->buffer[i] = sums->buffer[i + 1];
		sums->own[i] = sums->own[i + 1];
	}
}

static bool is_last(const chi_buffer *b)
{
	return b != NULL && chi_atomic32_load(&b->references) == 1;
}

// Also if nothing else refers to the contribution. Chunks use several streams.
static bool may_overwrite(const chi_partial_sums *sums, int i)
{
	const chi_buffer *b = sums->buffer[i];
	return sums->own[i] || (sums->spent == NULL && is_last(b) && !b->foreign);
}

static void give_back(chi_partial_sums *sums, chi_buffer *b)
{
	if (sums->spent != NULL && is_last(b))
		chi_buffer_list_add(sums->spent, b);
	else
		chi_buffer_release(b);
}

static choir_status add_two(chi_partial_sums *sums, int a, chi_stream *stream)
{
	const int b = a + 1, to = may_overwrite(sums, a) ? a : may_overwrite(sums, b) ? b : CHOIR_NONE;
	chi_buffer *into = to == CHOIR_NONE ? NULL : sums->buffer[to];
	void *data = to == CHOIR_NONE ? NULL : sums->node[to].data;
	if (into != NULL) {
		chi_buffer_retain(into);
	} else {
		size_t bytes;
		if (!chi_shape_bytes(&sums->shape, sums->dtype, &bytes) ||
				(into = chi_buffer_new(stream->device, bytes)) == NULL)
			return choir_error_status();
		data = into->memory;
	}
	const choir_buffer in[2] = { shown(sums, sums->node[a].data),
		shown(sums, sums->node[b].data) };
	choir_buffer out = shown(sums, data);
	choir_status status = chi_kernel_run(stream, "add", 2, in, &out, NULL);
	// Any stream may get released memory from the pool, and a full device frees it.
	if (status == CHOIR_OK && sums->spent == NULL &&
			((sums->own[a] && sums->own[b]) || is_last(sums->buffer[a]) ||
					is_last(sums->buffer[b])))
		status = chi_stream_wait(stream);
	if (status != CHOIR_OK) {
		chi_buffer_release(into);
		return status;
	}
	give_back(sums, sums->buffer[a]);
	give_back(sums, sums->buffer[b]);
	sums->buffer[a] = into;
	sums->own[a] = true;
	sums->node[a].data = data;
	sums->node[a].hi = sums->node[b].hi;
	take_out(sums, b);
	return CHOIR_OK;
}

static bool are_halves(const chi_partial_sums *sums, int a)
{
	return a >= 0 && a + 1 < sums->n && sums->node[a].hi == sums->node[a + 1].lo &&
			chi_tree_is_node(sums->replicas, sums->node[a].lo, sums->node[a + 1].hi);
}

choir_status chi_partial_sums_add(
		chi_partial_sums *sums, int replica, chi_buffer *buffer, void *data, chi_stream *stream)
{
	const choir_partial_sum leaf = { replica, replica + 1, data };
	return chi_partial_sums_add_node(sums, leaf, buffer, false, stream);
}

choir_status chi_partial_sums_add_rounded(
		chi_partial_sums *sums, int replica, choir_dtype from, void *data, chi_stream *stream)
{
	size_t bytes;
	chi_buffer *buffer = chi_shape_bytes(&sums->shape, sums->dtype, &bytes)
			? chi_buffer_new(stream->device, bytes)
			: NULL;
	CHOIR_TRY(chi_made(buffer));
	const choir_buffer in = { data, from, sums->shape };
	choir_buffer out = shown(sums, buffer->memory);
	choir_status status = chi_kernel_run(stream, "cast", 1, &in, &out, NULL);
	if (status == CHOIR_OK)
		status = chi_stream_wait(stream);
	const choir_partial_sum leaf = { replica, replica + 1, buffer->memory };
	if (status == CHOIR_OK)
		status = chi_partial_sums_add_node(sums, leaf, buffer, true, stream);
	chi_buffer_release(buffer);
	return status;
}

choir_status chi_partial_sums_add_node(chi_partial_sums *sums, choir_partial_sum node,
		chi_buffer *buffer, bool own, chi_stream *stream)
{
	if (sums->n == CHI_MAX_PARTIAL_SUMS)
		return choir_fail(CHOIR_INTERNAL, "sum: more than %d nodes", CHI_MAX_PARTIAL_SUMS);
	int at = sums->n;
	while (at > 0 && sums->node[at - 1].lo > node.lo)
		at--;
	if (buffer != NULL)
		chi_buffer_retain(buffer);
	insert(sums, at, node, buffer, own);
	for (bool more = true; more;) {
		const int a = are_halves(sums, at - 1) ? at - 1 : at;
		more = are_halves(sums, a);
		if (more)
			CHOIR_TRY(add_two(sums, a, stream));
		at = a;
	}
	return CHOIR_OK;
}

typedef struct {
	const chi_chunk_sum *chunk;
	size_t size;
	int member;
	size_t index;
	char *to;
	bool nontemporal;
	bool broken; // the parts are not nodes of the tree
} part_reader;

static const choir_partial_sum *next_part(part_reader *r)
{
	const chi_chunk_sum *s = r->chunk;
	while (r->member < s->members && r->index == s->c[r->member]->n) {
		r->member++;
		r->index = 0;
	}
	return r->member == s->members ? NULL : &s->c[r->member]->partial_sums[r->index];
}

static char *memory_at(const part_reader *r, int level)
{
	return level == 0 ? r->to : r->chunk->scratch + (size_t) (level - 1) * CHI_TREE_LEVEL;
}

static bool find_part(void *self, int lo, int hi, int level, const void **sum)
{
	(void) level;
	part_reader *r = self;
	const choir_partial_sum *p = next_part(r);
	*sum = NULL;
	if (p != NULL && p->lo == lo && p->hi == hi && !r->broken) {
		r->index++;
		*sum = (const char *) p->data + (size_t) r->chunk->first * r->size;
		return true;
	}
	r->broken = r->broken || p == NULL || hi - lo < 2 || p->lo != lo;
	return r->broken;
}

// A sum that was made at a level stays in the cache.
static const void *add_parts(void *self, const void *left, const void *right, int level)
{
	const part_reader *r = self;
	const choir_dtype dtype = r->chunk->c[0]->dtype;
	char *to = memory_at(r, level);
	if (r->nontemporal && left != to && right != memory_at(r, level + 1))
		chi_vector_add_past(dtype, to, left, right, r->chunk->count);
	else
		chi_vector_add(dtype, to, left, right, r->chunk->count);
	return to;
}

static const chi_tree_adder part_adder = { find_part, add_parts };

choir_status chi_chunk_sum_make(const chi_chunk_sum *s, chi_stream *stream, const void **sum)
{
	const choir_collective *c = s->c[0];
	part_reader r = { .chunk = s,
		.size = chi_dtype_size(c->dtype),
		.to = s->to,
		.nontemporal = s->nontemporal && c->divisor == 1 };
	*sum = chi_tree_sum(&part_adder, &r, 0, s->replicas, 0);
	if (r.broken || next_part(&r) != NULL)
		return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas", c->name,
				s->replicas);
	if (c->divisor == 1)
		return CHOIR_OK;
	if (*sum != s->to)
		memcpy(s->to, *sum, (size_t) s->count * r.size);
	*sum = s->to;
	return chi_sum_divide(stream, c->dtype, s->to, c->divisor, s->count);
}

choir_status chi_sum_divide(
		chi_stream *stream, choir_dtype dtype, void *data, double divisor, int64_t n)
{
	float single = (float) divisor;
	void *by = dtype == CHOIR_F32 ? (void *) &single : (void *) &divisor;
	if (divisor == 1)
		return CHOIR_OK;
	const choir_buffer in[2] = { { data, dtype, { 1, { n } } }, { by, dtype, { 0, { 0 } } } };
	choir_buffer out = in[0];
	return chi_kernel_run(stream, "divide", 2, in, &out, NULL);
}

choir_status chi_tree_nodes_open(chi_tree_nodes *nodes, int n, const choir_partial_sum node[])
{
	nodes->n = n;
	nodes->node = chi_alloc_array((size_t) n, sizeof *node);
	CHOIR_TRY(chi_made(nodes->node));
	memcpy(nodes->node, node, (size_t) n * sizeof *node);
	return CHOIR_OK;
}

void chi_tree_nodes_close(chi_tree_nodes *nodes)
{
	chi_free(nodes->node);
	chi_free(nodes->memory.memory);
}

choir_status chi_tree_nodes_reserve(chi_tree_nodes *nodes, const choir_collective *c)
{
	size_t bytes, all;
	if (!chi_size_multiply((size_t) c->elements, chi_dtype_size(c->dtype), &bytes) ||
			!chi_size_multiply((size_t) nodes->n, bytes, &all))
		return choir_fail(CHOIR_NO_MEMORY, "%s: too many elements", c->name);
	if (!chi_scratch_reserve(&nodes->memory, all))
		return choir_error_status();
	for (int i = 0; i < nodes->n; i++) {
		char *data = nodes->memory.memory + (size_t) i * bytes;
		if (nodes->node[i].data != data) // others may read it
			nodes->node[i].data = data;
	}
	return CHOIR_OK;
}

choir_status chi_tree_nodes_sum(const chi_tree_nodes *nodes, const choir_collective *const c[],
		int members, int64_t first, char *scratch)
{
	const int64_t left = c[0]->elements - first;
	const chi_chunk_sum s = { .c = c,
		.members = members,
		.first = first,
		.count = left < CHI_CHUNK ? left : CHI_CHUNK,
		.scratch = scratch };
	part_reader r = { .chunk = &s, .size = chi_dtype_size(c[0]->dtype) };
	for (const choir_partial_sum *node = nodes->node; node < nodes->node + nodes->n; node++) {
		r.to = (char *) node->data + (size_t) first * r.size;
		const void *sum = chi_tree_sum(&part_adder, &r, node->lo, node->hi, 0);
		if (r.broken)
			return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover replicas %d to %d",
					c[0]->name, node->lo, node->hi - 1);
		if (sum != r.to)
			memcpy(r.to, sum, (size_t) s.count * r.size);
	}
	return CHOIR_OK;
}
