// Each head of each example is computed by fma_attention.inc.
#include "op/fma/fma.h"

#ifdef CHI_HAS_FMA_KERNELS
#include "op/onednn/onednn.h"
#include "op/op.h"

// n inputs: queries, keys and values; 1: packed.
static chi_fma_head head_of(const choir_kernel_call *call, size_t n)
{
	const choir_attention_attributes *a = call->attributes;
	const choir_shape *q = &call->in[0].shape, *k = &call->in[n == 1 ? 0 : 1].shape;
	const int64_t width = n == 1 ? q->dim[2] / 3 : q->dim[2];
	return (chi_fma_head){
		.queries = q->dim[1],
		.keys = k->dim[1],
		.width = width / a->heads,
		.q_row = q->dim[2],
		.kv_row = k->dim[2],
		.y_row = width,
		.causal = a->causal,
		.scale = (float) a->scale,
		.size = chi_dtype_size(call->in[0].dtype),
		.scratch = call->scratch,
	};
}

static size_t scratch_of(const choir_kernel_call *call, size_t n)
{
	const chi_fma_head h = head_of(call, n);
	const bool wide_numbers = h.size == sizeof(float);
	const int64_t keys = chi_fma_round(h.keys, wide_numbers ? CHI_FMA_TALL : CHI_FMA_TILED_KEYS);
	const int64_t wide = chi_fma_round(h.width, CHI_FMA_GROUP);
	const int64_t scores = wide_numbers ? 2 : 4; // bf16: rounded, too
	const int64_t elements =
			4 * keys * wide + 5 * CHI_FMA_GROUP * wide + scores * keys * CHI_FMA_GROUP;
	return (size_t) elements * sizeof(float);
}

size_t chi_fma_attention_scratch(const choir_kernel_call *call)
{
	return scratch_of(call, call->n);
}

size_t chi_fma_attention_gradient_scratch(const choir_kernel_call *call)
{
	return scratch_of(call, call->n - 1);
}

static void *after(const chi_fma_head *h, const void *x, int64_t elements)
{
	return (char *) (uintptr_t) x + (size_t) elements * h->size;
}

static chi_fma_head head_at(const chi_fma_head *all, int64_t heads, int64_t number)
{
	const int64_t example = number / heads, column = number % heads * all->width;
	const int64_t q = example * all->queries * all->q_row + column;
	const int64_t kv = example * all->keys * all->kv_row + column;
	const int64_t y = example * all->queries * all->y_row + column;
	chi_fma_head h = *all;
	h.q = after(all, h.q, q);
	h.k = after(all, h.k, kv);
	h.v = after(all, h.v, kv);
	if (h.dy == NULL) {
		h.y = after(all, h.y, y);
		return h;
	}
	h.dy = after(all, h.dy, y);
	h.dq = after(all, h.dq, q);
	h.dk = after(all, h.dk, kv);
	h.dv = after(all, h.dv, kv);
	return h;
}

static void work_on_all(const choir_kernel_call *call, const chi_fma_head *all,
		void (*work)(const chi_fma_head *h))
{
	const choir_attention_attributes *a = call->attributes;
	const int64_t count = call->in[0].shape.dim[0] * a->heads;
	chi_fma_head h = head_at(all, a->heads, 0);
	for (int64_t i = 1; i < count; i++) {
		const chi_fma_head next = head_at(all, a->heads, i);
		h.next = &next;
		work(&h);
		h = next;
	}
	work(&h);
}

static void set_inputs(const choir_kernel_call *call, size_t n, chi_fma_head *all)
{
	all->q = call->in[0].data;
	all->k = n == 1 ? after(all, all->q, all->y_row) : call->in[1].data;
	all->v = n == 1 ? after(all, all->k, all->y_row) : call->in[2].data;
}

choir_status chi_fma_attention(const choir_kernel_call *call)
{
	const chi_fma_loops *loops = chi_fma_best();
	chi_fma_head all = head_of(call, call->n);
	set_inputs(call, call->n, &all);
	all.y = call->out->data;
	work_on_all(call, &all,
			all.size == sizeof(float)	   ? loops->attention
					: chi_onednn_has_amx() ? loops->tiles_attention
										   : loops->bf16_attention);
	return CHOIR_OK;
}

choir_status chi_fma_attention_gradient(const choir_kernel_call *call)
{
	const chi_fma_loops *loops = chi_fma_best();
	const size_t n = call->n - 1;
	chi_fma_head all = head_of(call, n);
	const int64_t examples = call->in[0].shape.dim[0];
	set_inputs(call, n, &all);
	all.dy = call->in[n].data;
	all.dq = call->out->data;
	all.dk = after(&all, all.dq, n == 1 ? all.y_row : examples * all.queries * all.q_row);
	all.dv = after(&all, all.dk, n == 1 ? all.y_row : examples * all.keys * all.kv_row);
	work_on_all(call, &all,
			all.size == sizeof(float)	   ? loops->attention_gradient
					: chi_onednn_has_amx() ? loops->tiles_attention_gradient
										   : loops->bf16_attention_gradient);
	return CHOIR_OK;
}

#else
typedef int chi_no_fma_attention;
#endif
