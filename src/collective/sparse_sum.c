// Sorts rows and sums them.
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

typedef struct {
	const chi_sparse_part *part;
	const chi_sparse_entry *entry, *end;
	choir_dtype dtype;
	int64_t width;
	size_t bytes;
	char *scratch;
} row_sum;

static const void *values_of(const row_sum *w, const chi_sparse_entry *e)
{
	return (const char *) w->part[e->part].values + (size_t) e->at * w->bytes;
}

static const void *add_rows(void *self, const void *left, const void *right, int level)
{
	const row_sum *w = self;
	char *to = w->scratch + (size_t) level * w->bytes;
	chi_vector_add(w->dtype, to, left, right, w->width);
	return to;
}

static bool find_rows(void *self, int lo, int hi, int level, const void **sum)
{
	row_sum *w = self;
	const bool none = w->entry == w->end || w->entry->part >= hi;
	*sum = NULL;
	if (!none && hi - lo > 1)
		return false;
	for (; !none && w->entry < w->end && w->entry->part == lo; w->entry++)
		*sum = *sum == NULL ? values_of(w, w->entry)
							: add_rows(w, *sum, values_of(w, w->entry), level);
	return true;
}

int chi_slices_levels(int parts)
{
	return chi_tree_depth(parts) + 1;
}

void chi_sparse_sum(int parts, const chi_sparse_part part[], int64_t n,
		const chi_sparse_entry entry[], choir_dtype dtype, int64_t width, int64_t rows[],
		void *values, char *scratch)
{
	static const chi_tree_adder adder = { find_rows, add_rows };
	const size_t bytes = (size_t) width * chi_dtype_size(dtype);
	char *to = values;
	for (int64_t i = 0, next; i < n; i = next) {
		for (next = i + 1; next < n && entry[next].row == entry[i].row;)
			next++;
		row_sum w = { part, entry + i, entry + next, dtype, width, bytes, scratch };
		const void *sum = chi_tree_sum(&adder, &w, 0, parts, 0);
		if (bytes > 0)
			memcpy(to, sum, bytes);
		to += bytes;
		*rows++ = entry[i].row;
	}
}
