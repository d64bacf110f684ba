// The specification in a loop. Numbers are kept as doubles and rounded after every operation to
// the program's dtype: a double holds every f32, i32 and (as small as they are here) i64, and the
// sum, difference and quotient of two f32, computed as double and rounded again, are the rounded
// ones.
#include "program.h"

#include <math.h>
#include <string.h>

static double rounded(const program *p, double x)
{
	switch (p->dtype) {
	case CHOIR_F32:
		return (double) (float) x;
	case CHOIR_I32:
		return (double) (int32_t) (uint32_t) (uint64_t) (int64_t) x; // wraps
	default:
		return x;
	}
}

static bool is_float(const program *p)
{
	return p->dtype == CHOIR_F32 || p->dtype == CHOIR_F64;
}

// House rule 12: a node splits at the largest power of two below its length.
static double tree(const program *p, double (*x)[PROGRAM_ELEMENTS], int lo, int hi, int64_t i)
{
	int half = 1;
	if (hi - lo == 1)
		return x[lo][i];
	while (2 * half < hi - lo)
		half *= 2;
	return rounded(p, tree(p, x, lo, lo + half, i) + tree(p, x, lo + half, hi, i));
}

static double total(const program *p, double (*x)[PROGRAM_ELEMENTS], bool mean, int64_t i)
{
	const double sum = tree(p, x, 0, p->replicas, i);
	return mean ? rounded(p, sum / p->replicas) : sum;
}

static double changed(const program *p, double now, int op, double by)
{
	return op == 0 ? by : rounded(p, op == 1 ? now + by : now - by);
}

static bool is_on_read(const program *p, int v)
{
	return p->variable[v].synchronization == CHOIR_SYNCHRONIZATION_ON_READ;
}

// Section 2.4, outside of replicas.
static bool read_whole(const program *p, world_model *m, int v, double *to)
{
	const choir_aggregation a = p->variable[v].aggregation;
	if (is_on_read(p, v) && a == CHOIR_AGGREGATION_NONE)
		return false;
	const bool adds =
			is_on_read(p, v) && (a == CHOIR_AGGREGATION_SUM || a == CHOIR_AGGREGATION_MEAN);
	for (int64_t i = 0; i < p->n; i++)
		to[i] = adds ? total(p, m->part[v], a == CHOIR_AGGREGATION_MEAN, i) : m->part[v][0][i];
	return true;
}

bool model_read(const program *p, const world_model *m, int v, double *to)
{
	return read_whole(p, (world_model *) (uintptr_t) m, v, to);
}

// Section 2.5, in a replica.
static bool write_in_replicas(const program *p, const program_op *op, world_model *m)
{
	const choir_aggregation a = p->variable[op->v].aggregation;
	const bool number = op->kind == WRITE_NUMBER;
	if (is_on_read(p, op->v)) {
		for (int r = 0; r < p->replicas; r++)
			for (int64_t i = 0; i < p->n; i++)
				m->part[op->v][r][i] =
						changed(p, m->part[op->v][r][i], op->op, number ? op->c : m->x[r][i]);
		return true;
	}
	if (a == CHOIR_AGGREGATION_NONE ||
			(number && a == CHOIR_AGGREGATION_SUM && op->c != 0 && p->replicas > 1))
		return false;
	for (int64_t i = 0; i < p->n; i++) {
		const double by = number ? op->c
				: a == CHOIR_AGGREGATION_ONLY_FIRST_REPLICA
				? m->x[0][i]
				: total(p, m->x, a == CHOIR_AGGREGATION_MEAN, i);
		m->part[op->v][0][i] = changed(p, m->part[op->v][0][i], op->op, by);
	}
	return true;
}

// The share of part r of a sum (0.2, M9: of integers the first get one more).
static double share(const program *p, double whole, int r)
{
	if (is_float(p))
		return rounded(p, whole / p->replicas);
	const double min = floor(whole / p->replicas);
	return min + (r < whole - min * p->replicas ? 1 : 0);
}

