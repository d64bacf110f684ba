// One thread joins and waits for every device, a window of packs at a time. All devices' threads
// do large sums.
#include "strategy/cross/reduce_to.h"

#include "base/thresholds.h"
#include "choir/op.h"
#include "strategy/cross/lazy_reduce.h"
#include "strategy/cross/reduce.h"
#include "strategy/cross/reduce_indexed_slices.h"
#include "strategy/worker_sync.h"

typedef struct {
	choir_collective *collective;
	uint64_t *request;
	choir_partial_sum *part;
} window;

static choir_status open_window(
		const choir_strategy *s, choir_frame *f, const chi_sum *sum, window *w)
{
	const size_t devices = (size_t) s->devices;
	const size_t packs =
			sum->packs < CHI_COMMUNICATOR_WINDOW ? sum->packs : CHI_COMMUNICATOR_WINDOW;
	size_t parts = 0;
	for (size_t i = 0; i < devices; i++)
		parts += sum->device[i].n;
	w->collective = chi_arena_alloc(&f->arena, packs * devices * sizeof *w->collective);
	w->request = chi_arena_alloc(&f->arena, packs * devices * sizeof *w->request);
	w->part = chi_arena_alloc(&f->arena, packs * parts * sizeof *w->part);
	return w->collective == NULL || w->request == NULL || w->part == NULL ? choir_error_status()
																		  : CHOIR_OK;
}

static void *element(void *data, choir_dtype dtype, int64_t first)
{
	return data == NULL ? NULL : (char *) data + (size_t) first * chi_dtype_size(dtype);
}

static choir_status join(choir_strategy *s, chi_communicator *communicator, const chi_sum *sum,
		size_t pack, int d, choir_collective *c, choir_partial_sum **part, uint64_t *request)
{
	const chi_sum_device *own = &sum->device[d];
	const int64_t first = pack == 0 ? 0 : sum->ends[pack - 1];
	for (size_t i = 0; i < own->n; i++) {
		(*part)[i] = own->part[i];
		(*part)[i].data = element((*part)[i].data, sum->dtype, first);
	}
	*c = (choir_collective){
		.size = sizeof *c,
		.sequence = pack,
		.name = sum->name,
		.kind = CHOIR_ALL_REDUCE,
		.dtype = sum->dtype,
		.elements = sum->ends[pack] - first,
		.divisor = sum->divisor,
		.n = own->n,
		.partial_sums = *part,
		.stream = s->exchange[d]->state,
		.result = element(own->result, sum->dtype, first),
		.batch_bytes = sum->batch_bytes,
	};
	*part += own->n;
	return chi_communicator_join(communicator, d, c, request);
}

typedef struct {
	const choir_strategy *strategy;
	const chi_communication *communication;
	const uint64_t *request;
	size_t packs;
	chi_atomic32 next;
	chi_mutex lock;
	chi_error failure;
} waits;

// A failure replaces a cancellation, its consequence.
static void note_failure(waits *w)
{
	chi_error e;
	chi_error_save(&e);
	chi_mutex_lock(&w->lock);
	if (w->failure.status == CHOIR_OK || w->failure.status == CHOIR_CANCELLED)
		w->failure = e;
	chi_mutex_unlock(&w->lock);
}

static void wait_for_devices(void *arg)
{
	waits *w = arg;
	const uint32_t devices = (uint32_t) w->strategy->devices;
	for (uint32_t k; (k = chi_atomic32_add(&w->next, 1)) < devices;) {
		const uint32_t d = devices - 1 - k;
		choir_status status = CHOIR_OK;
		for (size_t i = 0; status == CHOIR_OK && i < w->packs; i++)
			status = chi_communicator_wait(w->communication->communicator, (int) d,
					w->request[i * devices + d], w->communication->timeout);
		if (status != CHOIR_OK)
			note_failure(w);
	}
}

static choir_status wait_for_all(choir_strategy *s, const chi_communication *communication,
		const uint64_t *request, size_t packs, bool by_one)
{
	waits w = {
		.strategy = s, .communication = communication, .request = request, .packs = packs
	};
	chi_mutex_init(&w.lock, CHI_RANK_CROSS, "waits");
	if (by_one)
		wait_for_devices(&w);
	else
		(void) chi_thread_pool_call_all(s, wait_for_devices, &w);
	chi_mutex_destroy(&w.lock);
	if (w.failure.status != CHOIR_OK)
		chi_error_restore(&w.failure);
	return w.failure.status;
}

