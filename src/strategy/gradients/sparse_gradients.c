// Gradients that are slices: the rows that stand anywhere are added up, in the order of the larger
// tensors' sum. An update that leaves an element as it is where the gradient is zero is called for
// these rows only, so that a step costs what its rows cost, not what the table costs. Any other
// (momentum goes on, moments fade) is called for all slices of the variable, by all lanes, each
// with its rows laid among zeros: no replica's gradient becomes as large as the table.
#include "strategy/gradients/pending.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/size.h"
#include "collective/sparse_sum.h"
#include "op/op.h"
#include "op/vector.h"

#include <string.h>

// Whether one of a's updates needs tensors of v.
static bool needs_tensors(chi_apply *a, const choir_variable *v)
{
	bool found = false;
	if (a->strategy->overlap == NULL)
		return false;
	chi_mutex_lock(&a->lock);
	for (const chi_instance *in = a->instances; in != NULL && !found; in = in->next)
		found = chi_early_needs_tensors(in, v);
	chi_mutex_unlock(&a->lock);
	return found;
}

bool chi_apply_takes_rows(chi_apply *a, const choir_variable *v)
{
	const choir_strategy *s = a->strategy;
	return !needs_tensors(a, v) && chi_strategy_has(s, v) &&
			(s->process_group == NULL || s->process_group->host) && v->copies == 1 &&
			s->all_host && s->all_here && v->shape.rank > 0 && !a->table->gated(a->user);
}

choir_status chi_sparse_gradients_add(
		chi_sparse_gradients *rows, int replica, const choir_tensor *t)
{
	void *array = rows->given;
	const bool grown = chi_grow(&array, &rows->capacity, rows->n + 1, sizeof *rows->given);
	rows->given = array;
	if (!grown)
		return choir_error_status();
	chi_buffer_retain(t->buffer);
	chi_buffer_retain(t->slices.buffer);
	rows->given[rows->n++] = (chi_sparse_gradient){ replica, t->shape.dim[0], t->buffer, t->data,
		t->slices.buffer, t->slices.data, t->slices.dtype };
	return CHOIR_OK;
}

bool chi_sparse_gradients_have(const chi_sparse_gradients *rows, int replica)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->given[i].replica == replica)
			return true;
	return false;
}

void chi_sparse_gradients_clear(chi_sparse_gradients *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		chi_buffer_release(rows->given[i].buffer);
		chi_buffer_release(rows->given[i].index_buffer);
	}
	rows->n = 0;
}

static choir_status add_dense(chi_item *item, const chi_sparse_gradient *g, chi_stream *stream)
{
	const choir_variable *v = item->variable;
	const size_t bytes = chi_variable_bytes(v);
	choir_shape shape = v->shape;
	chi_buffer *whole = chi_buffer_new(stream->device, bytes);
	if (whole == NULL)
		return choir_error_status();
	shape.dim[0] = g->n;
	const choir_buffer in[3] = { { whole->memory, v->dtype, v->shape },
		{ g->index, g->index_dtype, { 1, { g->n } } }, { g->values, v->dtype, shape } };
	choir_buffer out = in[0];
	choir_status status = bytes > 0 ? chi_stream_fill(stream, whole->memory, 0, bytes) : CHOIR_OK;
	if (status == CHOIR_OK && choir_shape_elements(&shape) > 0)
		status = chi_kernel_run(stream, "scatter_add", 3, in, &out, NULL);
	if (status == CHOIR_OK)
		status = chi_partial_sums_add(&item->fold,
				chi_strategy_id(item->instance->strategy, g->replica), whole, whole->memory,
				stream);
	if (status == CHOIR_OK)
		status = chi_stream_wait(stream);
	chi_buffer_release(whole);
	return status;
}

// Some replicas gave tensors: all become tensors.
static choir_status make_dense(chi_instance *in, size_t i, chi_stream *stream)
{
	for (int lane = 0; lane < in->strategy->lanes; lane++) {
		chi_item *item = in->lane[lane].item[i];
		for (size_t k = 0; k < item->rows.n; k++)
			CHOIR_TRY(add_dense(item, &item->rows.given[k], stream));
		chi_sparse_gradients_clear(&item->rows);
	}
	return CHOIR_OK;
}

// Where the parts of a merge lie in one block of memory, which is kept from step to step.
typedef struct {
	chi_sparse_part *part; // of each replica
	chi_sparse_entry *entry;
	int64_t *index; // all replicas' row numbers
	char *come; // and rows, between workers
	int64_t *row; // the different ones
	char *values; // theirs
	char *laid; // for each lane, where every row moves
	char *scratch; // of the sum
} layout;

