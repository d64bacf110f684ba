// Folding contributions into the nodes of the canonical tree, as a binary counter does, but
// knowing that a block may begin in the middle of the tree, that the tree's right edge is cut, and
// that contributions may come in any order: a sum is made as soon as both of its halves are there.
#include "cross/tree.h"

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

void chi_fold_begin(chi_fold *fold, int replicas, choir_dtype dtype, const choir_shape *shape)
{
	fold->replicas = replicas;
	fold->dtype = dtype;
	fold->shape = *shape;
	fold->n = 0;
	fold->spent = NULL;
}

void chi_fold_clear(chi_fold *fold)
{
	for (int i = 0; i < fold->n; i++)
		chi_buffer_release(fold->buffer[i]);
	fold->n = 0;
}

bool chi_fold_has(const chi_fold *fold, int replica)
{
	for (int i = 0; i < fold->n; i++)
		if (fold->part[i].lo <= replica && replica < fold->part[i].hi)
			return true;
	return false;
}

static choir_buffer shown(const chi_fold *fold, void *data)
{
	return (choir_buffer){ data, fold->dtype, fold->shape };
}

// Puts a part at its place among the others.
static void insert(chi_fold *fold, int at, choir_part part, chi_buffer *buffer, bool own)
{
	for (int i = fold->n++; i > at; i--) {
		fold->part[i] = fold->part[i - 1];
		fold->buffer[i] = fold->buffer[i - 1];
		fold->own[i] = fold->own[i - 1];
	}
	fold->part[at] = part;
	fold->buffer[at] = buffer;
	fold->own[at] = own;
}

static void take_out(chi_fold *fold, int at)
{
	fold->n--;
	for (int i = at; i < fold->n; i++) {
		fold->part[i] = fold->part[i + 1];
		fold->buffer[i] = fold->buffer[i + 1];
		fold->own[i] = fold->own[i + 1];
	}
}

// Adds parts a and a + 1 into one, in memory that is the fold's own.
static choir_status add_two(chi_fold *fold, int a, chi_stream *stream)
{
	const int b = a + 1;
	chi_buffer *into = fold->own[a] ? fold->buffer[a] : fold->own[b] ? fold->buffer[b] : NULL;
	void *data = fold->own[a] ? fold->part[a].data : fold->part[b].data;
	if (into != NULL) {
		chi_buffer_retain(into);
	} else {
		size_t bytes;
		if (!chi_shape_bytes(&fold->shape, fold->dtype, &bytes) ||
				(into = chi_buffer_new(stream->device, bytes)) == NULL)
			return choir_error_status();
		data = into->memory;
	}
	const choir_buffer in[2] = { shown(fold, fold->part[a].data),
		shown(fold, fold->part[b].data) };
	choir_buffer out = shown(fold, data);
	choir_status status = chi_kernel_run(stream, "add", 2, in, &out, NULL);
	// Memory that was made here goes back to the pool, from which any stream may take it.
	if (status == CHOIR_OK && fold->own[a] && fold->own[b] && fold->spent == NULL)
		status = chi_stream_wait(stream);
	if (status != CHOIR_OK) {
		chi_buffer_release(into);
		return status;
	}
	chi_buffer_release(fold->buffer[a]);
	if (fold->own[a] && fold->own[b] && fold->spent != NULL)
		chi_buffer_put(fold->spent, fold->buffer[b]);
	else
		chi_buffer_release(fold->buffer[b]);
	fold->buffer[a] = into;
	fold->own[a] = true;
	fold->part[a].data = data;
	fold->part[a].hi = fold->part[b].hi;
	take_out(fold, b);
	return CHOIR_OK;
}

// Whether parts a and a + 1 are the halves of a node.
static bool are_halves(const chi_fold *fold, int a)
{
	return a >= 0 && a + 1 < fold->n && fold->part[a].hi == fold->part[a + 1].lo &&
			chi_tree_is_node(fold->replicas, fold->part[a].lo, fold->part[a + 1].hi);
}

choir_status chi_fold_add(
		chi_fold *fold, int replica, chi_buffer *buffer, void *data, chi_stream *stream)
{
	const choir_part leaf = { replica, replica + 1, data };
	return chi_fold_add_node(fold, leaf, buffer, false, stream);
}

choir_status chi_fold_add_node(
		chi_fold *fold, choir_part node, chi_buffer *buffer, bool own, chi_stream *stream)
{
	if (fold->n == CHI_FOLD_PARTS)
		return choir_fail(CHOIR_INTERNAL, "fold: more than %d parts", CHI_FOLD_PARTS);
	int at = fold->n;
	while (at > 0 && fold->part[at - 1].lo > node.lo)
		at--;
	if (buffer != NULL)
		chi_buffer_retain(buffer);
	insert(fold, at, node, buffer, own);
	for (bool more = true; more;) {
		const int a = are_halves(fold, at - 1) ? at - 1 : at;
		more = are_halves(fold, a);
		if (more)
			CHOIR_TRY(add_two(fold, a, stream));
		at = a;
	}
	return CHOIR_OK;
}