static choir_status sum_window(choir_strategy *s, const chi_communication *communication,
		const chi_sum *sum, const window *w, size_t first, size_t last)
{
	choir_partial_sum *part = w->part;
	size_t k = 0;
	for (size_t i = first; i < last; i++)
		for (int d = 0; d < s->devices; d++, k++)
			CHOIR_TRY(join(s, communication->communicator, sum, i, d, &w->collective[k], &part,
					&w->request[k]));
	const int64_t elements = sum->ends[last - 1] - (first == 0 ? 0 : sum->ends[first - 1]);
	return wait_for_all(s, communication, w->request, last - first,
			sum->by_one || (size_t) elements * chi_dtype_size(sum->dtype) < CHI_HELPED_SUM_BYTES);
}

choir_status chi_sum_devices(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum)
{
	window w;
	chi_trace_begin(CHOIR_TRACE_REDUCE, sum->name);
	choir_status status = open_window(s, f, sum, &w);
	for (size_t first = 0; status == CHOIR_OK && first < sum->packs;
			first += CHI_COMMUNICATOR_WINDOW) {
		const size_t left = sum->packs - first;
		status = sum_window(s, communication, sum, &w, first,
				first + (left < CHI_COMMUNICATOR_WINDOW ? left : CHI_COMMUNICATOR_WINDOW));
	}
	status = chi_strategy_wait(s, 0, s->devices, status);
	chi_trace_end();
	if (status != CHOIR_OK)
		chi_strategy_reset_collectives(s);
	return status;
}

choir_status chi_sum_add_up(
		choir_strategy *s, choir_frame *f, choir_tensor *const tensors[], chi_partial_sums **sums)
{
	*sums = chi_arena_alloc(&f->arena, (size_t) s->devices * sizeof **sums);
	CHOIR_TRY(chi_made(*sums));
	choir_status status = CHOIR_OK;
	chi_trace_begin(CHOIR_TRACE_REDUCE, "partial sums");
	for (int d = 0; d < s->devices; d++)
		chi_partial_sums_begin(&(*sums)[d], s->in_sync, tensors[0]->dtype, &tensors[0]->shape);
	for (int d = 0; d < s->devices; d++)
		for (int r = s->first[d]; status == CHOIR_OK && r < s->first[d + 1]; r++)
			status = chi_partial_sums_add(&(*sums)[d], chi_strategy_id(s, r), tensors[r]->buffer,
					tensors[r]->data, s->exchange[d]);
	status = chi_strategy_wait(s, 0, s->devices, status);
	chi_trace_end();
	return status;
}

void chi_sum_clear(const choir_strategy *s, chi_partial_sums *sums)
{
	for (int d = 0; sums != NULL && d < s->devices; d++)
		chi_partial_sums_clear(&sums[d]);
}

choir_status chi_sum_replicas(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum, choir_tensor *const tensors[])
{
	chi_partial_sums *sums;
	choir_status status = chi_sum_add_up(s, f, tensors, &sums);
	for (int d = 0; status == CHOIR_OK && d < s->devices; d++) {
		sum->device[d].n = (size_t) sums[d].n;
		sum->device[d].part = sums[d].node;
	}
	if (status == CHOIR_OK)
		status = chi_sum_devices(s, f, communication, sum);
	chi_sum_clear(s, sums);
	return status;
}

