// Reductions in cross-replica context whose results lie on devices: each device's replicas are
// folded, all devices join, and the sums land where the destination is.
#include "choir/op.h"
#include "base/alloc.h"
#include "cross/tree.h"
#include "strategy/merge/merge.h"
#include "strategy/merge/reduce.h"

choir_value *choir_cross_place(choir_cross *x, const char *devices)
{
	if (chi_cross_check(x, "place") != CHOIR_OK)
		return NULL;
	enum { MOST = 64 };
	choir_device *found[MOST];
	int count = 0;
	if (chi_device_list(devices == NULL ? "" : devices, MOST, found, &count) != CHOIR_OK) {
		chi_error_prefix("place");
		chi_frame_keep(x->frame);
		return NULL;
	}
	choir_value *v = chi_value_new(x->frame, CHOIR_VALUE_PLACE, count);
	for (int i = 0; v != NULL && i < count; i++)
		v->device[i] = found[i];
	return v;
}

// An empty mirrored value on the devices of a destination.
static choir_value *at(choir_cross *x, const choir_value *to)
{
	const choir_variable *v = to->variable;
	const int count = v != NULL ? v->copies : to->count;
	choir_value *result = chi_value_new(x->frame, CHOIR_VALUE_MIRRORED, count);
	for (int i = 0; result != NULL && i < count; i++)
		result->device[i] = v != NULL ? v->copy[i].device : to->device[i];
	return result;
}

// The component of a result that lies in the memory of component i already; NULL.
static choir_tensor *same_memory(const choir_value *result, int i)
{
	for (int k = 0; k < i; k++)
		if (chi_device_shares(result->device[i], result->device[k]))
			return result->component[k];
	return NULL;
}

static choir_status fill_from(choir_cross *x, choir_value *result, choir_tensor *t)
{
	for (int i = 0; i < result->count; i++) {
		result->component[i] = same_memory(result, i);
		if (result->component[i] != NULL)
			continue;
		choir_frame *f = chi_cross_frame_on(chi_cross_of(x), result->device[i]);
		result->component[i] = f == NULL ? NULL : chi_value_view(f, t);
		if (result->component[i] == NULL)
			return chi_frame_keep(x->frame);
	}
	return CHOIR_OK;
}

choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to)
{
	if (v == NULL || to == NULL || chi_cross_check(x, "broadcast_to") != CHOIR_OK)
		return NULL;
	choir_tensor *t = v->kind == CHOIR_VALUE_VARIABLE ? choir_variable_read(v->variable, x->frame)
	                                                   : choir_value_tensor(v);
	if (t == NULL) {
		chi_frame_keep(x->frame);
		return NULL;
	}
	if (t->is_number)
		return choir_tensor_value(choir_number(x->frame, t->number));
	choir_value *result = at(x, to);
	return result != NULL && fill_from(x, result, t) == CHOIR_OK ? result : NULL;
}

// One reduction of a batch on its way through the group.
typedef struct {
	chi_fold *fold; // of each lane
	choir_collective *collective;
	uint64_t *ticket;
	double divisor;
	choir_value *result;
} job;

// The buffer in which lane wants the sum: that of the destination's component on its memory; NULL.
static void *wanted_on(const choir_strategy *s, const job *j, int lane)
{
	for (int i = 0; i < j->result->count; i++)
		if (chi_device_shares(j->result->device[i], s->device[lane]))
			return j->result->component[i]->data;
	return NULL;
}