// Section 2.5, outside of replicas.
static bool write_whole(const program *p, const program_op *op, world_model *m)
{
	const choir_aggregation a = p->variable[op->v].aggregation;
	if (is_on_read(p, op->v) && (a == CHOIR_AGGREGATION_NONE || op->op != 0))
		return false;
	const int parts = is_on_read(p, op->v) ? p->replicas : 1;
	for (int r = 0; r < parts; r++)
		for (int64_t i = 0; i < p->n; i++)
			m->part[op->v][r][i] = is_on_read(p, op->v) && a == CHOIR_AGGREGATION_SUM
					? share(p, op->c, r)
					: changed(p, m->part[op->v][r][i], op->op, op->c);
	return true;
}

// Section 2.5, update context: every copy or part, no aggregation.
static void update_all(const program *p, const program_op *op, world_model *m, double by)
{
	const int parts = is_on_read(p, op->v) ? p->replicas : 1;
	for (int r = 0; r < parts; r++)
		for (int64_t i = 0; i < p->n; i++)
			m->part[op->v][r][i] = rounded(p, m->part[op->v][r][i] + by);
}

static bool add_whole(const program *p, const program_op *op, world_model *m)
{
	static double whole[PROGRAM_ELEMENTS];
	if (!read_whole(p, m, op->v, whole))
		return false;
	for (int r = 0; r < p->replicas; r++)
		for (int64_t i = 0; i < p->n; i++)
			m->x[r][i] = rounded(p, m->x[r][i] + whole[i]);
	return true;
}

static void optimize(const program *p, const program_op *op, world_model *m)
{
	for (int64_t i = 0; i < p->n; i++) {
		double *v = &m->part[op->v][0][i];
		*v = rounded(p, *v - tree(p, m->x, 0, p->replicas, i));
	}
}

static void replace_x(const program *p, const program_op *op, world_model *m)
{
	for (int64_t i = 0; i < p->n; i++) {
		double from[PROGRAM_REPLICAS];
		const double all = total(p, m->x, op->mean, i);
		for (int r = 0; r < p->replicas; r++)
			from[r] = m->x[r][i];
		for (int r = 0; r < p->replicas; r++)
			m->x[r][i] = op->kind == ROTATE ? from[(r + 1) % p->replicas]
					: op->kind == BROADCAST ? from[op->c % p->replicas]
											: all;
	}
}

static void add_to_x(const program *p, const program_op *op, world_model *m)
{
	for (int r = 0; r < p->replicas; r++)
		for (int64_t i = 0; i < p->n; i++)
			m->x[r][i] = rounded(p,
					m->x[r][i] +
							(op->kind == LOCAL ? op->c + r
											   : m->part[op->v][is_on_read(p, op->v) ? r : 0][i]));
}

bool model_step(const program *p, const program_op *op, world_model *m)
{
	switch (op->kind) {
	case LOCAL:
	case READ:
		add_to_x(p, op, m);
		return true;
	case WRITE:
	case WRITE_NUMBER:
		return write_in_replicas(p, op, m);
	case OPTIMIZE:
		optimize(p, op, m);
		return true;
	case UPDATE:
	case MERGE_UPDATE:
		update_all(p, op, m, op->kind == UPDATE ? op->c : -op->c);
		return true;
	case MERGE_READ:
		return add_whole(p, op, m);
	case MERGE_WRITE:
		return write_whole(p, op, m);
	default:
		replace_x(p, op, m);
		return true;
	}
}

void model_begin(const program *p, world_model *m)
{
	memset(m->open, 0, sizeof m->open);
	for (int v = 0; v < PROGRAM_VARIABLES; v++)
		for (int r = 0; r < p->replicas; r++)
			for (int64_t i = 0; i < p->n; i++)
				m->part[v][r][i] = program_initial(p, v, i);
}

void model_begin_run(const program *p, world_model *m)
{
	for (int r = 0; r < p->replicas; r++)
		for (int64_t i = 0; i < p->n; i++)
			m->x[r][i] = program_begin(p, r, i);
}