choir_status chi_reduction_make_results(choir_cross *x, chi_reduction *j)
{
	choir_value *v = j->result;
	const choir_tensor *like = j->value->component[0];
	for (int i = 0; i < v->count; i++) {
		if (v->component[i] != NULL || (v->component[i] = chi_cross_same_memory(v, i)) != NULL)
			continue;
		choir_frame *f = chi_cross_frame_on(chi_cross_of(x), v->device[i]);
		v->component[i] = f == NULL ? NULL : chi_tensor_new(f, like->dtype, &like->shape);
		if (v->component[i] == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

// Destinations are in devices' memories, and the sum has the values' dtype.
static bool by_communicator(const choir_strategy *s, choir_reduce_op op, const choir_value *v,
		const choir_value *result)
{
	const choir_tensor *t = v->component[0];
	if (chi_is_slices(t) || chi_needs_checked_sum(op, t) || chi_dtype_is_half(t->dtype) ||
			(op == CHOIR_MEAN && t->dtype != CHOIR_F32 && t->dtype != CHOIR_F64))
		return false;
	for (int i = 0; i < result->count; i++) {
		bool found = false;
		for (int d = 0; d < s->devices; d++)
			found = found || chi_device_shares(result->device[i], s->device[d]);
		if (!found)
			return false;
	}
	return true;
}

choir_status chi_reduction_check(
		choir_cross *x, choir_reduce_op op, const choir_reduction *given, chi_reduction *j)
{
	choir_value *v = given->v;
	*j = (chi_reduction){ .op = op, .value = v, .to = given->to, .divisor = 1 };
	if (v == NULL || given->to == NULL) {
		chi_frame_null_argument(x->frame, "reduce_to");
		return chi_frame_status(x->frame);
	}
	CHOIR_TRY(chi_cross_check_own(x, v, given->to, "reduce_to"));
	if (v->kind != CHOIR_VALUE_PER_REPLICA)
		return CHOIR_OK;
	const int replicas = chi_cross_of(x)->strategy->replicas;
	if (v->count != replicas)
		return chi_frame_fail(x->frame, CHOIR_INVALID,
				"reduce: the value has %d replicas, the strategy %d", v->count, replicas);
	CHOIR_TRY(chi_check_alike(
			chi_cross_of(x)->strategy, x->frame, op, v->count, v->component, false));
	if (op == CHOIR_MEAN)
		CHOIR_TRY(chi_mean_divisor(
				chi_cross_of(x)->strategy, x->frame, v->count, v->component, &j->divisor));
	j->result = chi_cross_value_at(x, j->to);
	CHOIR_TRY(chi_frame_made(x->frame, j->result));
	j->by_communicator = by_communicator(chi_cross_of(x)->strategy, op, v, j->result);
	return CHOIR_OK;
}

void *chi_reduction_wanted(const choir_strategy *s, const chi_reduction *j, int d)
{
	for (int i = 0; i < j->result->count; i++)
		if (chi_device_shares(j->result->device[i], s->device[d]))
			return j->result->component[i]->data;
	return NULL;
}

static choir_status sum_single(
		choir_cross *x, const chi_communication *communication, chi_reduction *j)
{
	choir_strategy *s = chi_cross_of(x)->strategy;
	const choir_tensor *like = j->value->component[0];
	const int64_t elements = choir_shape_elements(&like->shape);
	CHOIR_TRY(chi_reduction_make_results(x, j));
	chi_sum_device *each = chi_arena_alloc(&x->frame->arena, (size_t) s->devices * sizeof *each);
	CHOIR_TRY(chi_made(each));
	for (int i = 0; i < s->devices; i++)
		each[i].result = chi_reduction_wanted(s, j, i);
	char name[CHI_SUM_NAME] = "reduce_to";
	if (s->process_group != NULL)
		chi_worker_sum_name("reduce_to", j->op, like->dtype, like, name);
	const chi_sum sum = { name, like->dtype, j->divisor, each, 1, &elements, 0, false };
	return chi_sum_replicas(s, x->frame, communication, &sum, j->value->component);
}

choir_status chi_reduction_do(
		choir_cross *x, const chi_communication *communication, chi_reduction *j)
{
	choir_strategy *s = chi_cross_of(x)->strategy;
	choir_value *v = j->value;
	choir_status status = CHOIR_OK;
	if (v->kind != CHOIR_VALUE_PER_REPLICA) {
		choir_tensor *t = choir_cross_reduce(x, j->op, v, CHOIR_NO_AXIS);
		j->result =
				t == NULL ? NULL : choir_cross_broadcast_to(x, choir_tensor_as_value(t), j->to);
		status = j->result == NULL ? chi_frame_status(x->frame) : CHOIR_OK;
	} else if (!j->by_communicator) {
		choir_tensor *t = choir_tensor_is_slices(v->component[0])
				? chi_reduce_slices(s, x->frame, j->op, communication->slices, v->count,
						  v->component, j->divisor)
				: chi_reduce_tensors(s, x->frame, "reduce_to", j->op, v->count, v->component);
		status = t == NULL ? chi_frame_status(x->frame) : chi_cross_fill(x, j->result, t);
	} else {
		status = sum_single(x, communication, j);
	}
	return status == CHOIR_OK ? status : chi_frame_record_error(x->frame);
}

choir_status chi_reduction_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j)
{
	if (j->by_communicator) // its streams do not wait for the queue, which may still make values
		CHOIR_TRY(chi_stream_wait(x->frame->stream));
	return j->by_communicator && chi_lazy_reduce_possible(x, j)
			? chi_lazy_reduce_begin(x, communication, j)
			: chi_reduction_do(x, communication, j);
}

choir_status chi_reduction_check_call(choir_cross *x, choir_reduce_op op, const char *what)
{
	CHOIR_TRY(chi_cross_check(x, what));
	if (x->frame->failed)
		return chi_frame_status(x->frame);
	return chi_check_reduce_op(x->frame, what, op);
}

choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to)
{
	const choir_reduction given = { v, to, NULL };
	chi_communication communication;
	chi_reduction reduction;
	if (v == NULL || to == NULL || chi_reduction_check_call(x, op, "reduce_to") != CHOIR_OK ||
			chi_communication_resolve(chi_cross_of(x)->strategy, NULL, &communication) != CHOIR_OK)
		return NULL;
	choir_status status = chi_reduction_check(x, op, &given, &reduction);
	if (status == CHOIR_OK)
		status = chi_reduction_begin(x, &communication, &reduction);
	chi_strategy_abort(chi_cross_of(x)->strategy, status);
	return status == CHOIR_OK ? reduction.result : NULL;
}