static choir_status make_results(choir_cross *x, job *j, const choir_tensor *like)
{
	choir_value *v = j->result;
	for (int i = 0; i < v->count; i++) {
		v->component[i] = same_memory(v, i);
		if (v->component[i] != NULL)
			continue;
		choir_frame *f = chi_cross_frame_on(chi_cross_of(x), v->device[i]);
		v->component[i] = f == NULL ? NULL : chi_tensor_new(f, like->dtype, &like->shape);
		if (v->component[i] == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

// Folds each device's replicas, on the devices at the same time.
static choir_status fold_lanes(choir_strategy *s, job *j, const choir_value *v)
{
	const choir_tensor *like = v->component[0];
	choir_status status = CHOIR_OK;
	for (int lane = 0; lane < s->lanes; lane++)
		chi_fold_begin(&j->fold[lane], s->replicas, like->dtype, &like->shape);
	for (int lane = 0; lane < s->lanes; lane++)
		for (int r = s->first[lane]; status == CHOIR_OK && r < s->first[lane + 1]; r++)
			status = chi_fold_add(&j->fold[lane], r, v->component[r]->buffer,
					v->component[r]->data, s->exchange[lane]);
	return chi_strategy_wait(s, 0, s->lanes, status);
}

static choir_status start(choir_cross *x, job *j, choir_reduce_op op, const choir_value *v,
		uint64_t sequence)
{
	choir_strategy *s = chi_cross_of(x)->strategy;
	const choir_tensor *like = v->component[0];
	const size_t lanes = (size_t) s->lanes;
	j->divisor = 1;
	if (op == CHOIR_MEAN)
		CHOIR_TRY(chi_mean_divisor(x->frame, v->count, v->component, &j->divisor));
	j->fold = chi_arena_alloc(&x->frame->arena, lanes * sizeof *j->fold);
	j->collective = chi_arena_alloc(&x->frame->arena, lanes * sizeof *j->collective);
	j->ticket = chi_arena_alloc(&x->frame->arena, lanes * sizeof *j->ticket);
	if (j->fold == NULL || j->collective == NULL || j->ticket == NULL)
		return choir_error_status();
	CHOIR_TRY(make_results(x, j, like));
	CHOIR_TRY(fold_lanes(s, j, v));
	for (int lane = 0; lane < s->lanes; lane++) {
		j->collective[lane] = (choir_collective){
			.size = sizeof(choir_collective),
			.sequence = sequence,
			.name = "reduce_to",
			.kind = CHOIR_ALL_REDUCE,
			.dtype = like->dtype,
			.elements = choir_shape_elements(&like->shape),
			.divisor = j->divisor,
			.n = (size_t) j->fold[lane].n,
			.parts = j->fold[lane].part,
			.stream = s->exchange[lane]->state,
			.result = wanted_on(s, j, lane),
		};
		CHOIR_TRY(chi_group_join(&s->group, lane, &j->collective[lane], &j->ticket[lane]));
	}
	return CHOIR_OK;
}

static choir_status end(choir_strategy *s, job *j)
{
	choir_status status = CHOIR_OK;
	for (int lane = 0; status == CHOIR_OK && lane < s->lanes; lane++)
		status = chi_group_wait(&s->group, lane, j->ticket[lane], s->timeout);
	for (int lane = 0; status == CHOIR_OK && lane < s->lanes; lane++)
		status = chi_stream_wait(s->exchange[lane]);
	return status;
}

// Whether the group can do it: all destinations are its devices' memories, and a sum in the dtype.
static bool by_group(const choir_strategy *s, choir_reduce_op op, const choir_value *v,
		const choir_value *result)
{
	const choir_tensor *t = v->component[0];
	if (op == CHOIR_MEAN && t->dtype != CHOIR_F32 && t->dtype != CHOIR_F64)
		return false;
	for (int i = 0; i < result->count; i++) {
		bool found = false;
		for (int lane = 0; lane < s->lanes; lane++)
			found = found || chi_device_shares(result->device[i], s->device[lane]);
		if (!found)
			return false;
	}
	return true;
}

static choir_status check_alike(choir_frame *f, int replicas, const choir_value *v)
{
	char a[CHI_SHAPE_TEXT], b[CHI_SHAPE_TEXT];
	if (v->count != replicas)
		return chi_frame_fail(f, CHOIR_INVALID,
				"reduce: a value of %d replicas in a strategy of %d", v->count, replicas);
	const choir_tensor *first = v->component[0];
	for (int i = 0; i < v->count; i++) {
		const choir_tensor *t = v->component[i];
		if (t == NULL)
			return chi_frame_fail(f, CHOIR_INVALID, "reduce: replica %d has no value", i);
		if (chi_tensor_check(t) != CHOIR_OK)
			return chi_frame_keep(f);
		if (t->dtype != first->dtype || !chi_shape_equal(&t->shape, &first->shape))
			return chi_frame_fail(f, CHOIR_INVALID,
					"reduce: replica 0 has %s %s, replica %d %s %s",
					choir_dtype_name(first->dtype), chi_shape_print(&first->shape, a), i,
					choir_dtype_name(t->dtype), chi_shape_print(&t->shape, b));
	}
	return CHOIR_OK;
}

static choir_value *reduce_to(choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to)
{
	choir_strategy *s = chi_cross_of(x)->strategy;
	if (v->kind != CHOIR_VALUE_PER_REPLICA) {
		choir_tensor *t = choir_cross_reduce(x, op, v, CHOIR_NO_AXIS);
		return t == NULL ? NULL : choir_cross_broadcast_to(x, choir_tensor_value(t), to);
	}
	if (check_alike(x->frame, s->replicas, v) != CHOIR_OK)
		return NULL;
	job j = { .result = at(x, to) };
	if (j.result == NULL)
		return NULL;
	if (!by_group(s, op, v, j.result)) {
		choir_tensor *t = chi_reduce_tensors(x->frame, op, v->count, v->component);
		return t != NULL && fill_from(x, j.result, t) == CHOIR_OK ? j.result : NULL;
	}
	choir_status status = start(x, &j, op, v, 0);
	if (status == CHOIR_OK)
		status = end(s, &j);
	if (status != CHOIR_OK)
		chi_strategy_start_over(s);
	for (int lane = 0; j.fold != NULL && lane < s->lanes; lane++)
		chi_fold_clear(&j.fold[lane]);
	if (status == CHOIR_OK)
		return j.result;
	chi_frame_keep(x->frame);
	return NULL;
}

choir_value *choir_cross_reduce_to(choir_cross *x, choir_reduce_op op, choir_value *v,
		choir_value *to)
{
	if (v == NULL || to == NULL || chi_cross_check(x, "reduce_to") != CHOIR_OK || x->frame->failed)
		return NULL;
	if (op != CHOIR_SUM && op != CHOIR_MEAN) {
		chi_frame_fail(x->frame, CHOIR_INVALID, "reduce_to: operation %d: SUM or MEAN is needed",
				(int) op);
		return NULL;
	}
	return reduce_to(x, op, v, to);
}

choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op, size_t n,
		choir_reduction items[])
{
	CHOIR_TRY(chi_cross_check(x, "batch_reduce_to"));
	for (size_t i = 0; i < n; i++) {
		items[i].result = choir_cross_reduce_to(x, op, items[i].v, items[i].to);
		if (items[i].result == NULL)
			return chi_frame_report(x->frame);
	}
	return CHOIR_OK;
}
