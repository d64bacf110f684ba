// An optimizer that skips zero gradients is called only for the merged rows, any other for all
// chunks, with zeros elsewhere.
//
// Gradients stay sparse if those of all replicas are and the rows are few. Every worker gets and
// adds all rows.
#include "strategy/remote_variables.h"
#include "strategy/gradients/sparse_gradients.h"

#include "base/size.h"
#include "collective/sparse_gather.h"
#include "op/op.h"
#include "op/vector.h"
#include "strategy/gradients/update_batch.h"
#include "strategy/gradients/wire_precision.h"
#include "strategy/device_placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool needs_tensors(chi_gradients *a, const choir_variable *v)
{
	bool found = false;
	if (a->strategy->overlap_workers == NULL)
		return false;
	chi_mutex_lock(&a->lock);
	for (const chi_pending_update *u = a->updates; u != NULL && !found; u = u->next)
		found = chi_overlap_needs_dense(u, v);
	chi_mutex_unlock(&a->lock);
	return found;
}

bool chi_gradients_take_sparse(chi_gradients *a, const choir_variable *v)
{
	const choir_strategy *s = a->strategy;
	return !needs_tensors(a, v) && chi_strategy_has(s, v) &&
			(s->process_group == NULL || s->process_group->host) && v->copies == 1 &&
			s->all_host && s->all_here && v->shape.rank > 0 && !a->table->gated(a->user);
}

choir_status chi_sparse_gradients_add(
		chi_sparse_gradients *rows, int local_replica, const choir_tensor *t)
{
	if (!chi_grow(&rows->gradient, &rows->capacity, rows->n + 1, sizeof *rows->gradient))
		return choir_error_status();
	chi_buffer_retain(t->buffer);
	chi_buffer_retain(t->slices.buffer);
	rows->gradient[rows->n++] = (chi_sparse_gradient){ local_replica, t->shape.dim[0], t->buffer,
		t->data, t->slices.buffer, t->slices.data, t->slices.dtype };
	return CHOIR_OK;
}

bool chi_sparse_gradients_have(const chi_sparse_gradients *rows, int local_replica)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->gradient[i].replica == local_replica)
			return true;
	return false;
}

void chi_sparse_gradients_clear(chi_sparse_gradients *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		chi_buffer_release(rows->gradient[i].buffer);
		chi_buffer_release(rows->gradient[i].index_buffer);
	}
	rows->n = 0;
}

static unsigned char kinds_here(const chi_pending_update *u, size_t i)
{
	unsigned kinds = 0;
	for (int d = 0; d < u->strategy->devices; d++) {
		const chi_device_gradient *g = u->device[d].gradient[i];
		kinds |= g->sparse.n > 0 ? CHI_GRADIENT_SPARSE : 0;
		kinds |= g->partial_sums.n > 0 ? CHI_GRADIENT_DENSE : 0;
	}
	return (unsigned char) kinds;
}

static choir_status exchange_kinds(chi_pending_update *u)
{
	chi_process_group *p = u->strategy->process_group;
	const bool among = p != NULL && p->host && (!u->two_pass || u->overlap.with_workers);
	const size_t n = u->n, workers = among ? (size_t) p->workers : 0;
	if (!chi_grow(&u->kinds, &u->kinds_capacity, (workers + 1) * n + 1, 1))
		return choir_error_status();
	unsigned char *own = u->kinds, *all = own + n;
	char of[40] = ""; // workers that average over batches of other sizes differ
	if (u->run->examples != CHOIR_UNKNOWN)
		snprintf(of, sizeof of, ", of %" PRId64 " examples", u->run->examples);
	for (size_t i = 0; i < n; i++)
		own[i] = kinds_here(u, i);
	if (among)
		CHOIR_TRY(chi_process_group_all_gather(p, own, n, all,
				"%s of %zu gradients (%d exchanged early)%s", u->gradients->table->name, n,
				chi_overlap_with_workers(u), of));
	for (size_t w = 0; w < workers; w++)
		for (size_t i = 0; i < n; i++)
			own[i] = (unsigned char) (own[i] | all[w * n + i]);
	for (size_t i = 0; i < n; i++)
		u->pending[i].kinds = own[i];
	return CHOIR_OK;
}

