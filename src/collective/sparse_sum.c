// Slices, merged.
#include "collective/sparse_sum.h"

#include "collective/tree.h"
#include "op/vector.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const chi_sparse_entry *x = a, *y = b;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

int64_t chi_sparse_sum_order(int parts, const chi_sparse_part part[], chi_sparse_entry entry[])
{
	int64_t n = 0, different = 0;
	for (int p = 0; p < parts; p++)
		for (int64_t i = 0; i < part[p].n; i++)
			entry[n++] = (chi_sparse_entry){ part[p].row[i], p, i };
	if (n > 0)
		qsort(entry, (size_t) n, sizeof *entry, compare);
	for (int64_t i = 0; i < n; i++)
		different += i == 0 || entry[i].row != entry[i - 1].row;
	return different;
}

// One row on its way: its entries, in the order of parts.
typedef struct {
	const chi_sparse_part *part;
	const chi_sparse_entry *entry, *end;
	choir_dtype dtype;
	int64_t width;
	size_t bytes; // of a row
} row_sum;

static const void *values_of(const row_sum *w, const chi_sparse_entry *e)
{
	return (const char *) w->part[e->part].values + (size_t) e->at * w->bytes;
}

// The sum of one part's entries.
static const void *sum_part(row_sum *w, int part, char *to)
{
	const void *sum = values_of(w, w->entry);
	for (w->entry++; w->entry < w->end && w->entry->part == part; w->entry++) {
		chi_vector_add(w->dtype, to, sum, values_of(w, w->entry), w->width);
		sum = to;
	}
	return sum;
}

// The sum over parts lo .. hi-1, in place or in to; NULL: none of them has the row.
static const void *sum_node(row_sum *w, int lo, int hi, char *to)
{
	if (w->entry == w->end || w->entry->part >= hi)
		return NULL;
	if (hi - lo == 1)
		return sum_part(w, lo, to);
	const int middle = chi_tree_split(lo, hi);
	const void *left = sum_node(w, lo, middle, to);
	const void *right = sum_node(w, middle, hi, left == NULL ? to : to + w->bytes);
	if (left == NULL || right == NULL)
		return left == NULL ? right : left;
	chi_vector_add(w->dtype, to, left, right, w->width);
	return to;
}

int chi_slices_levels(int parts)
{
	return chi_tree_depth(parts) + 1;
}

void chi_sparse_sum(int parts, const chi_sparse_part part[], int64_t n,
		const chi_sparse_entry entry[], choir_dtype dtype, int64_t width, int64_t rows[],
		void *values, char *scratch)
{
	const size_t bytes = (size_t) width * chi_dtype_size(dtype);
	char *to = values;
	for (int64_t i = 0, next; i < n; i = next) {
		for (next = i + 1; next < n && entry[next].row == entry[i].row;)
			next++;
		row_sum w = { part, entry + i, entry + next, dtype, width, bytes };
		const void *sum = sum_node(&w, 0, parts, scratch);
		if (bytes > 0)
			memcpy(to, sum, bytes);
		to += bytes;
		*rows++ = entry[i].row;
	}
}
