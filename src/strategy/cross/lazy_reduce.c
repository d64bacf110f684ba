// Handles in the context's frame keep the inputs alive.
#include "strategy/cross/lazy_reduce.h"

#include <string.h>

typedef struct {
	choir_cross *x;
	chi_communication communication;
	chi_reduction reduction;
	choir_collective sum;
} lazy_reduction;

bool chi_lazy_reduce_possible(choir_cross *x, const chi_reduction *j)
{
	const choir_strategy *s = chi_cross_of(x)->strategy;
	const choir_variable *v = j->to->variable; // several copies would each make the sum
	if (v == NULL || (v->shards == 0 && v->copies != 1) || !s->all_host || !s->all_here ||
			s->process_group != NULL)
		return false;
	for (int i = 0; i < j->value->count; i++)
		if (j->value->component[i]->source != NULL || j->value->component[i]->borrowed)
			return false;
	return choir_shape_elements(&j->value->component[0]->shape) > CHI_CHUNK;
}

static choir_status materialize(choir_value *v)
{
	lazy_reduction *l = v->lazy;
	return chi_reduction_do(l->x, &l->communication, &l->reduction);
}

static choir_status keep(choir_cross *x, lazy_reduction *l)
{
	const choir_value *v = l->reduction.value;
	choir_value *kept = chi_value_new(x->frame, CHOIR_VALUE_PER_REPLICA, v->count);
	choir_partial_sum *part = chi_arena_alloc(&x->frame->arena, (size_t) v->count * sizeof *part);
	if (kept == NULL || part == NULL)
		return choir_error_status();
	for (int i = 0; i < v->count; i++) {
		choir_tensor *t = chi_tensor_alias(x->frame, v->component[i]);
		if (t == NULL)
			return choir_error_status();
		kept->component[i] = t;
		kept->device[i] = v->device[i];
		part[i] = (choir_partial_sum){ i, i + 1, t->data };
	}
	l->reduction.value = kept;
	l->sum = (choir_collective){ .size = sizeof l->sum,
		.name = "reduce_to",
		.kind = CHOIR_ALL_REDUCE,
		.dtype = kept->component[0]->dtype,
		.divisor = l->reduction.divisor,
		.n = (size_t) v->count,
		.partial_sums = part };
	return CHOIR_OK;
}

choir_status chi_lazy_reduce_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j)
{
	lazy_reduction *l = chi_arena_alloc(&x->frame->arena, sizeof *l);
	if (l == NULL)
		return chi_frame_record_error(x->frame);
	*l = (lazy_reduction){ .x = x, .communication = *communication, .reduction = *j };
	if (keep(x, l) != CHOIR_OK || chi_reduction_make_results(x, &l->reduction) != CHOIR_OK)
		return chi_frame_record_error(x->frame);
	j->result->materialize = materialize;
	j->result->lazy = l;
	return CHOIR_OK;
}

choir_tensor *chi_lazy_reduce_chunk(
		const choir_value *v, choir_frame *f, int64_t first, int64_t count)
{
	const lazy_reduction *l = v->lazy;
	const choir_collective *c = &l->sum;
	const int replicas = (int) c->n;
	choir_tensor *t = chi_tensor_new(f, c->dtype, &CHOIR_SHAPE(count));
	chi_buffer *scratch = t == NULL ? NULL : chi_frame_buffer(f, chi_tree_scratch(replicas));
	if (scratch == NULL)
		return chi_frame_record_null(f);
	const chi_chunk_sum one = { .c = &c,
		.members = 1,
		.replicas = replicas,
		.first = first,
		.count = count,
		.to = t->data,
		.scratch = scratch->memory };
	const void *sum;
	const choir_status status = chi_chunk_sum_make(&one, f->stream, &sum);
	chi_frame_give_back(f, scratch);
	if (status != CHOIR_OK)
		return chi_frame_record_null(f);
	if (sum != t->data)
		memcpy(t->data, sum, (size_t) count * chi_dtype_size(c->dtype));
	return t;
}