static const chi_sparse_gradient *given_by(
		const chi_pending_update *u, size_t i, int local_replica)
{
	const int d = chi_strategy_device_index(u->strategy, local_replica);
	const chi_sparse_gradients *rows = &u->device[d].gradient[i]->sparse;
	for (size_t k = 0; k < rows->n; k++)
		if (rows->gradient[k].replica == local_replica)
			return &rows->gradient[k];
	return NULL;
}

static choir_status count_rows(chi_pending_update *u, size_t i, size_t *all)
{
	const choir_strategy *s = u->strategy;
	chi_pending_variable *pv = &u->pending[i];
	chi_merged_rows *m = &pv->rows;
	int64_t sum = 0;
	if (m->each == NULL)
		m->each = chi_alloc_array((size_t) s->in_sync, sizeof *m->each);
	CHOIR_TRY(chi_made(m->each));
	const chi_sparse_gather g = { .group = s->process_group,
		.what = "the gradient of",
		.name = pv->variable->name,
		.each = m->each };
	for (int r = 0; r < s->replicas; r++) {
		const chi_sparse_gradient *sparse = given_by(u, i, r);
		m->each[chi_strategy_id(s, r)] = sparse == NULL ? 0 : sparse->n;
	}
	if (s->process_group != NULL)
		CHOIR_TRY(chi_sparse_gather_counts(&g));
	for (int r = 0; r < s->in_sync; r++)
		if (!chi_int64_add(sum, m->each[r], &sum))
			return choir_fail(
					CHOIR_NO_MEMORY, "variable \"%s\": too many rows", pv->variable->name);
	*all = (size_t) sum;
	return CHOIR_OK;
}

static choir_status add_dense(
		chi_device_gradient *g, const chi_sparse_gradient *sparse, chi_stream *stream)
{
	const choir_variable *v = g->variable;
	const size_t bytes = chi_variable_bytes(v);
	choir_shape shape = v->shape;
	chi_buffer *whole = chi_buffer_new(stream->device, bytes);
	CHOIR_TRY(chi_made(whole));
	shape.dim[0] = sparse->n;
	const choir_buffer in[3] = { { whole->memory, v->dtype, v->shape },
		{ sparse->index, sparse->index_dtype, { 1, { sparse->n } } },
		{ sparse->values, v->dtype, shape } };
	choir_buffer out = in[0];
	choir_status status = bytes > 0 ? chi_stream_fill(stream, whole->memory, 0, bytes) : CHOIR_OK;
	if (status == CHOIR_OK && choir_shape_elements(&shape) > 0)
		status = chi_kernel_run(stream, "scatter_add", 3, in, &out, NULL);
	if (status == CHOIR_OK)
		status = chi_wire_add(g, chi_strategy_id(g->update->strategy, sparse->replica), whole,
				whole->memory, stream);
	if (status == CHOIR_OK)
		status = chi_stream_wait(stream);
	chi_buffer_release(whole);
	return status;
}

static choir_status make_dense(chi_pending_update *u, size_t i, chi_stream *stream)
{
	for (int d = 0; d < u->strategy->devices; d++) {
		chi_device_gradient *g = u->device[d].gradient[i];
		for (size_t k = 0; k < g->sparse.n; k++)
			CHOIR_TRY(add_dense(g, &g->sparse.gradient[k], stream));
		chi_sparse_gradients_clear(&g->sparse);
	}
	return CHOIR_OK;
}

static int64_t width_of(const choir_variable *v)
{
	return v->shape.dim[0] > 0 ? v->elements / v->shape.dim[0] : 0;
}

static size_t row_bytes(const choir_variable *v)
{
	return (size_t) width_of(v) * chi_dtype_size(v->dtype);
}

typedef struct {
	chi_sparse_part *part;
	chi_sparse_entry *entry;
	int64_t *index;
	char *come;
	int64_t *row;
	char *values;
	char *dense_scratch;
	char *scratch;
} layout;

static bool place(size_t *end, size_t n, size_t size, size_t *at)
{
	size_t bytes;
	*at = *end;
	return chi_size_multiply(n, size, &bytes) && chi_size_add(*end, bytes, end) &&
			chi_size_round_up(*end, 64, end);
}

