// Reads of shards and recorded operations, so gradients flow to the shards.
#include "strategy/variable/read.h"
#include "strategy/variable/sharded_read.h"

#include "choir/op.h"
#include "op/op.h"
#include "strategy/remote.h"
#include "strategy/update/update.h"
#include "value/sharded_variable.h"
#include "value/sparse_read.h"

#include <inttypes.h>
#include <string.h>

int choir_variable_shards(const choir_variable *v)
{
	return v == NULL ? 0 : v->shards;
}

choir_variable *choir_variable_shard(choir_variable *v, int index)
{
	return v == NULL || index < 0 || index >= v->shards ? NULL : v->shard[index];
}

choir_variable *choir_variable_shard_parent(choir_variable *v)
{
	return v == NULL ? NULL : v->parent;
}

static choir_tensor **read_shards(choir_variable *parent, choir_frame *f)
{
	choir_tensor **read = chi_arena_alloc(&f->arena, (size_t) parent->shards * sizeof *read);
	if (read == NULL) {
		chi_frame_record_error(f);
		return NULL;
	}
	for (int i = 0; i < parent->shards; i++)
		if ((read[i] = choir_variable_read(parent->shard[i], f)) == NULL)
			return NULL;
	return read;
}

choir_tensor *chi_shards_read(choir_variable *parent, choir_frame *f)
{
	for (int i = 0; i < parent->shards; i++)
		if (chi_remote_fetch(parent->shard[i], 0, NULL) != CHOIR_OK) {
			chi_frame_record_error(f);
			return NULL;
		}
	const uint64_t version = chi_atomic64_load(&parent->source.version);
	choir_tensor **rows = read_shards(parent, f);
	choir_tensor *t = rows == NULL ? NULL : chi_shards_join_rows(parent->shards, rows);
	if (t == NULL)
		return NULL;
	t->source = &parent->source;
	t->version = version;
	return t;
}

// The first (rows mod shards) have one more.
static int shard_of(const choir_variable *parent, int64_t row)
{
	const int64_t min = parent->shape.dim[0] / parent->shards;
	const int64_t larger = parent->shape.dim[0] % parent->shards;
	return (int) (row < larger * (min + 1) ? row / (min + 1) : (row - larger) / min);
}

choir_status chi_shards_deal(choir_frame *f, const choir_variable *parent, int64_t n,
		const int64_t rows[], chi_dealt_rows *d)
{
	const size_t shards = (size_t) parent->shards;
	int64_t *next = chi_arena_alloc(&f->arena, (shards + 1) * sizeof *next);
	*d = (chi_dealt_rows){ .n = n,
		.first = chi_arena_alloc(&f->arena, (shards + 1) * sizeof(int64_t)),
		.place = chi_arena_alloc(&f->arena, (size_t) (n + 1) * sizeof(int64_t)),
		.row = chi_arena_alloc(&f->arena, (size_t) (n + 1) * sizeof(int64_t)) };
	if (next == NULL || d->first == NULL || d->place == NULL || d->row == NULL)
		return chi_frame_record_error(f);
	memset(d->first, 0, (shards + 1) * sizeof *d->first);
	for (int64_t i = 0; i < n; i++)
		d->first[shard_of(parent, rows[i]) + 1]++;
	for (size_t k = 0; k < shards; k++) {
		d->first[k + 1] += d->first[k];
		next[k] = d->first[k];
	}
	for (int64_t i = 0; i < n; i++) {
		const int k = shard_of(parent, rows[i]);
		d->place[next[k]] = i;
		d->row[next[k]++] = rows[i] - parent->shard[k]->first_row;
	}
	return CHOIR_OK;
}

static choir_tensor *in_order(choir_frame *f, choir_tensor *t, const chi_dealt_rows *d)
{
	bool ordered = true;
	for (int64_t i = 0; i < d->n; i++)
		ordered = ordered && d->place[i] == i;
	if (ordered)
		return t;
	int64_t *at = chi_arena_alloc(&f->arena, (size_t) d->n * sizeof *at);
	if (at == NULL) {
		chi_frame_record_error(f);
		return NULL;
	}
	for (int64_t i = 0; i < d->n; i++)
		at[d->place[i]] = i;
	return choir_gather(t, choir_constant(f, CHOIR_I64, CHOIR_SHAPE(d->n), at));
}

static choir_tensor *numbered_rows(
		choir_variable *v, choir_frame *f, int64_t n, const int64_t rows[])
{
	choir_tensor *indices = choir_constant(f, CHOIR_I64, CHOIR_SHAPE(n), rows);
	return indices == NULL ? NULL : chi_read_rows(v, indices);
}

// While a tape records, every shard is read, even for no rows: all replicas must produce the same
// gradients in the same order.
static choir_tensor *take_rows(choir_variable *v, choir_frame *f, int64_t n, const int64_t rows[])
{
	chi_dealt_rows d;
	if (v->shards == 0)
		return numbered_rows(v, f, n, rows);
	if (chi_shards_deal(f, v, n, rows, &d) != CHOIR_OK)
		return NULL;
	choir_tensor **part = chi_arena_alloc(&f->arena, (size_t) v->shards * sizeof *part);
	if (part == NULL) {
		chi_frame_record_error(f);
		return NULL;
	}
	int64_t made = 0;
	for (int k = 0; k < v->shards; k++) {
		const int64_t count = d.first[k + 1] - d.first[k];
		if (f->tape == NULL && count == 0)
			continue;
		part[made] = numbered_rows(v->shard[k], f, count, d.row + d.first[k]);
		if (part[made++] == NULL)
			return NULL;
	}
	if (made == 0)
		return numbered_rows(v->shard[0], f, 0, rows);
	return in_order(f, chi_shards_join_rows(made, part), &d);
}

static int64_t *rows_of(const choir_variable *v, choir_tensor *indices)
{
	choir_frame *f = indices->frame;
	const int64_t n = choir_shape_elements(&indices->shape);
	int64_t *rows = chi_arena_alloc(&f->arena, (size_t) (n + 1) * sizeof *rows);
	if (rows == NULL) {
		chi_frame_record_error(f);
		return NULL;
	}
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
		return chi_read_rows(v, indices);
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
	choir_tensor **read = read_shards(v, f);
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

// As in Python: negative counts from the end; others are clamped.
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
	if (rows == NULL) {
		chi_frame_record_error(f);
		return NULL;
	}
	for (int64_t i = 0; i < count; i++)
		rows[i] = start + i * step;
	return take_rows(v, f, count, rows);
}
