// Folding contributions into the nodes of the canonical tree, as a binary counter does, but
// knowing that a block may begin in the middle of the tree, that the tree's right edge is cut, and
// that contributions may come in any order: a sum is made as soon as both of its halves are there.
#include "collective/tree.h"

#include "op/op.h"

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

int chi_tree_depth(int replicas)
{
	int depth = 1;
	while ((1 << (depth - 1)) < replicas && depth < 31)
		depth++;
	return depth;
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

// Puts a part at its place among the others.
static void insert(chi_partial_sums *sums, int at, choir_part part, chi_buffer *buffer, bool own)
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

// Adds parts a and a + 1 into one, in memory that is the fold's own.
static choir_status add_two(chi_partial_sums *sums, int a, chi_stream *stream)
{
	const int b = a + 1;
	chi_buffer *into = sums->own[a] ? sums->buffer[a] : sums->own[b] ? sums->buffer[b] : NULL;
	void *data = sums->own[a] ? sums->node[a].data : sums->node[b].data;
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
	// Memory that was made here goes back to the pool, from which any stream may take it.
	if (status == CHOIR_OK && sums->own[a] && sums->own[b] && sums->spent == NULL)
		status = chi_stream_wait(stream);
	if (status != CHOIR_OK) {
		chi_buffer_release(into);
		return status;
	}
	chi_buffer_release(sums->buffer[a]);
	if (sums->own[a] && sums->own[b] && sums->spent != NULL)
		chi_buffer_list_add(sums->spent, sums->buffer[b]);
	else
		chi_buffer_release(sums->buffer[b]);
	sums->buffer[a] = into;
	sums->own[a] = true;
	sums->node[a].data = data;
	sums->node[a].hi = sums->node[b].hi;
	take_out(sums, b);
	return CHOIR_OK;
}

// Whether parts a and a + 1 are the halves of a node.
static bool are_halves(const chi_partial_sums *sums, int a)
{
	return a >= 0 && a + 1 < sums->n && sums->node[a].hi == sums->node[a + 1].lo &&
			chi_tree_is_node(sums->replicas, sums->node[a].lo, sums->node[a + 1].hi);
}

choir_status chi_partial_sums_add(
		chi_partial_sums *sums, int replica, chi_buffer *buffer, void *data, chi_stream *stream)
{
	const choir_part leaf = { replica, replica + 1, data };
	return chi_partial_sums_add_node(sums, leaf, buffer, false, stream);
}

choir_status chi_partial_sums_add_node(
		chi_partial_sums *sums, choir_part node, chi_buffer *buffer, bool own, chi_stream *stream)
{
	if (sums->n == CHI_MAX_PARTIAL_SUMS)
		return choir_fail(CHOIR_INTERNAL, "fold: more than %d parts", CHI_MAX_PARTIAL_SUMS);
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
