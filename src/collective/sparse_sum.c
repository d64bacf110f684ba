// Sorts rows and sums them.
#include "collective/sparse_sum.h"

#include "collective/tree.h"
#include "op/vector.h"

#include <string.h>

enum { DIGIT_BITS = 11, FEW = 48 };

static void sort_few(int64_t n, chi_sparse_entry entry[])
{
	for (int64_t i = 1; i < n; i++) {
		const chi_sparse_entry e = entry[i];
		int64_t at = i;
		for (; at > 0 && entry[at - 1].row > e.row; at--)
			entry[at] = entry[at - 1];
		entry[at] = e;
	}
}

static size_t digit_of(const chi_sparse_entry *e, unsigned shift)
{
	return (size_t) ((uint64_t) e->row >> shift & (((uint64_t) 1 << DIGIT_BITS) - 1));
}

static void sort_by_digit(
		int64_t n, const chi_sparse_entry from[], chi_sparse_entry to[], unsigned shift)
{
	int64_t begin[1 << DIGIT_BITS] = { 0 }, at = 0;
	for (int64_t i = 0; i < n; i++)
		begin[digit_of(&from[i], shift)]++;
	for (size_t digit = 0; digit < 1 << DIGIT_BITS; digit++) {
		const int64_t count = begin[digit];
		begin[digit] = at;
		at += count;
	}
	for (int64_t i = 0; i < n; i++)
		to[begin[digit_of(&from[i], shift)]++] = from[i];
}

// A stable radix sort by row. qsort would allocate, and unmapping interrupts all threads of the
// process.
static void sort(int64_t n, chi_sparse_entry entry[], chi_sparse_entry spare[])
{
	int64_t last = 0;
	for (int64_t i = 0; i < n; i++)
		last = entry[i].row > last ? entry[i].row : last;
	chi_sparse_entry *from = entry, *to = spare;
	for (unsigned shift = 0; shift < 63 && last >> shift != 0; shift += DIGIT_BITS) {
		sort_by_digit(n, from, to, shift);
		chi_sparse_entry *before = from;
		from = to;
		to = before;
	}
	if (from != entry)
		memcpy(entry, from, (size_t) n * sizeof *entry);
}

int64_t chi_sparse_sum_order(int parts, const chi_sparse_part part[], chi_sparse_entry entry[])
{
	int64_t n = 0, different = 0;
	for (int p = 0; p < parts; p++)
		for (int64_t i = 0; i < part[p].n; i++)
			entry[n++] = (chi_sparse_entry){ part[p].row[i], p, i };
	if (n <= FEW)
		sort_few(n, entry);
	else
		sort(n, entry, entry + n);
	for (int64_t i = 0; i < n; i++)
		different += i == 0 || entry[i].row != entry[i - 1].row;
	return different;
}

typedef struct {
	const chi_sparse_part *part;
	const chi_sparse_entry *entry, *end;
	chi_sparse_sum_as as;
	size_t bytes;
	char *scratch;
} row_sum;

static const void *values_of(const row_sum *w, const chi_sparse_entry *e)
{
	return (const char *) w->part[e->part].values + (size_t) e->at * w->bytes;
}

static void *row_at(const row_sum *w, int level)
{
	return w->scratch + (size_t) level * w->bytes;
}

static const void *add_exactly(const row_sum *w, const void *left, const void *right, int level)
{
	chi_vector_add(w->as.dtype, row_at(w, level), left, right, w->as.width);
	return row_at(w, level);
}

static const void *rounded(const row_sum *w, const void *row, int level)
{
	if (row == NULL || w->as.rounded == w->as.dtype)
		return row;
	chi_vector_round(w->as.rounded, row_at(w, level), row, w->as.width);
	return row_at(w, level);
}

static const void *add_rows(void *self, const void *left, const void *right, int level)
{
	return rounded(self, add_exactly(self, left, right, level), level);
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
							: add_exactly(w, *sum, values_of(w, w->entry), level);
	*sum = rounded(w, *sum, level);
	return true;
}

int chi_slices_levels(int parts)
{
	return chi_tree_depth(parts) + 1;
}

void chi_sparse_sum(int parts, const chi_sparse_part part[], int64_t n,
		const chi_sparse_entry entry[], const chi_sparse_sum_as *as, int64_t rows[], void *values,
		char *scratch)
{
	static const chi_tree_adder adder = { find_rows, add_rows };
	const size_t bytes = (size_t) as->width * chi_dtype_size(as->dtype);
	char *to = values;
	for (int64_t i = 0, next; i < n; i = next) {
		for (next = i + 1; next < n && entry[next].row == entry[i].row;)
			next++;
		row_sum w = { part, entry + i, entry + next, *as, bytes, scratch };
		const void *sum = chi_tree_sum(&adder, &w, 0, parts, 0);
		if (bytes > 0)
			memcpy(to, sum, bytes);
		to += bytes;
		*rows++ = entry[i].row;
	}
}
