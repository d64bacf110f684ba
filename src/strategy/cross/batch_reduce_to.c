// Batches of reductions: several values at once, packed into few collectives if the options say
// so. Values of one dtype, divisor and destination are copied one behind another, node by node of
// what each lane has folded; the whole is summed in packs, and the results are copied back.
#include "strategy/cross/lazy_reduce.h"

#include "base/philox.h"
#include "collective/pack.h"

#include <stdio.h>

// Values that travel together.
typedef struct {
	choir_strategy *strategy;
	choir_frame *frame; // for scratch memory
	size_t n;
	chi_job **job;
	choir_dtype dtype;
	int64_t elements; // of all
	chi_sum_lane *lane;
	chi_buffer **buffer; // that were made: of lanes' nodes and results
	size_t buffers;
} together;

static const choir_tensor *first_of(const chi_job *j)
{
	return j->value->component[0];
}

static int64_t elements_of(const chi_job *j)
{
	return choir_shape_elements(&first_of(j)->shape);
}

static bool wants(const choir_strategy *s, const chi_job *j, int lane)
{
	for (int i = 0; i < j->result->count; i++)
		if (chi_device_shares(j->result->device[i], s->device[lane]))
			return true;
	return false;
}

static bool belong_together(const choir_strategy *s, const chi_job *a, const chi_job *b)
{
	if (!b->by_group || first_of(a)->dtype != first_of(b)->dtype || a->divisor != b->divisor)
		return false;
	for (int lane = 0; lane < s->lanes; lane++)
		if (wants(s, a, lane) != wants(s, b, lane))
			return false;
	return true;
}

// Copies between the whole and the job's own memory; own[i] of job i.
static choir_status copy_all(const together *t, chi_stream *stream, void *whole,
		void *(*own)(const together *t, const chi_job *j, int lane, int node), int lane, int node,
		bool back)
{
	char *at = whole;
	for (size_t i = 0; i < t->n; i++) {
		const size_t bytes = (size_t) elements_of(t->job[i]) * chi_dtype_size(t->dtype);
		void *part = own(t, t->job[i], lane, node);
		CHOIR_TRY(chi_stream_copy(stream, back ? part : at, back ? (void *) at : part, bytes));
		at += bytes;
	}
	return CHOIR_OK;
}

static void *node_of(const together *t, const chi_job *j, int lane, int node)
{
	(void) t;
	return j->fold[lane].node[node].data;
}

static void *result_of(const together *t, const chi_job *j, int lane, int node)
{
	(void) node;
	return chi_job_wanted(t->strategy, j, lane);
}

static chi_buffer *new_buffer(together *t, int lane)
{
	chi_buffer *b = chi_buffer_new(
			t->strategy->device[lane], (size_t) t->elements * chi_dtype_size(t->dtype));
	if (b != NULL)
		t->buffer[t->buffers++] = b;
	return b;
}

// Lays the values of a lane one behind another, for each node that it has.
static choir_status lay_out(together *t, int lane)
{
	const chi_partial_sums *like = &t->job[0]->fold[lane];
	chi_sum_lane *own = &t->lane[lane];
	choir_part *part = chi_arena_alloc(&t->frame->arena, (size_t) like->n * sizeof *part);
	if (part == NULL)
		return choir_error_status();
	for (int i = 0; i < like->n; i++) {
		chi_buffer *b = new_buffer(t, lane);
		if (b == NULL)
			return choir_error_status();
		part[i] = (choir_part){ like->node[i].lo, like->node[i].hi, b->memory };
		CHOIR_TRY(copy_all(t, t->strategy->exchange[lane], b->memory, node_of, lane, i, false));
	}
	own->n = (size_t) like->n;
	own->part = part;
	// Lanes that share memory share the result, too.
	for (int k = 0; k < lane && own->result == NULL; k++)
		if (chi_device_shares(t->strategy->device[k], t->strategy->device[lane]))
			own->result = t->lane[k].result;
	if (own->result != NULL || !wants(t->strategy, t->job[0], lane))
		return CHOIR_OK;
	chi_buffer *b = new_buffer(t, lane);
	own->result = b == NULL ? NULL : b->memory;
	return b == NULL ? choir_error_status() : CHOIR_OK;
}