static bool place(size_t *end, size_t n, size_t size, size_t *at)
{
	size_t bytes;
	*at = *end;
	return chi_size_multiply(n, size, &bytes) && chi_size_add(*end, bytes, end) &&
			chi_size_round_up(*end, 64, end);
}

static choir_status lay_out(
		chi_shared_item *shared, const choir_strategy *s, size_t all, layout *l)
{
	chi_merged_rows *m = &shared->rows;
	const choir_variable *v = shared->variable;
	const size_t row =
			chi_variable_bytes(v) / (size_t) (v->shape.dim[0] > 0 ? v->shape.dim[0] : 1);
	const size_t laid = shared->spread ? (size_t) s->lanes * CHI_UPDATE_SLICE : 0;
	const size_t come = s->process_group == NULL ? 0 : all;
	const size_t levels = (size_t) chi_slices_levels(s->in_sync);
	size_t end = 0, at[8];
	if (!place(&end, (size_t) s->in_sync, sizeof *l->part, &at[0]) ||
			!place(&end, all, sizeof *l->entry, &at[1]) ||
			!place(&end, all, sizeof(int64_t), &at[2]) ||
			!place(&end, all, sizeof(int64_t), &at[3]) || !place(&end, all, row, &at[4]) ||
			!place(&end, laid, chi_dtype_size(v->dtype), &at[5]) ||
			!place(&end, come, row, &at[6]) || !place(&end, levels, row, &at[7]))
		return choir_fail(CHOIR_NO_MEMORY, "variable \"%s\": too many rows", v->name);
	if (!chi_scratch_reserve(&m->scratch, end))
		return choir_error_status();
	char *base = m->scratch.memory;
	*l = (layout){ (void *) (base + at[0]), (void *) (base + at[1]), (void *) (base + at[2]),
		base + at[6], (void *) (base + at[3]), base + at[4], base + at[5], base + at[7] };
	return CHOIR_OK;
}

// Elements of a row.
static int64_t width_of(const choir_variable *v)
{
	return v->shape.dim[0] > 0 ? v->elements / v->shape.dim[0] : 0;
}

void chi_sparse_gradient_widen(const chi_sparse_gradient *g, int64_t *to)
{
	for (int64_t k = 0; k < g->n; k++)
		to[k] = g->index_dtype == CHOIR_I64 ? ((const int64_t *) g->index)[k]
											: ((const int32_t *) g->index)[k];
}

// The parts of all replicas, those of other workers too.
static choir_status bring(chi_instance *in, size_t i, const layout *l)
{
	const choir_strategy *s = in->strategy;
	const choir_variable *v = in->shared[i].variable;
	const size_t row = (size_t) width_of(v) * chi_dtype_size(v->dtype);
	int64_t *index = l->index;
	const char *values = l->come;
	if (s->process_group != NULL)
		CHOIR_TRY(chi_sparse_gradients_gather(in, i, row, l->index, l->come));
	for (int r = 0; r < s->in_sync; r++) {
		const int64_t n = in->shared[i].rows.each[r];
		const chi_sparse_gradient *g =
				s->process_group == NULL ? chi_sparse_gradient_of(in, i, r) : NULL;
		l->part[r] = (chi_sparse_part){ n, index, g == NULL ? values : g->values };
		if (g != NULL)
			chi_sparse_gradient_widen(g, index);
		index += n;
		values += (size_t) n * row;
	}
	return CHOIR_OK;
}

static choir_status merge(chi_instance *in, size_t i, size_t all)
{
	const choir_strategy *s = in->strategy;
	const choir_variable *v = in->shared[i].variable;
	chi_merged_rows *m = &in->shared[i].rows;
	layout l = { 0 };
	CHOIR_TRY(lay_out(&in->shared[i], s, all, &l));
	CHOIR_TRY(bring(in, i, &l));
	m->n = chi_sparse_sum_order(s->in_sync, l.part, l.entry);
	m->row = l.row;
	m->values = l.values;
	m->laid = l.laid;
	const int64_t width = width_of(v);
	chi_sparse_sum(s->in_sync, l.part, (int64_t) all, l.entry, v->dtype, width, m->row, m->values,
			l.scratch);
	return CHOIR_OK;
}

// Whether so many rows, and their numbers, are more to send than the larger tensor.
static bool are_many(const chi_instance *in, size_t i, size_t all)
{
	const choir_variable *v = in->shared[i].variable;
	const size_t row = (size_t) width_of(v) * chi_dtype_size(v->dtype);
	return in->strategy->process_group != NULL &&
			all >= chi_variable_bytes(v) / (row + sizeof(int64_t));
}

