// On the host: to all slices in the order of replicas, or to one per row, in the order of the
// dense sum (collective/sparse_sum.h).
#include "strategy/cross/reduce_indexed_slices.h"

#include "base/size.h"
#include "choir/op.h"
#include "collective/sparse_gather.h"
#include "op/op.h"
#include "strategy/cross/reduce.h"
#include "strategy/replica/merge_call.h"
#include "strategy/worker_sync.h"

#include <stdio.h>
#include <string.h>

typedef struct {
	choir_strategy *strategy;
	choir_frame *host;
	choir_reduce_op op;
	int n;
	choir_tensor **values; // for a mean in a floating dtype
	chi_sparse_part *part;
	int64_t all, rows;
} sparse_reduction;

static choir_status check_alike(
		const choir_strategy *s, choir_frame *f, int n, choir_tensor *const tensors[])
{
	const int id = chi_strategy_id(s, 0);
	char a[CHI_SHAPE_TEXT], b[CHI_SHAPE_TEXT];
	const choir_tensor *first = tensors[0];
	for (int i = 0; i < n; i++) {
		const choir_tensor *t = tensors[i];
		if (chi_tensor_check_any(t) != CHOIR_OK)
			return chi_frame_record_error(f);
		const choir_shape x = chi_dense_shape(first), y = chi_dense_shape(t);
		if (!chi_is_slices(t) || t->dtype != first->dtype || !chi_shape_equal(&x, &y))
			return chi_frame_fail(f, CHOIR_INVALID,
					"reduce: replica %d has slices of %s %s, replica %d %s %s "
					"%s; all replicas need slices of the same dtype and shape",
					id, choir_dtype_name(first->dtype), chi_shape_print(&x, a), id + i,
					chi_is_slices(t) ? "slices of" : "a tensor,", choir_dtype_name(t->dtype),
					chi_shape_print(&y, b));
	}
	return CHOIR_OK;
}

static choir_status bring(sparse_reduction *j, choir_tensor *const tensors[])
{
	chi_arena *arena = &j->host->arena;
	j->values = chi_arena_alloc(arena, (size_t) j->n * sizeof *j->values);
	j->part = chi_arena_alloc(arena, (size_t) j->n * sizeof *j->part);
	if (j->values == NULL || j->part == NULL)
		return choir_error_status();
	for (int i = 0; i < j->n; i++) {
		choir_tensor *t = chi_value_view(j->host, tensors[i]);
		CHOIR_TRY(chi_frame_made(j->host, t));
		const int64_t n = t->shape.dim[0];
		int64_t *row = chi_arena_alloc(arena, (size_t) n * sizeof *row);
		if (row == NULL || chi_slices_indices_to_host(t, row) != CHOIR_OK)
			return choir_error_status();
		j->values[i] = j->op == CHOIR_MEAN ? chi_for_mean(choir_slices_values(t))
										   : choir_slices_values(t);
		CHOIR_TRY(chi_frame_made(j->host, j->values[i]));
		j->part[i] = (chi_sparse_part){ n, row, j->values[i]->data };
		if (!chi_int64_add(j->all, n, &j->all))
			return choir_fail(CHOIR_NO_MEMORY, "reduce: too many rows");
	}
	j->rows = tensors[0]->slices.rows;
	return CHOIR_OK;
}

static size_t row_bytes(const sparse_reduction *j)
{
	size_t bytes = chi_dtype_size(j->values[0]->dtype);
	for (int i = 1; i < j->values[0]->shape.rank; i++)
		bytes *= (size_t) j->values[0]->shape.dim[i];
	return bytes;
}

static void *reserve(const sparse_reduction *j, int64_t n, size_t size)
{
	size_t bytes;
	const bool fits = chi_size_multiply((size_t) n, size, &bytes);
	return chi_arena_alloc(&j->host->arena, fits ? bytes : SIZE_MAX);
}

static choir_status bring_others(sparse_reduction *j)
{
	chi_process_group *p = j->strategy->process_group;
	const int first = chi_process_group_first_replica(p);
	char shape_text[CHI_SHAPE_TEXT], name[CHI_SHAPE_TEXT + 8];
	choir_shape shape = j->values[0]->shape;
	shape.dim[0] = j->rows;
	snprintf(name, sizeof name, "%s %s", choir_dtype_name(j->values[0]->dtype),
			chi_shape_print(&shape, shape_text));
	chi_sparse_gather g = { .group = p,
		.what = j->op == CHOIR_MEAN ? "mean of slices of" : "sum of slices of",
		.name = name,
		.each = reserve(j, p->replicas, sizeof *g.each),
		.row_bytes = row_bytes(j),
		.part = reserve(j, p->replicas, sizeof *g.part) };
	if (g.each == NULL || g.part == NULL)
		return choir_error_status();
	for (int i = 0; i < j->n; i++) {
		g.each[first + i] = j->part[i].n;
		g.part[first + i] = j->part[i];
	}
	CHOIR_TRY(chi_sparse_gather_counts(&g));
	j->all = 0;
	for (int r = 0; r < p->replicas; r++)
		if (!chi_int64_add(j->all, g.each[r], &j->all))
			return choir_fail(CHOIR_NO_MEMORY, "reduce: too many rows");
	g.row = reserve(j, j->all, sizeof *g.row);
	g.values = g.row == NULL ? NULL : reserve(j, j->all, g.row_bytes);
	if (g.values == NULL)
		return choir_error_status();
	j->n = p->replicas;
	j->part = g.part;
	return chi_sparse_gather_rows(&g);
}

