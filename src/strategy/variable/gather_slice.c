// Rows of variables, by number or range. A sharded variable's are read shard by shard and joined.
#include "choir/op.h"
#include "strategy/variable/read_component.h"
#include "strategy/variable/sharded_variable.h"
#include "value/shard_rows.h"
#include "value/sparse_read.h"

#include <inttypes.h>

static choir_tensor *in_order(choir_frame *f, choir_tensor *t, const chi_dealt_rows *d)
{
	bool ordered = true;
	for (int64_t i = 0; i < d->n; i++)
		ordered = ordered && d->place[i] == i;
	if (ordered)
		return t;
	int64_t *at = chi_arena_alloc(&f->arena, (size_t) d->n * sizeof *at);
	if (at == NULL)
		return chi_frame_record_null(f);
	for (int64_t i = 0; i < d->n; i++)
		at[d->place[i]] = i;
	return choir_gather(t, choir_constant(f, CHOIR_I64, CHOIR_SHAPE(d->n), at));
}

static choir_tensor *numbered_rows(
		choir_variable *v, choir_frame *f, int64_t n, const int64_t rows[])
{
	choir_tensor *indices = choir_constant(f, CHOIR_I64, CHOIR_SHAPE(n), rows);
	return indices == NULL ? NULL : chi_variable_read_rows(v, indices);
}

// While a tape records, every shard is read: all replicas need the same gradients in one order.
static choir_tensor *take_rows(choir_variable *v, choir_frame *f, int64_t n, const int64_t rows[])
{
	chi_dealt_rows d;
	if (v->shards == 0)
		return numbered_rows(v, f, n, rows);
	if (chi_shards_deal(f, v, n, rows, &d) != CHOIR_OK)
		return NULL;
	choir_tensor **part = chi_arena_alloc(&f->arena, (size_t) v->shards * sizeof *part);
	if (part == NULL)
		return chi_frame_record_null(f);
	int64_t made = 0;
	bool held, read = chi_shards_hold(v, f, &held);
	for (int k = 0; read && k < v->shards; k++) {
		const int64_t count = d.first[k + 1] - d.first[k];
		if (f->tape == NULL && count == 0)
			continue;
		part[made] = numbered_rows(v->shard[k], f, count, d.row + d.first[k]);
		read = part[made++] != NULL;
	}
	chi_shards_release(v, held);
	if (!read)
		return NULL;
	if (made == 0)
		return numbered_rows(v->shard[0], f, 0, rows);
	return in_order(f, chi_shards_join_rows(made, part), &d);
}

static int64_t *rows_of(const choir_variable *v, choir_tensor *indices)
{
	choir_frame *f = indices->frame;
	const int64_t n = choir_shape_elements(&indices->shape);
	int64_t *rows = chi_arena_alloc(&f->arena, (size_t) (n + 1) * sizeof *rows);
	if (rows == NULL)
		return chi_frame_record_null(f);
	indices = choir_cast(indices, CHOIR_I64);
	if (indices == NULL ||
			choir_tensor_to_host(indices, rows, (size_t) n * sizeof *rows) != CHOIR_OK)
		return NULL;
	for (int64_t i = 0; i < n; i++)
		if (rows[i] < 0 || rows[i] >= v->shape.dim[0]) {
			chi_frame_fail(f, CHOIR_INVALID,
					"variable \"%s\": gather: indices[%" PRId64 "] is %" PRId64
					"; the variable has %" PRId64 " rows",
					v->name, i, rows[i], v->shape.dim[0]);
			return NULL;
		}
	return rows;
}

choir_tensor *choir_variable_gather(choir_variable *v, choir_tensor *indices)
{
	if (v == NULL || indices == NULL)
		return chi_frame_null_argument(choir_tensor_frame(indices), "gather");
	choir_frame *f = indices->frame;
	if (v->shards == 0)
		return chi_variable_read_rows(v, indices);
	choir_shape shape = indices->shape;
	if (chi_tensor_check(indices) != CHOIR_OK)
		return NULL;
	if ((indices->dtype != CHOIR_U8 && indices->dtype != CHOIR_I32 &&
				indices->dtype != CHOIR_I64) ||
			shape.rank + v->shape.rank - 1 > CHOIR_MAX_RANK)
		return choir_gather(choir_variable_read(v->shard[0], f), indices);
	const int64_t *rows = rows_of(v, indices);
	choir_tensor *t = rows == NULL ? NULL : take_rows(v, f, choir_shape_elements(&shape), rows);
	for (int i = 1; i < v->shape.rank; i++)
		shape.dim[shape.rank++] = v->shape.dim[i];
	return t == NULL ? NULL : choir_reshape(t, shape);
}

static choir_tensor *take_range(choir_variable *v, choir_frame *f, int64_t first, int64_t count)
{
	if (v->shards == 0)
		return choir_slice(choir_variable_read(v, f), 0, first, count);
	choir_tensor **read = chi_shards_read_each(v, f);
	int64_t made = 0;
	for (int k = 0; read != NULL && k < v->shards; k++) {
		const choir_variable *shard = v->shard[k];
		int64_t from = first - shard->first_row, to = from + count;
		from = from < 0 ? 0 : from;
		to = to < shard->shape.dim[0] ? to : shard->shape.dim[0];
		if (from >= to && f->tape == NULL)
			continue;
		read[made] = choir_slice(read[k], 0, from < to ? from : 0, from < to ? to - from : 0);
		if (read[made++] == NULL)
			return NULL;
	}
	if (read == NULL)
		return NULL;
	return made > 0 ? chi_shards_join_rows(made, read) : choir_slice(read[0], 0, 0, 0);
}

// As in Python.
static int64_t clamped(int64_t at, int64_t n, int64_t lowest, int64_t highest)
{
	at = at < 0 ? at + n : at;
	return at < lowest ? lowest : at > highest ? highest : at;
}

choir_tensor *choir_variable_slice(
		choir_variable *v, choir_frame *f, int64_t start, int64_t stop, int64_t step)
{
	if (v == NULL || f == NULL || f->failed)
		return NULL;
	const int64_t n = v->shape.rank == 0 ? 0 : v->shape.dim[0];
	if (v->shape.rank == 0 || step == 0)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				step == 0 ? "variable \"%s\": slice: the step is 0; it must not be 0"
						  : "variable \"%s\": slice: a scalar has no rows",
				v->name);
	const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? n : n - 1;
	start = clamped(start, n, lowest, highest);
	stop = clamped(stop, n, lowest, highest);
	step = step > n ? n + 1 : step < -n ? -n - 1 : step;
	int64_t count = 0;
	if (step > 0 && stop > start)
		count = (stop - start - 1) / step + 1;
	else if (step < 0 && start > stop)
		count = (start - stop - 1) / -step + 1;
	// Of a read, unless only its rows should be read.
	if ((step == 1 && (v->shards > 0 || !chi_variable_allows_sparse_read(v, f))) || count == 0)
		return take_range(v, f, count == 0 ? 0 : start, count);
	int64_t *rows = chi_arena_alloc(&f->arena, (size_t) count * sizeof *rows);
	if (rows == NULL)
		return chi_frame_record_null(f);
	for (int64_t i = 0; i < count; i++)
		rows[i] = start + i * step;
	return take_rows(v, f, count, rows);
}