// Copies sums back where they are wanted, once a memory.
static choir_status take_apart(together *t)
{
	choir_strategy *s = t->strategy;
	choir_status status = CHOIR_OK;
	for (int lane = 0; status == CHOIR_OK && lane < s->lanes; lane++) {
		bool done = t->lane[lane].result == NULL;
		for (int k = 0; k < lane && !done; k++)
			done = t->lane[k].result == t->lane[lane].result;
		if (!done)
			status =
					copy_all(t, s->exchange[lane], t->lane[lane].result, result_of, lane, 0, true);
	}
	return chi_strategy_wait(s, 0, s->lanes, status);
}

// Where packs end; NULL: no memory.
static int64_t *cut(const together *t, const chi_ways *ways, size_t *packs)
{
	const size_t max = ways->num_packs > 0
			? (size_t) (ways->num_packs < t->elements ? ways->num_packs : t->elements)
			: t->n;
	int64_t *ends = chi_arena_alloc(&t->frame->arena, (max + 1) * sizeof *ends);
	int64_t *each = chi_arena_alloc(&t->frame->arena, t->n * sizeof *each);
	if (ends == NULL || each == NULL)
		return NULL;
	for (size_t i = 0; i < t->n; i++)
		each[i] = elements_of(t->job[i]);
	*packs = ways->num_packs > 0
			? chi_packs_by_number(t->elements, ways->num_packs, ends)
			: chi_packs_by_bytes(t->n, each, chi_dtype_size(t->dtype), ways->bytes_per_pack, ends);
	return ends;
}

// What must be equal in all workers is in it.
static void name_pack(const together *t, char name[64])
{
	uint64_t hash = t->n;
	for (size_t i = 0; i < t->n; i++) {
		const choir_shape *shape = &first_of(t->job[i])->shape;
		hash = chi_hash_mix(hash + (uint64_t) shape->rank);
		for (int k = 0; k < shape->rank; k++)
			hash = chi_hash_mix(hash + (uint64_t) shape->dim[k]);
	}
	snprintf(name, 64, "batch_reduce_to, %s, %d of shapes %016llx",
			t->job[0]->op == CHOIR_MEAN ? "mean" : "sum", (int) t->n, (unsigned long long) hash);
}

static choir_status sum_together(choir_cross *x, const chi_ways *ways, together *t)
{
	choir_strategy *s = t->strategy;
	size_t packs = 0, nodes = 0;
	const int64_t *ends = cut(t, ways, &packs);
	t->lane = chi_arena_alloc(&t->frame->arena, (size_t) s->lanes * sizeof *t->lane);
	if (ends == NULL || t->lane == NULL)
		return choir_error_status();
	for (size_t i = 0; i < t->n; i++)
		CHOIR_TRY(chi_job_fold(x, t->job[i]));
	for (int lane = 0; lane < s->lanes; lane++)
		nodes += (size_t) t->job[0]->fold[lane].n + 1;
	t->buffer = chi_arena_alloc(&t->frame->arena, nodes * sizeof *t->buffer);
	choir_status status = t->buffer == NULL ? choir_error_status() : CHOIR_OK;
	for (int lane = 0; status == CHOIR_OK && lane < s->lanes; lane++)
		status = lay_out(t, lane);
	status = chi_strategy_wait(s, 0, s->lanes, status);
	char name[64];
	name_pack(t, name);
	const chi_sum sum = { name, t->dtype, t->job[0]->divisor, t->lane, packs, ends };
	if (status == CHOIR_OK)
		status = chi_sum_lanes(s, x->frame, ways, &sum);
	return status == CHOIR_OK ? take_apart(t) : status;
}

