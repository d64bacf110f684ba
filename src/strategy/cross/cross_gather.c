// Concatenation over replicas in the order of ids. Sizes along the axis may differ.
#include "base/size.h"
#include "strategy/cross/cross.h"
#include "strategy/worker_sync.h"

typedef struct {
	size_t outer, axis, inner;
} rows;

static rows rows_of(const choir_tensor *t, int axis)
{
	rows r = { 1, (size_t) t->shape.dim[axis], chi_dtype_size(t->dtype) };
	for (int i = 0; i < axis; i++)
		r.outer *= (size_t) t->shape.dim[i];
	for (int i = axis + 1; i < t->shape.rank; i++)
		r.inner *= (size_t) t->shape.dim[i];
	return r;
}

static choir_status copy_part(
		choir_tensor *whole, const choir_tensor *part, int axis, int64_t offset)
{
	const rows w = rows_of(whole, axis), p = rows_of(part, axis);
	for (size_t i = 0; i < w.outer; i++)
		CHOIR_TRY(chi_stream_copy(whole->frame->stream,
				(char *) whole->data + (i * w.axis + (size_t) offset) * w.inner,
				(const char *) part->data + i * p.axis * p.inner, p.axis * p.inner));
	return CHOIR_OK;
}

static choir_status check_part(choir_cross *x, const choir_value *v, int i, int axis)
{
	char a[CHI_SHAPE_TEXT], b[CHI_SHAPE_TEXT];
	const choir_tensor *first = v->component[0], *t = v->component[i];
	bool fits = t->dtype == first->dtype && t->shape.rank == first->shape.rank;
	for (int k = 0; fits && k < t->shape.rank; k++)
		fits = k == axis || t->shape.dim[k] == first->shape.dim[k];
	if (fits)
		return CHOIR_OK;
	const int id = chi_strategy_id(chi_cross_of(x)->strategy, 0);
	return chi_frame_fail(x->frame, CHOIR_INVALID,
			"gather: replica %d has %s %s, replica %d %s %s; only axis %d may differ", id,
			choir_dtype_name(first->dtype), chi_shape_print(&first->shape, a), id + i,
			choir_dtype_name(t->dtype), chi_shape_print(&t->shape, b), axis);
}

static choir_tensor *gather_here(choir_cross *x, choir_value *v, int axis)
{
	choir_frame *f = x->frame;
	const bool each = v->kind == CHOIR_VALUE_PER_REPLICA;
	if (v->component == NULL || v->component[0] == NULL || v->component[0]->is_number ||
			(each && v->count != chi_cross_of(x)->strategy->replicas))
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"gather: the value has no tensors; it needs one of each replica");
	const int n = each ? v->count : 1;
	for (int i = 0; i < n; i++)
		if (choir_tensor_is_slices(v->component[i]))
			return chi_frame_fail_null(
					f, CHOIR_UNSUPPORTED, "gather: slices are not supported; reduce them instead");
	choir_shape shape = v->component[0]->shape;
	const int at = axis < 0 ? axis + shape.rank : axis;
	if (at < 0 || at >= shape.rank)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"gather: axis %d does not exist; the values have rank %d", axis, shape.rank);
	shape.dim[at] = 0;
	for (int i = 0; i < n; i++) {
		if (check_part(x, v, i, at) != CHOIR_OK)
			return NULL;
		if (!chi_int64_add(shape.dim[at], v->component[i]->shape.dim[at], &shape.dim[at]))
			return chi_frame_fail_null(
					f, CHOIR_INVALID, "gather: axis %d of the result is too long", at);
	}
	if (chi_value_materialize(v) != CHOIR_OK)
		return NULL;
	choir_tensor *out = chi_tensor_new(f, v->component[0]->dtype, &shape);
	int64_t offset = 0;
	for (int i = 0; out != NULL && i < n; i++) {
		choir_tensor *part = chi_value_view(f, v->component[i]);
		if (part == NULL || copy_part(out, part, at, offset) != CHOIR_OK)
			return chi_frame_record_null(f);
		if (chi_cross_of(x)->run != NULL)
			chi_cross_of(x)->run->replica[i].offset = offset;
		offset += part->shape.dim[at];
	}
	return out;
}

choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis)
{
	if (v == NULL || chi_cross_check(x, "gather") != CHOIR_OK)
		return NULL;
	chi_cross *hidden = chi_cross_of(x);
	choir_strategy *s = hidden->strategy;
	choir_tensor *here = chi_strategy_abort_if_null(s, x->frame, gather_here(x, v, axis));
	if (here == NULL || v->kind != CHOIR_VALUE_PER_REPLICA || s->process_group == NULL)
		return here;
	int64_t first = 0;
	choir_tensor *all = chi_worker_concat(
			s, x->frame, here, axis < 0 ? axis + here->shape.rank : axis, &first);
	for (int i = 0; all != NULL && hidden->run != NULL && i < s->replicas; i++)
		hidden->run->replica[i].offset += first;
	return all;
}