static bool make(
		const sparse_reduction *j, int64_t n, choir_tensor **values, choir_tensor **indices)
{
	choir_shape shape = j->values[0]->shape;
	shape.dim[0] = n;
	*values = chi_tensor_new(j->host, j->values[0]->dtype, &shape);
	*indices = chi_tensor_new(j->host, CHOIR_I64, &(choir_shape){ 1, { n } });
	return *values != NULL && *indices != NULL;
}

static choir_tensor *finish(
		const sparse_reduction *j, choir_tensor *values, choir_tensor *indices, double divisor)
{
	if (divisor != 1)
		values = choir_divide(values, choir_number(j->host, divisor));
	return values == NULL ? NULL : chi_slices_new(values, indices, j->rows);
}

static choir_tensor *concatenate(const sparse_reduction *j, double divisor)
{
	choir_tensor *values, *indices;
	if (!make(j, j->all, &values, &indices))
		return NULL;
	char *to = values->data;
	int64_t *row = indices->data;
	for (int i = 0; i < j->n; i++) {
		const size_t bytes = (size_t) j->part[i].n * row_bytes(j);
		if (bytes > 0)
			memcpy(to, j->part[i].values, bytes);
		if (j->part[i].n > 0)
			memcpy(row, j->part[i].row, (size_t) j->part[i].n * sizeof *row);
		to += bytes;
		row += j->part[i].n;
	}
	return finish(j, values, indices, divisor);
}

static choir_tensor *merge(const sparse_reduction *j, double divisor)
{
	choir_tensor *values, *indices;
	chi_sparse_entry *entry = reserve(j, 2 * j->all, sizeof *entry);
	if (entry == NULL)
		return NULL;
	const int64_t different = chi_sparse_sum_order(j->n, j->part, entry);
	if (!make(j, different, &values, &indices))
		return NULL;
	int64_t width = 1;
	for (int i = 1; i < values->shape.rank; i++)
		width *= values->shape.dim[i];
	char *scratch = reserve(j, chi_slices_levels(j->n), row_bytes(j));
	if (scratch == NULL)
		return NULL;
	const chi_sparse_sum_as as = { values->dtype, values->dtype, width };
	chi_sparse_sum(j->n, j->part, j->all, entry, &as, indices->data, values->data, scratch);
	return finish(j, values, indices, divisor);
}

static bool is_full(const choir_tensor *t)
{
	const choir_shape shape = chi_dense_shape(t);
	size_t dense;
	return chi_shape_bytes(&shape, t->dtype, &dense) &&
			dense <= chi_tensor_bytes(t) + (size_t) t->shape.dim[0] * sizeof(int64_t);
}

static choir_tensor *reduce(sparse_reduction *j, choir_slices_result how,
		choir_tensor *const tensors[], double divisor)
{
	if (bring(j, tensors) != CHOIR_OK ||
			(j->strategy->process_group != NULL && bring_others(j) != CHOIR_OK))
		return NULL;
	if (how == CHOIR_SLICES_CONCATENATED)
		return concatenate(j, divisor);
	choir_tensor *t = merge(j, divisor);
	return t != NULL && how == CHOIR_SLICES_SMALLEST && is_full(t) ? choir_to_dense(t) : t;
}

choir_tensor *chi_reduce_slices(choir_strategy *s, choir_frame *f, choir_reduce_op op,
		choir_slices_result how, int n, choir_tensor *const tensors[], double divisor)
{
	if (check_alike(s, f, n, tensors) != CHOIR_OK)
		return NULL;
	sparse_reduction j = { .strategy = s, .host = f, .op = op, .n = n };
	if (!f->device->host_memory && (j.host = choir_frame_new(NULL)) == NULL)
		return chi_frame_record_null(f);
	choir_tensor *t = reduce(&j, how, tensors, divisor);
	if (t == NULL)
		chi_strategy_abort(s, chi_frame_record_error(f));
	else if (j.host != f)
		t = choir_copy(t, f);
	if (j.host != f)
		choir_frame_free(j.host);
	return t;
}

choir_value *chi_dense_value(choir_cross *x, choir_value *v)
{
	bool slices = false;
	for (int i = 0; v->component != NULL && i < v->count; i++)
		slices = slices || choir_tensor_is_slices(v->component[i]);
	if (!slices)
		return v;
	choir_value *dense = chi_value_new(x->frame, v->kind, v->count);
	for (int i = 0; dense != NULL && i < v->count; i++) {
		choir_frame *f = chi_cross_frame_on(chi_cross_of(x), v->device[i]);
		dense->device[i] = v->device[i];
		dense->component[i] =
				f == NULL ? NULL : choir_to_dense(chi_value_view(f, v->component[i]));
		if (dense->component[i] == NULL || chi_stream_wait(f->stream) != CHOIR_OK)
			return chi_frame_record_null(x->frame);
	}
	return dense;
}

static choir_status reduce_to_all(choir_cross *x, void *user)
{
	choir_value *v = choir_cross_arg(x, "value");
	return choir_cross_return(
			x, "value", choir_cross_reduce_to(x, *(const choir_reduce_op *) user, v, v));
}

choir_tensor *chi_all_reduce_slices(choir_replica *r, choir_reduce_op op, choir_tensor *t)
{
	if (chi_merge_one(chi_replica_of(r), "all_reduce", t, reduce_to_all, &op,
				(const void *) (uintptr_t) reduce_to_all, (uint64_t) op + 1) != CHOIR_OK)
		return NULL;
	return choir_replica_result(r, "value");
}
