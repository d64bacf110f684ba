// LSTM and GRU in 16 bits (extend/kernel_table.h). Gates, cells and states stay f32 between time
// steps; the result's rows are rounded once. In bf16, products of states and weights, and of their
// gradients, have bf16 operands and f32 sums; a call packs the weights once. f16 has f32's
// products.
#include "op/onednn/onednn_recurrent.h"

#ifdef CHI_HAS_ONEDNN
#include "op/kernel/parallel.h"
#include "op/onednn/onednn.h"
#include "op/onednn/onednn_cache.h"
#include "op/plain/loops.h"

#include <string.h>

enum { SCORE = 30, WIDE_PARTS = 13 };

typedef struct {
	const choir_kernel_call *call;
	const chi_half_loops *half;
	const chi_recurrent_loops *loops;
	chi_dnn *gemm;
	bool backward;
	choir_dtype dtype;
	int64_t n, t, h;
	int64_t gates, row; // elements of a time step
	float *sums; // [n, gates] or [n, h], of the product
	float *state, *cell; // [n, h]; backward: their gradients
	float *wide; // of one time step
	void *operand; // of the product, [n, h] or [n, gates], in bf16 or f32
	float *weights; // f16: in f32
	void *pad;
} layer;

static chi_dnn_problem problem_of(const choir_kernel_call *call)
{
	const chi_dnn_recurrence *kind = call->user;
	const choir_shape *w = &call->in[1].shape;
	return (chi_dnn_problem){
		.kind = CHI_DNN_MATMUL,
		.dtypes = CHI_DNN_BF16_TO_F32,
		.b_transposed = kind->backward,
		.b_packed = true,
		.m = call->in[0].shape.dim[0],
		.k = w->dim[kind->backward],
		.n = w->dim[!kind->backward],
	};
}

static bool is_empty(const chi_dnn_problem *p)
{
	return p->m == 0 || p->k == 0 || p->n == 0;
}

static bool is_found(const chi_dnn_problem *p)
{
	chi_dnn *d;
	return !is_empty(p) && chi_dnn_find(p, &d) != CHOIR_UNSUPPORTED;
}

int chi_dnn_recurrence_score(const choir_kernel_call *call)
{
	const chi_dnn_problem p = problem_of(call);
	const choir_dtype dtype = call->in[0].dtype;
	if (call->in[1].dtype != dtype || call->out->dtype != dtype)
		return 0;
	if (dtype == CHOIR_F16)
		return is_empty(&p) ? 0 : SCORE;
	return chi_onednn_has_bf16() && is_found(&p) ? SCORE : 0;
}

static size_t lay_out(layer *l, const choir_kernel_call *call)
{
	const chi_dnn_recurrence *kind = call->user;
	l->call = call;
	l->backward = kind->backward;
	l->dtype = call->in[0].dtype;
	l->n = call->in[0].shape.dim[0];
	l->t = call->in[0].shape.dim[1];
	l->h = call->in[1].shape.dim[0];
	l->gates = kind->parts * l->h;
	l->row = l->gates + 2 * l->h;
	l->half = chi_half_loops_best(l->dtype);
	l->loops = chi_loops_best()->real[CHOIR_F32]->recurrent;
	const size_t states = (size_t) (l->n * l->h), gates = (size_t) (l->n * l->gates);
	const size_t weights = l->dtype == CHOIR_F16 ? (size_t) (l->h * l->gates) : 0;
	const size_t operand = l->dtype == CHOIR_F16 ? sizeof(float) : sizeof(uint16_t);
	const size_t bytes[] = { gates * sizeof(float), states * sizeof(float), states * sizeof(float),
		(size_t) (WIDE_PARTS * l->h) * sizeof(float), gates * operand, weights * sizeof(float) };
	void *part[sizeof bytes / sizeof bytes[0]];
	size_t used = 0;
	for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
		part[i] = call->scratch == NULL ? NULL : (char *) call->scratch + used;
		used += chi_whole_lines(bytes[i]);
	}
	l->sums = part[0];
	l->state = part[1];
	l->cell = part[2];
	l->wide = part[3];
	l->operand = part[4];
	l->weights = part[5];
	l->pad = call->scratch == NULL ? NULL : (char *) call->scratch + used;
	return used;
}

size_t chi_dnn_recurrence_scratch(const choir_kernel_call *call)
{
	const chi_dnn_problem p = problem_of(call);
	choir_kernel_call empty = *call;
	layer l;
	chi_dnn *d;
	empty.scratch = NULL;
	if (call->in[0].dtype == CHOIR_F16)
		return lay_out(&l, &empty);
	return chi_dnn_find(&p, &d) == CHOIR_OK ? lay_out(&l, &empty) + chi_dnn_scratch(d) : 0;
}