// Packs the first job that is left with those that belong to it, and takes them off the list.
static choir_status do_pack(
		choir_cross *x, const chi_ways *ways, size_t n, chi_job job[], bool done[], size_t first)
{
	together t = { .strategy = chi_cross_of(x)->strategy, .frame = x->frame };
	t.dtype = first_of(&job[first])->dtype;
	t.job = chi_arena_alloc(&x->frame->arena, n * sizeof *t.job);
	if (t.job == NULL)
		return chi_frame_record_error(x->frame);
	for (size_t i = first; i < n; i++) {
		const bool mine = !done[i] && belong_together(t.strategy, &job[first], &job[i]);
		if (!mine || !chi_int64_add(t.elements, elements_of(&job[i]), &t.elements))
			continue;
		t.job[t.n++] = &job[i];
		done[i] = true;
	}
	const choir_status status = sum_together(x, ways, &t);
	for (size_t i = 0; i < t.buffers; i++)
		chi_buffer_release(t.buffer[i]);
	for (size_t i = 0; i < t.n; i++)
		chi_job_clear(t.strategy, t.job[i]);
	return status == CHOIR_OK ? status : chi_frame_record_error(x->frame);
}

// What may wait does.
static choir_status do_alone(choir_cross *x, choir_reduce_op op, const chi_ways *ways, chi_job *j)
{
	return chi_late_may(x, j) ? chi_late_begin(x, op, ways, j) : chi_job_do(x, op, ways, j);
}

static choir_status reduce_batch(choir_cross *x, choir_reduce_op op, size_t n,
		choir_reduction items[], const chi_ways *ways)
{
	chi_job *job = chi_arena_alloc(&x->frame->arena, n * sizeof *job);
	bool *done = chi_arena_alloc(&x->frame->arena, n * sizeof *done);
	if (n > 0 && (job == NULL || done == NULL))
		return chi_frame_record_error(x->frame);
	for (size_t i = 0; i < n; i++)
		CHOIR_TRY(chi_job_check(x, op, &items[i], &job[i]));
	const bool packed = ways->num_packs > 0 || ways->bytes_per_pack > 0;
	for (size_t i = 0; i < n; i++) {
		if (done[i])
			continue;
		CHOIR_TRY(packed && job[i].by_group ? do_pack(x, ways, n, job, done, i)
											: do_alone(x, op, ways, &job[i]));
	}
	for (size_t i = 0; i < n; i++)
		items[i].result = job[i].result;
	return CHOIR_OK;
}

static choir_status check_call(choir_cross *x, choir_reduce_op op, const char *what)
{
	CHOIR_TRY(chi_cross_check(x, what));
	if (x->frame->failed)
		return chi_frame_status(x->frame);
	if (op == CHOIR_SUM || op == CHOIR_MEAN)
		return CHOIR_OK;
	return chi_frame_fail(
			x->frame, CHOIR_INVALID, "%s: operation %d: SUM or MEAN is needed", what, (int) op);
}

choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op, size_t n,
		choir_reduction items[], const choir_communication_options *o)
{
	chi_ways ways;
	for (size_t i = 0; i < n; i++)
		items[i].result = NULL;
	CHOIR_TRY(check_call(x, op, "batch_reduce_to"));
	if (chi_ways_find(chi_cross_of(x)->strategy, o, &ways) != CHOIR_OK) {
		chi_error_prefix("batch_reduce_to");
		return chi_frame_record_error(x->frame);
	}
	return chi_strategy_give_up(chi_cross_of(x)->strategy, reduce_batch(x, op, n, items, &ways));
}

choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to)
{
	choir_reduction item = { v, to, NULL };
	chi_ways ways;
	chi_job job;
	if (v == NULL || to == NULL || check_call(x, op, "reduce_to") != CHOIR_OK ||
			chi_ways_find(chi_cross_of(x)->strategy, NULL, &ways) != CHOIR_OK)
		return NULL;
	choir_status status = chi_job_check(x, op, &item, &job);
	if (status == CHOIR_OK)
		status = do_alone(x, op, &ways, &job);
	chi_strategy_give_up(chi_cross_of(x)->strategy, status);
	return status == CHOIR_OK ? job.result : NULL;
}