static choir_status lay_out(
		chi_pending_variable *pv, const choir_strategy *s, size_t all, layout *l)
{
	chi_merged_rows *m = &pv->rows;
	const choir_variable *v = pv->variable;
	const size_t row = row_bytes(v);
	const size_t dense_scratch = pv->touches_all_rows ? (size_t) s->devices * CHI_UPDATE_CHUNK : 0;
	const size_t come = s->process_group == NULL ? 0 : all;
	const size_t levels = (size_t) chi_slices_levels(s->in_sync);
	size_t end = 0, at[8];
	if (!place(&end, (size_t) s->in_sync, sizeof *l->part, &at[0]) ||
			!place(&end, 2 * all, sizeof *l->entry, &at[1]) ||
			!place(&end, all, sizeof(int64_t), &at[2]) ||
			!place(&end, all, sizeof(int64_t), &at[3]) || !place(&end, all, row, &at[4]) ||
			!place(&end, dense_scratch, chi_dtype_size(v->dtype), &at[5]) ||
			!place(&end, come, row, &at[6]) || !place(&end, levels, row, &at[7]))
		return choir_fail(CHOIR_NO_MEMORY, "variable \"%s\": too many rows", v->name);
	if (!chi_scratch_reserve(&m->scratch, end))
		return choir_error_status();
	char *base = m->scratch.memory;
	*l = (layout){ (void *) (base + at[0]), (void *) (base + at[1]), (void *) (base + at[2]),
		base + at[6], (void *) (base + at[3]), base + at[4], base + at[5], base + at[7] };
	return CHOIR_OK;
}

static void widen(const chi_sparse_gradient *sparse, int64_t *to)
{
	for (int64_t k = 0; k < sparse->n; k++)
		to[k] = sparse->index_dtype == CHOIR_I64 ? ((const int64_t *) sparse->index)[k]
												 : ((const int32_t *) sparse->index)[k];
}

static choir_status bring(chi_pending_update *u, size_t i, const layout *l)
{
	const choir_strategy *s = u->strategy;
	const choir_variable *v = u->pending[i].variable;
	int64_t *each = u->pending[i].rows.each, *index = l->index;
	for (int r = 0; r < s->in_sync; r++) {
		const int here = r - chi_strategy_id(s, 0);
		const chi_sparse_gradient *sparse =
				here < 0 || here >= s->replicas ? NULL : given_by(u, i, here);
		l->part[r] = (chi_sparse_part){ each[r], index, sparse == NULL ? NULL : sparse->values };
		if (sparse != NULL)
			widen(sparse, index);
		index += each[r];
	}
	const chi_sparse_gather g = { .group = s->process_group,
		.what = "the gradient of",
		.name = v->name,
		.each = each,
		.row_bytes = row_bytes(v),
		.row = l->index,
		.values = l->come,
		.part = l->part };
	return s->process_group == NULL ? CHOIR_OK : chi_sparse_gather_rows(&g);
}

// One gradient whose rows ascend is already merged.
static bool use_in_place(chi_pending_update *u, size_t i)
{
	const choir_strategy *s = u->strategy;
	const choir_variable *v = u->pending[i].variable;
	const chi_sparse_gradients *rows = &u->device[0].gradient[i]->sparse;
	if (s->in_sync != 1 || s->process_group != NULL || u->pending[i].touches_all_rows ||
			chi_strategy_wire(s, v->dtype) != v->dtype || rows->n != 1 ||
			rows->gradient[0].index_dtype != CHOIR_I64)
		return false;
	const chi_sparse_gradient *g = &rows->gradient[0];
	int64_t *row = g->index;
	for (int64_t k = 1; k < g->n; k++)
		if (row[k] <= row[k - 1])
			return false;
	u->pending[i].rows.n = g->n;
	u->pending[i].rows.row = row;
	u->pending[i].rows.values = g->values;
	return true;
}

static choir_status merge(chi_pending_update *u, size_t i, size_t all)
{
	const choir_strategy *s = u->strategy;
	const choir_variable *v = u->pending[i].variable;
	chi_merged_rows *m = &u->pending[i].rows;
	layout l = { 0 };
	if (use_in_place(u, i))
		return CHOIR_OK;
	CHOIR_TRY(lay_out(&u->pending[i], s, all, &l));
	CHOIR_TRY(bring(u, i, &l));
	m->n = chi_sparse_sum_order(s->in_sync, l.part, l.entry);
	m->row = l.row;
	m->values = l.values;
	m->dense_scratch = l.dense_scratch;
	const int64_t width = width_of(v);
	const chi_sparse_sum_as as = { v->dtype, chi_strategy_wire(s, v->dtype), width };
	chi_sparse_sum(s->in_sync, l.part, (int64_t) all, l.entry, &as, m->row, m->values, l.scratch);
	return CHOIR_OK;
}