static chi_dnn_operands operands_of(const layer *l)
{
	return (chi_dnn_operands){
		.a = l->operand, .b = l->call->in[1].data, .out = l->sums, .scratch = l->pad
	};
}

static choir_status prepare(layer *l, const choir_kernel_call *call)
{
	const chi_dnn_problem p = problem_of(call);
	lay_out(l, call);
	if (l->dtype == CHOIR_F16) {
		l->half->widen(l->weights, call->in[1].data, l->h * l->gates);
		return CHOIR_OK;
	}
	CHOIR_TRY(chi_dnn_find(&p, &l->gemm));
	const chi_dnn_operands o = operands_of(l);
	return chi_dnn_pack(l->gemm, &o);
}

// sums = operand times the weights, or their transpose.
static choir_status multiply(const layer *l)
{
	const chi_dnn_operands o = operands_of(l);
	const int64_t k = l->backward ? l->gates : l->h, n = l->backward ? l->h : l->gates;
	const chi_dnn_gemm wide = { .m = l->n,
		.n = n,
		.k = k,
		.a = { l->operand, k, false },
		.b = { l->weights, l->gates, l->backward },
		.c = l->sums,
		.c_row = n };
	return l->dtype == CHOIR_F16 ? chi_dnn_multiply(&wide) : chi_dnn_run(l->gemm, &o);
}

// n elements of the product's operand, of which rounded holds the 16 bits.
static void give(const layer *l, int64_t first, const uint16_t *rounded, const float *x, int64_t n)
{
	if (l->dtype == CHOIR_F16)
		memcpy((float *) l->operand + first, x, (size_t) n * sizeof *x);
	else
		memcpy((uint16_t *) l->operand + first, rounded, (size_t) n * sizeof *rounded);
}

static void give_first_state(const layer *l)
{
	if (l->dtype == CHOIR_F16)
		memcpy(l->operand, l->state, (size_t) (l->n * l->h) * sizeof *l->state);
	else
		l->half->narrow(l->operand, l->state, l->n * l->h);
}

static void *at(const layer *l, const void *rows, int64_t width, int64_t i, int64_t k)
{
	return (uint16_t *) (uintptr_t) rows + (i * l->t + k) * width;
}

static void widen(const layer *l, float *to, const choir_buffer *from, int64_t first, int64_t n)
{
	if (from->dtype == CHOIR_F32)
		memcpy(to, (const float *) from->data + first, (size_t) n * sizeof *to);
	else
		l->half->widen(to, (const uint16_t *) from->data + first, n);
}

static void add(float *to, const float *from, int64_t n)
{
	chi_loops_best()->number[CHOIR_F32]->binary(CHI_ADD, to, to, from, n, false, false);
}

static void store(const layer *l, int64_t i, int64_t k)
{
	uint16_t *row = at(l, l->call->out->data, l->row, i, k);
	l->half->narrow(row, l->wide, l->row);
	give(l, i * l->h, row + l->row - l->h, l->wide + l->row - l->h, l->h);
}

choir_status chi_dnn_lstm(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	layer l;
	CHOIR_TRY(prepare(&l, call));
	widen(&l, l.state, &in[2], 0, l.n * l.h);
	give_first_state(&l);
	widen(&l, l.cell, &in[3], 0, l.n * l.h);
	for (int64_t k = 0; k < l.t; k++) {
		CHOIR_TRY(multiply(&l));
		for (int64_t i = 0; i < l.n; i++) {
			float *cell = l.cell + i * l.h;
			l.half->widen(l.wide, at(&l, in[0].data, l.gates, i, k), l.gates);
			add(l.wide, l.sums + i * l.gates, l.gates);
			l.loops->lstm(l.wide, cell, l.h);
			memcpy(cell, l.wide + l.gates, (size_t) l.h * sizeof *cell);
			store(&l, i, k);
		}
	}
	return CHOIR_OK;
}

choir_status chi_dnn_gru(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	layer l;
	CHOIR_TRY(prepare(&l, call));
	float *gates = l.wide + l.row;
	widen(&l, l.state, &in[3], 0, l.n * l.h);
	give_first_state(&l);
	for (int64_t k = 0; k < l.t; k++) {
		CHOIR_TRY(multiply(&l));
		for (int64_t i = 0; i < l.n; i++) {
			float *state = l.state + i * l.h;
			l.half->widen(gates, at(&l, in[0].data, l.gates, i, k), l.gates);
			widen(&l, l.wide, &in[2], 0, l.gates);
			add(l.wide, l.sums + i * l.gates, l.gates);
			l.loops->gru(l.wide, gates, state, l.h);
			memcpy(state, l.wide + l.row - l.h, (size_t) l.h * sizeof *state);
			store(&l, i, k);
		}
	}
	return CHOIR_OK;
}

