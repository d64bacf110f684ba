// Exchanges of counts, indices and values between workers.
#include "collective/sparse_gather.h"

#include <string.h>

choir_status chi_sparse_gather_counts(const chi_sparse_gather *g)
{
	chi_process_group *p = g->group;
	for (int w = 0; w < p->workers; w++)
		p->bytes[w] = (size_t) (p->first[w + 1] - p->first[w]) * sizeof *g->each;
	return chi_process_group_all_gather_v(p, g->each + chi_process_group_first_replica(p),
			p->bytes, g->each, "rows of %s %s", g->what, g->name);
}

static choir_status exchange(
		const chi_sparse_gather *g, size_t row_bytes, const void *own, void *all, const char *what)
{
	chi_process_group *p = g->group;
	for (int w = 0; w < p->workers; w++) {
		p->bytes[w] = 0;
		for (int r = p->first[w]; r < p->first[w + 1]; r++)
			p->bytes[w] += (size_t) g->each[r] * row_bytes;
	}
	return chi_process_group_all_gather_v(
			p, own, p->bytes, all, "%s of the rows of %s %s", what, g->what, g->name);
}

choir_status chi_sparse_gather_rows(const chi_sparse_gather *g)
{
	const chi_process_group *p = g->group;
	const chi_sparse_part *own = &g->part[chi_process_group_first_replica(p)];
	int64_t *row = g->row;
	char *values = g->values;
	for (int r = 0; r < p->replicas; r++) {
		chi_sparse_part *part = &g->part[r];
		const size_t n = (size_t) g->each[r], bytes = n * g->row_bytes;
		const bool is_own = p->first[p->worker] <= r && r < p->first[p->worker + 1];
		if (is_own && n > 0 && part->row != row)
			memcpy(row, part->row, n * sizeof *row);
		if (is_own && bytes > 0 && part->values != values)
			memcpy(values, part->values, bytes);
		*part = (chi_sparse_part){ g->each[r], row, values };
		row += n;
		values += bytes;
	}
	CHOIR_TRY(exchange(g, sizeof *row, own->row, g->row, "numbers"));
	return exchange(g, g->row_bytes, own->values, g->values, "values");
}