static bool are_many(const chi_pending_update *u, size_t i, size_t all)
{
	const choir_variable *v = u->pending[i].variable;
	return u->strategy->process_group != NULL &&
			all >= chi_variable_bytes(v) / (row_bytes(v) + sizeof(int64_t));
}

static choir_status prepare(chi_pending_update *u, size_t i, int by)
{
	const chi_gradients_table *table = u->gradients->table;
	chi_pending_variable *pv = &u->pending[i];
	size_t all = 0;
	pv->is_sparse = pv->kinds == CHI_GRADIENT_SPARSE && u->allows_sparse;
	if ((pv->kinds & CHI_GRADIENT_SPARSE) == 0)
		return CHOIR_OK;
	if (pv->is_sparse)
		CHOIR_TRY(count_rows(u, i, &all));
	pv->is_sparse = pv->is_sparse && !are_many(u, i, all);
	pv->touches_all_rows = pv->is_sparse && !chi_remote_pushes(u->strategy) &&
			(table->skips_zeros == NULL || !table->skips_zeros(u->gradients->user, pv->variable));
	return pv->is_sparse ? merge(u, i, all) : make_dense(u, i, u->strategy->exchange[by]);
}

choir_status chi_sparse_gradients_prepare(chi_pending_update *u, int by)
{
	CHOIR_TRY(exchange_kinds(u));
	for (size_t i = 0; i < u->n; i++)
		CHOIR_TRY(prepare(u, i, by));
	return CHOIR_OK;
}

static choir_status write_all_rows(const chi_pending_update *u, const chi_device_gradient *g)
{
	const int64_t elements = g->variable->elements;
	for (int64_t first = 0; first < elements; first += CHI_UPDATE_CHUNK) {
		const int64_t left = elements - first;
		const int64_t count = left < CHI_UPDATE_CHUNK ? left : CHI_UPDATE_CHUNK;
		const void *data = chi_sparse_gradients_chunk(u, g->device, g->index, first, count);
		CHOIR_TRY(chi_device_gradient_write(
				g, 0, &(chi_gradient_chunk){ first, count, data, 1, NULL }));
	}
	return CHOIR_OK;
}

// A shared variable is written under its lock.
choir_status chi_sparse_gradients_update(chi_pending_update *u, int by)
{
	for (size_t i = 0; i < u->n; i++) {
		const chi_pending_variable *pv = &u->pending[i];
		const chi_device_gradient *g = u->device[by].gradient[i];
		const bool shared = pv->variable->concurrency != CHI_EXCLUSIVE;
		if (!pv->is_sparse || (pv->touches_all_rows && !shared))
			continue;
		CHOIR_TRY(chi_variable_enter(pv->variable));
		const chi_gradient_rows rows = { pv->rows.n, width_of(pv->variable), pv->rows.row,
			pv->rows.values };
		choir_status status = pv->touches_all_rows ? write_all_rows(u, g)
												   : chi_device_gradient_write_rows(g, &rows);
		if (status == CHOIR_OK && shared)
			status = chi_stream_wait(u->strategy->exchange[by]);
		chi_variable_leave(pv->variable);
		CHOIR_TRY(status);
	}
	return CHOIR_OK;
}

static int64_t first_from(const chi_merged_rows *m, int64_t row)
{
	int64_t lo = 0, hi = m->n;
	while (lo < hi) {
		const int64_t middle = lo + (hi - lo) / 2;
		if (m->row[middle] < row)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

// Rows are added to zeros, as in the dense sum, so that -0 becomes 0.
const void *chi_sparse_gradients_chunk(
		const chi_pending_update *u, int d, size_t i, int64_t first, int64_t count)
{
	const chi_merged_rows *m = &u->pending[i].rows;
	const choir_variable *v = u->pending[i].variable;
	const int64_t width = width_of(v), end = first + count;
	const size_t size = chi_dtype_size(v->dtype);
	char *dense_scratch = m->dense_scratch + (size_t) d * CHI_UPDATE_CHUNK * size;
	memset(dense_scratch, 0, (size_t) count * size);
	for (int64_t k = first_from(m, first / width); k < m->n && m->row[k] * width < end; k++) {
		const int64_t row = m->row[k] * width;
		const int64_t from = row < first ? first : row, to = row + width < end ? row + width : end;
		void *at = dense_scratch + (size_t) (from - first) * size;
		chi_vector_add(
				v->dtype, at, at, m->values + (size_t) (k * width + from - row) * size, to - from);
	}
	return dense_scratch;
}