// Also adds dy to the gradients of cell and state. Returns h elements of the previous time step:
// of its row, `part` parts from the end, or in[2].
static float *widen_row(const layer *l, int64_t part, int64_t i, int64_t k)
{
	const choir_buffer *in = l->call->in;
	const int64_t width = in[3].shape.dim[2], first = (i * l->t + k) * width;
	float *before = l->wide + l->row, *dy = before + l->h;
	l->half->widen(l->wide, at(l, in[0].data, l->row, i, k), l->row);
	if (k > 0)
		l->half->widen(before, (uint16_t *) at(l, in[0].data, l->row, i, k) - part * l->h, l->h);
	else
		widen(l, before, &in[2], i * l->h, l->h);
	if (width > l->h) {
		widen(l, dy, &in[3], first, l->h);
		add(l->cell + i * l->h, dy, l->h);
	}
	widen(l, dy, &in[3], first + width - l->h, l->h);
	add(l->state + i * l->h, dy, l->h);
	return before;
}

static void clear_gradients(layer *l)
{
	memset(l->state, 0, (size_t) (l->n * l->h) * sizeof *l->state);
	memset(l->cell, 0, (size_t) (l->n * l->h) * sizeof *l->cell);
}

choir_status chi_dnn_lstm_gradient(const choir_kernel_call *call)
{
	layer l;
	CHOIR_TRY(prepare(&l, call));
	const int64_t states = l.n * l.h, gates = l.n * l.t * l.gates;
	float *dz = l.wide + l.row + 2 * l.h;
	uint16_t *out = call->out->data;
	clear_gradients(&l);
	for (int64_t k = l.t - 1; k >= 0; k--) {
		for (int64_t i = 0; i < l.n; i++) {
			const float *before = widen_row(&l, 2, i, k);
			l.loops->lstm_gradient(dz, l.cell + i * l.h, l.state + i * l.h, l.wide, before, l.h);
			l.half->narrow(at(&l, out, l.gates, i, k), dz, l.gates);
			give(&l, i * l.gates, at(&l, out, l.gates, i, k), dz, l.gates);
		}
		CHOIR_TRY(multiply(&l));
		memcpy(l.state, l.sums, (size_t) states * sizeof *l.state);
	}
	l.half->narrow(out + gates, l.state, states);
	l.half->narrow(out + gates + states, l.cell, states);
	return CHOIR_OK;
}

choir_status chi_dnn_gru_gradient(const choir_kernel_call *call)
{
	layer l;
	CHOIR_TRY(prepare(&l, call));
	const int64_t gates = l.n * l.t * l.gates;
	float *da = l.wide + l.row + 2 * l.h, *dq = da + l.gates;
	uint16_t *out = call->out->data;
	clear_gradients(&l);
	for (int64_t k = l.t - 1; k >= 0; k--) {
		for (int64_t i = 0; i < l.n; i++) {
			const float *before = widen_row(&l, 1, i, k);
			l.loops->gru_gradient(da, dq, l.state + i * l.h, l.wide, before, l.h);
			l.half->narrow(at(&l, out, l.gates, i, k), da, l.gates);
			l.half->narrow(at(&l, out + gates, l.gates, i, k), dq, l.gates);
			give(&l, i * l.gates, at(&l, out + gates, l.gates, i, k), dq, l.gates);
		}
		CHOIR_TRY(multiply(&l));
		add(l.state, l.sums, l.n * l.h);
	}
	l.half->narrow(out + 2 * gates, l.state, l.n * l.h);
	return CHOIR_OK;
}

static chi_dnn_problem gradient_problem(const choir_kernel_call *call)
{
	const choir_shape *dz = &call->in[2].shape;
	return (chi_dnn_problem){
		.kind = CHI_DNN_MATMUL,
		.dtypes = call->out->dtype == CHOIR_F32 ? CHI_DNN_BF16_TO_F32 : CHI_DNN_BF16,
		.a_transposed = true,
		.m = call->out->shape.dim[0],
		.k = dz->dim[0] * dz->dim[1],
		.n = dz->dim[2],
	};
}

