// Folding contributions into the nodes of the canonical tree, as a binary counter does, but knowing
// that a block may begin in the middle of the tree and that the tree's right edge is cut.
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
}

void chi_fold_clear(chi_fold *fold)
{
	for (int i = 0; i < fold->n; i++)
		chi_buffer_release(fold->buffer[i]);
	fold->n = 0;
}

static choir_buffer shown(const chi_fold *fold, void *data)
{
	return (choir_buffer){ data, fold->dtype, fold->shape };
}

// Adds the last two parts into one, in memory that is the fold's own.
static choir_status add_last_two(chi_fold *fold, chi_stream *stream)
{
	const int a = fold->n - 2, b = fold->n - 1;
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
	const choir_buffer in[2] = { shown(fold, fold->part[a].data), shown(fold, fold->part[b].data) };
	choir_buffer out = shown(fold, data);
	choir_status status = chi_kernel_run(stream, "add", 2, in, &out, NULL);
	// Memory that was made here goes back to the pool, from which any stream may take it.
	if (status == CHOIR_OK && fold->own[a] && fold->own[b])
		status = chi_stream_wait(stream);
	if (status != CHOIR_OK) {
		chi_buffer_release(into);
		return status;
	}
	chi_buffer_release(fold->buffer[a]);
	chi_buffer_release(fold->buffer[b]);
	fold->buffer[a] = into;
	fold->own[a] = true;
	fold->part[a].data = data;
	fold->part[a].hi = fold->part[b].hi;
	fold->n--;
	return CHOIR_OK;
}

choir_status chi_fold_add(chi_fold *fold, int replica, chi_buffer *buffer, void *data,
		chi_stream *stream)
{
	if (fold->n == CHI_FOLD_PARTS)
		return choir_fail(CHOIR_INTERNAL, "fold: more than %d parts", CHI_FOLD_PARTS);
	chi_buffer_retain(buffer);
	fold->buffer[fold->n] = buffer;
	fold->own[fold->n] = false;
	fold->part[fold->n++] = (choir_part){ replica, replica + 1, data };
	while (fold->n >= 2 && chi_tree_is_node(fold->replicas, fold->part[fold->n - 2].lo,
			fold->part[fold->n - 1].hi))
		CHOIR_TRY(add_last_two(fold, stream));
	return CHOIR_OK;
}