choir_status chi_sparse_gradients_prepare(chi_instance *in, size_t i, int by)
{
	const chi_apply_table *table = in->apply->table;
	chi_shared_item *s = &in->shared[i];
	size_t all = 0;
	s->by_rows = s->kinds == CHI_GAVE_ROWS && in->rows;
	s->spread = false;
	if ((s->kinds & CHI_GAVE_ROWS) == 0)
		return CHOIR_OK;
	if (s->by_rows)
		CHOIR_TRY(chi_sparse_gradients_count(in, i, &all));
	s->by_rows = s->by_rows && !are_many(in, i, all);
	s->spread = s->by_rows &&
			(table->skips_zeros == NULL || !table->skips_zeros(in->apply->user, s->variable));
	return s->by_rows ? merge(in, i, all) : make_dense(in, i, in->strategy->exchange[by]);
}

// Rows lie far apart: of one that is written soon the first lines are fetched.
static void fetch_row(const chi_shared_item *s, int64_t k, size_t bytes)
{
	enum { LINE = 64, MAX = 512 };
	if (k >= s->rows.n)
		return;
	const char *at =
			(const char *) s->variable->copy[0].buffer->memory + (size_t) s->rows.row[k] * bytes;
	for (size_t i = 0; i < bytes && i < MAX; i += LINE)
		chi_fetch_to_write(at + i);
}

static choir_status write_rows(const chi_shared_item *s, const chi_item *item)
{
	enum { AHEAD = 12 }; // rows
	const choir_variable *v = s->variable;
	const int64_t width = width_of(v);
	const size_t bytes = (size_t) width * chi_dtype_size(v->dtype);
	for (int64_t k = 0, next; k < s->rows.n; k = next) {
		// Rows that lie behind one another are one call.
		for (next = k + 1; next < s->rows.n && s->rows.row[next] == s->rows.row[next - 1] + 1;)
			next++;
		for (int64_t i = k; i < next; i++)
			fetch_row(s, i + AHEAD, bytes);
		CHOIR_TRY(chi_item_write(item, 0, s->rows.row[k] * width, (next - k) * width,
				s->rows.values + (size_t) k * bytes, 1));
	}
	return CHOIR_OK;
}

static choir_status write_spread(const chi_instance *in, const chi_item *item)
{
	const int64_t elements = item->variable->elements;
	for (int64_t first = 0; first < elements; first += CHI_UPDATE_SLICE) {
		const int64_t left = elements - first;
		const int64_t count = left < CHI_UPDATE_SLICE ? left : CHI_UPDATE_SLICE;
		CHOIR_TRY(chi_item_write(item, 0, first, count,
				chi_sparse_gradients_chunk(in, item->lane, item->index, first, count), 1));
	}
	return CHOIR_OK;
}

// What other workers use is written under its lock, all of it at once.
choir_status chi_sparse_gradients_update(chi_instance *in, int by)
{
	for (size_t i = 0; i < in->n; i++) {
		const chi_shared_item *s = &in->shared[i];
		const chi_item *item = in->lane[by].item[i];
		const bool shared = s->variable->concurrency != CHI_EXCLUSIVE;
		if (!s->by_rows || (s->spread && !shared))
			continue;
		CHOIR_TRY(chi_variable_enter(s->variable));
		choir_status status = s->spread ? write_spread(in, item) : write_rows(s, item);
		if (status == CHOIR_OK && shared)
			status = chi_stream_wait(in->strategy->exchange[by]);
		chi_variable_leave(s->variable);
		CHOIR_TRY(status);
	}
	return CHOIR_OK;
}

// The first of the merged rows that is not before row.
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

// Rows are added to zeros, as in the larger tensors' sum, in which a zero has no sign.
const void *chi_sparse_gradients_chunk(
		const chi_instance *in, int lane, size_t i, int64_t first, int64_t count)
{
	const chi_merged_rows *m = &in->shared[i].rows;
	const choir_variable *v = in->shared[i].variable;
	const int64_t width = width_of(v), end = first + count;
	const size_t size = chi_dtype_size(v->dtype);
	char *laid = m->laid + (size_t) lane * CHI_UPDATE_SLICE * size;
	memset(laid, 0, (size_t) count * size);
	for (int64_t k = first_from(m, first / width); k < m->n && m->row[k] * width < end; k++) {
		const int64_t row = m->row[k] * width; // its first element
		const int64_t from = row < first ? first : row, to = row + width < end ? row + width : end;
		void *at = laid + (size_t) (from - first) * size;
		chi_vector_add(
				v->dtype, at, at, m->values + (size_t) (k * width + from - row) * size, to - from);
	}
	return laid;
}