int chi_dnn_recurrent_gradient_score(const choir_kernel_call *call)
{
	const chi_dnn_problem p = gradient_problem(call);
	if (call->in[2].dtype == CHOIR_F16)
		return !is_empty(&p) && call->in[0].dtype == CHOIR_F16 && call->out->dtype == CHOIR_F32
				? SCORE
				: 0;
	return chi_onednn_has_bf16() && call->in[2].dtype == CHOIR_BF16 &&
					(call->out->dtype == CHOIR_F32 || call->out->dtype == CHOIR_BF16) &&
					is_found(&p)
			? SCORE
			: 0;
}

static size_t states_bytes(const chi_dnn_problem *p)
{
	return chi_whole_lines((size_t) (p->k * p->m) * sizeof(uint16_t));
}

static size_t first_bytes(const choir_kernel_call *call)
{
	return chi_whole_lines((size_t) call->out->shape.dim[0] * sizeof(float));
}

// f16: the states and gradients of one time step, in f32.
static size_t step_bytes(const choir_kernel_call *call, int64_t width)
{
	return chi_whole_lines((size_t) (call->in[2].shape.dim[0] * width) * sizeof(float));
}

size_t chi_dnn_recurrent_gradient_scratch(const choir_kernel_call *call)
{
	const chi_dnn_problem p = gradient_problem(call);
	chi_dnn *d;
	if (call->in[2].dtype == CHOIR_F16)
		return step_bytes(call, p.m) + step_bytes(call, p.n);
	return chi_dnn_find(&p, &d) == CHOIR_OK
			? states_bytes(&p) + first_bytes(call) + chi_dnn_scratch(d)
			: 0;
}

// One product per time step, as in f32.
static choir_status gradient_f16(const choir_kernel_call *call, const chi_dnn_problem *p)
{
	const choir_recurrent_attributes *a = call->attributes;
	const choir_buffer *rows = &call->in[0], *dz = &call->in[2];
	const int64_t n = dz->shape.dim[0], width = rows->shape.dim[2];
	const layer l = { .half = chi_half_loops_best(CHOIR_F16), .t = dz->shape.dim[1] };
	float *states = call->scratch;
	float *gates = (float *) (void *) ((char *) call->scratch + step_bytes(call, p->m));
	for (int64_t k = 0; k < l.t; k++) {
		for (int64_t i = 0; i < n; i++) {
			float *state = states + i * p->m;
			if (k == 0)
				widen(&l, state, &call->in[1], i * p->m, p->m);
			else
				l.half->widen(
						state, (uint16_t *) at(&l, rows->data, width, i, k - 1) + a->offset, p->m);
			l.half->widen(gates + i * p->n, at(&l, dz->data, p->n, i, k), p->n);
		}
		const chi_dnn_gemm gemm = { .accumulate = k > 0,
			.m = p->m,
			.n = p->n,
			.k = n,
			.a = { states, p->m, true },
			.b = { gates, p->n, false },
			.c = call->out->data,
			.c_row = p->n };
		CHOIR_TRY(chi_dnn_multiply(&gemm));
	}
	return CHOIR_OK;
}

choir_status chi_dnn_recurrent_gradient(const choir_kernel_call *call)
{
	const chi_dnn_problem p = gradient_problem(call);
	if (call->in[2].dtype == CHOIR_F16)
		return gradient_f16(call, &p);
	const choir_recurrent_attributes *a = call->attributes;
	const choir_buffer *rows = &call->in[0];
	const int64_t n = rows->shape.dim[0], t = rows->shape.dim[1], width = rows->shape.dim[2];
	const layer l = { .half = chi_half_loops_best(CHOIR_BF16), .t = t };
	uint16_t *states = call->scratch;
	float *first = (float *) (void *) ((char *) call->scratch + states_bytes(&p));
	chi_dnn *d;
	CHOIR_TRY(chi_dnn_find(&p, &d));
	for (int64_t i = 0; i < n; i++) {
		widen(&l, first, &call->in[1], i * p.m, p.m);
		l.half->narrow(at(&l, states, p.m, i, 0), first, p.m);
		for (int64_t k = 1; k < t; k++)
			memcpy(at(&l, states, p.m, i, k),
					(uint16_t *) at(&l, rows->data, width, i, k - 1) + a->offset,
					(size_t) p.m * sizeof *states);
	}
	const chi_dnn_operands o = { .a = states,
		.b = call->in[2].data,
		.out = call->out->data,
		.scratch = (char *) (void *) first + first_bytes(call) };
	return chi_dnn_run(d, &o);
}
#endif
