// The rows of all workers' replicas on every worker, wherever each of them had its own. Workers
// that gather rows of different things fail.
#include "collective/sparse_gather.h"

#include "cluster/worker_threads.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { WORKERS = 3, REPLICAS = 6, MAX_ROWS = 4, WIDTH = 2, ROWS = REPLICAS * MAX_ROWS };

static int64_t rows_of(int replica)
{
	return replica == 1 ? 0 : replica % (MAX_ROWS + 1);
}

// What replica has as its k-th row, and there.
static int64_t row_at(int replica, int64_t k)
{
	return 100 * replica - k;
}

static float value_at(int replica, int64_t k, int column)
{
	return (float) (10 * replica + k) + 0.5f * (float) column;
}

typedef struct {
	int64_t each[REPLICAS], row[ROWS], own_row[ROWS];
	float values[ROWS * WIDTH], own_values[ROWS * WIDTH];
	chi_sparse_part part[REPLICAS];
} memory;

// Fills in this worker's replicas; in place: where they belong among all.
static void bring(memory *m, int first, int last, bool in_place)
{
	int64_t at = 0;
	for (int r = 0; r < REPLICAS; r++) {
		int64_t *row = (in_place ? m->row : m->own_row) + at;
		float *values = (in_place ? m->values : m->own_values) + at * WIDTH;
		at += rows_of(r);
		m->each[r] = -1;
		if (r < first || r >= last)
			continue;
		for (int64_t k = 0; k < rows_of(r); k++) {
			row[k] = row_at(r, k);
			for (int i = 0; i < WIDTH; i++)
				values[k * WIDTH + i] = value_at(r, k, i);
		}
		m->each[r] = rows_of(r);
		m->part[r] = (chi_sparse_part){ rows_of(r), row, values };
	}
}

static const char *check(const memory *m)
{
	for (int r = 0; r < REPLICAS; r++) {
		const float *values = m->part[r].values;
		if (m->each[r] != rows_of(r) || m->part[r].n != rows_of(r))
			return "another number of rows";
		for (int64_t k = 0; k < rows_of(r); k++) {
			if (m->part[r].row[k] != row_at(r, k))
				return "another row";
			for (int i = 0; i < WIDTH; i++)
				if (values[k * WIDTH + i] != value_at(r, k, i))
					return "another value";
		}
	}
	return NULL;
}

static choir_status gather(chi_process_group *p, memory *m, const char *name)
{
	const chi_sparse_gather g = { .group = p,
		.what = "sum of",
		.name = name,
		.each = m->each,
		.row_bytes = WIDTH * sizeof(float),
		.row = m->row,
		.values = (char *) m->values,
		.part = m->part };
	CHOIR_TRY(chi_sparse_gather_counts(&g));
	return chi_sparse_gather_rows(&g);
}

// Worker w has w + 1 replicas.
static const char *be_worker(choir_cluster *c, int worker, void *user)
{
	const bool differ = *(const bool *) user;
	chi_process_group p = { 0 };
	memory *m = calloc(1, sizeof *m);
	choir_status status = CHOIR_STATE;
	if (c != NULL && m != NULL)
		status = chi_process_group_open(&p, c, CHI_TAG_COLLECTIVES, worker + 1);
	if (status == CHOIR_OK) {
		bring(m, p.first[worker], p.first[worker + 1], worker == 1);
		status = gather(&p, m, differ && worker == 2 ? "b" : "a");
	}
	const char *wrong = status != CHOIR_OK ? choir_error() : differ ? "no failure" : check(m);
	if (differ && status != CHOIR_OK && text_holds(choir_error(), "rows of sum of"))
		wrong = NULL;
	chi_process_group_close(&p);
	free(m);
	return wrong;
}

static void run(bool differ)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		const sim_options o = {
			.workers = WORKERS, .seed = seed, .slowest = 1e-3, .eager = 4096, .quiet = 5
		};
		sim *s = sim_new(&o);
		assert_non_null(s);
		worker_threads_run(s, WORKERS, NULL, be_worker, &differ);
		sim_free(s);
	}
}

TEST(everybody_has_all_rows)
{
	run(false);
}

TEST(different_things_fail)
{
	run(true);
}
