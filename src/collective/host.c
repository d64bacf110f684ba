// Walking over parts and handing out sums.
#include "collective/host.h"

#include "collective/tree.h"
#include "op/vector.h"

#include <string.h>

chi_tree_sum chi_tree_sum_begin(const choir_collective *const c[], int members, choir_dtype dtype,
		int64_t first, int64_t count)
{
	return (chi_tree_sum){ .c = c,
		.members = members,
		.dtype = dtype,
		.size = chi_dtype_size(dtype),
		.first = first,
		.count = count };
}

const choir_part *chi_tree_sum_next(chi_tree_sum *w)
{
	while (w->member < w->members && w->index == w->c[w->member]->n) {
		w->member++;
		w->index = 0;
	}
	return w->member == w->members ? NULL : &w->c[w->member]->parts[w->index];
}

const void *chi_tree_sum_node(chi_tree_sum *w, int lo, int hi, char *to, char *spare)
{
	const choir_part *p = chi_tree_sum_next(w);
	if (p != NULL && p->lo == lo && p->hi == hi) {
		w->index++;
		return (const char *) p->data + (size_t) w->first * w->size;
	}
	if (p == NULL || hi - lo < 2 || p->lo != lo) {
		w->broken = true;
		return to;
	}
	const int middle = chi_tree_split(lo, hi);
	const void *left = chi_tree_sum_node(w, lo, middle, to, spare);
	const void *right =
			w->broken ? to : chi_tree_sum_node(w, middle, hi, spare, spare + CHI_TREE_SUM_LEVEL);
	// What was summed into to before is in a cache, where it stays then.
	if (!w->broken && w->nontemporal && left != to && right != spare)
		chi_vector_add_past(w->dtype, to, left, right, w->count);
	else if (!w->broken)
		chi_vector_add(w->dtype, to, left, right, w->count);
	return to;
}

choir_status chi_tree_sum_nodes(const choir_collective *const c[], int members, int64_t first,
		size_t n, const choir_part node[], char *memory, char *spare)
{
	const size_t size = chi_dtype_size(c[0]->dtype), bytes = (size_t) c[0]->elements * size;
	const int64_t left = c[0]->elements - first;
	chi_tree_sum tree_sum = chi_tree_sum_begin(
			c, members, c[0]->dtype, first, left < CHI_CHUNK ? left : CHI_CHUNK);
	for (size_t i = 0; i < n; i++) {
		char *to = memory + i * bytes + (size_t) first * size;
		const void *sum = chi_tree_sum_node(&tree_sum, node[i].lo, node[i].hi, to, spare);
		if (tree_sum.broken)
			return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover replicas %d to %d",
					c[0]->name, node[i].lo, node[i].hi - 1);
		if (sum != to)
			memcpy(to, sum, (size_t) tree_sum.count * size);
	}
	return CHOIR_OK;
}

choir_status chi_deliver(const chi_round *round, int members, const void *data, int64_t first,
		int64_t count, size_t size)
{
	for (int i = 0; i < members; i++) {
		const choir_collective *c = round->c[i];
		if (chi_round_first_with(round, i) != i)
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
