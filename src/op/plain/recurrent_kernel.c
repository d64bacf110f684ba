// Each time step is one product over all examples, then the loops. A row per time step stores
// what the gradient needs (extend/kernel_table.h).
#include "op/plain/recurrent_kernel.h"

#include <string.h>

// n sequences of t time steps, h elements of state.
typedef struct {
	const chi_gemm_kernel *kernel;
	const chi_recurrent_loops *loops;
	const chi_number_loops *number;
	choir_dtype dtype;
	size_t size;
	int64_t n, t, h;
	int64_t gates, row; // per time step
	void *gemm;
	char *dh; // [n, h] twice
} layer;

static layer layer_of(
		const choir_kernel_call *call, int64_t n, int64_t t, int64_t h, int64_t gates, int64_t row)
{
	const choir_dtype dtype = call->in[0].dtype;
	layer l = {
		.kernel = call->user,
		.loops = chi_loops_best()->real[dtype]->recurrent,
		.number = chi_loops_best()->number[dtype],
		.dtype = dtype,
		.size = chi_dtype_size(dtype),
		.n = n,
		.t = t,
		.h = h,
		.gates = gates * h,
		.row = row * h,
		.gemm = call->scratch,
	};
	l.dh = (char *) call->scratch + chi_gemm_scratch(dtype);
	return l;
}

// The state is at most as wide as in[0]'s last axis.
size_t chi_recurrent_scratch(const choir_kernel_call *call)
{
	const choir_shape *x = &call->in[0].shape;
	const size_t size = chi_dtype_size(call->in[0].dtype);
	return chi_gemm_scratch(call->in[0].dtype) +
			2 * (size_t) (x->dim[0] * x->dim[x->rank - 1]) * size;
}

// In [n, t, row].
static void *at(const layer *l, const void *rows, int64_t row, int64_t i, int64_t k, int64_t j)
{
	return (char *) (uintptr_t) rows + (size_t) ((i * l->t + k) * row + j) * l->size;
}

static const void *before(
		const layer *l, const void *rows, int64_t offset, const void *first, int64_t i, int64_t k)
{
	return k > 0 ? at(l, rows, l->row, i, k - 1, offset)
				 : (const char *) first + (size_t) (i * l->h) * l->size;
}

static choir_status add_gemm(
		const layer *l, void *rows, int64_t offset, const void *first, const void *w, int64_t k)
{
	chi_gemm p = {
		.dtype = l->dtype,
		.m = l->n,
		.n = l->gates,
		.k = l->h,
		.a = { before(l, rows, offset, first, 0, k), k > 0 ? l->t * l->row : l->h, 1 },
		.b = { w, l->gates, 1 },
		.c = at(l, rows, l->row, 0, k, 0),
		.c_row = l->t * l->row,
		.accumulate = true,
		.scratch = l->gemm,
	};
	return l->kernel->gemm(&p);
}

choir_status chi_lstm(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	const int64_t h = in[1].shape.dim[0];
	const layer l = layer_of(call, in[0].shape.dim[0], in[0].shape.dim[1], h, 4, 6);
	void *rows = call->out->data;
	for (int64_t k = 0; k < l.t; k++) {
		for (int64_t i = 0; i < l.n; i++)
			memcpy(at(&l, rows, l.row, i, k, 0), at(&l, in[0].data, l.gates, i, k, 0),
					(size_t) l.gates * l.size);
		CHOIR_TRY(add_gemm(&l, rows, 5 * h, in[2].data, in[1].data, k));
		for (int64_t i = 0; i < l.n; i++)
			l.loops->lstm(
					at(&l, rows, l.row, i, k, 0), before(&l, rows, 4 * h, in[3].data, i, k), h);
	}
	return CHOIR_OK;
}

choir_status chi_gru(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	const int64_t h = in[1].shape.dim[0];
	const layer l = layer_of(call, in[0].shape.dim[0], in[0].shape.dim[1], h, 3, 5);
	void *rows = call->out->data;
	for (int64_t k = 0; k < l.t; k++) {
		for (int64_t i = 0; i < l.n; i++)
			memcpy(at(&l, rows, l.row, i, k, 0), in[2].data, (size_t) l.gates * l.size);
		CHOIR_TRY(add_gemm(&l, rows, 4 * h, in[3].data, in[1].data, k));
		for (int64_t i = 0; i < l.n; i++)
			l.loops->gru(at(&l, rows, l.row, i, k, 0), at(&l, in[0].data, l.gates, i, k, 0),
					before(&l, rows, 4 * h, in[3].data, i, k), h);
	}
	return CHOIR_OK;
}

// dh [n, h] = (more ? dh : 0) + dz of time step k times w^T.
static choir_status send_back(const layer *l, const void *dz, const void *w, int64_t k, bool more)
{
	chi_gemm p = {
		.dtype = l->dtype,
		.m = l->n,
		.n = l->h,
		.k = l->gates,
		.a = { at(l, dz, l->gates, 0, k, 0), l->t * l->gates, 1 },
		.b = { w, 1, l->gates },
		.c = l->dh,
		.c_row = l->h,
		.accumulate = more,
		.scratch = l->gemm,
	};
	return l->kernel->gemm(&p);
}

// Adds h elements, from first on, of dy's rows in time step k.
static void add_above(const layer *l, char *sums, const choir_buffer *dy, int64_t first, int64_t k)
{
	for (int64_t i = 0; i < l->n; i++) {
		void *to = sums + (size_t) (i * l->h) * l->size;
		const void *from = at(l, dy->data, dy->shape.dim[2], i, k, first);
		l->number->binary(CHI_ADD, to, to, from, l->h, false, false);
	}
}

choir_status chi_lstm_gradient(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	const int64_t h = in[1].shape.dim[0], cells = in[3].shape.dim[2] - h;
	const layer l = layer_of(call, in[0].shape.dim[0], in[0].shape.dim[1], h, 4, 6);
	const size_t state = (size_t) (l.n * h) * l.size;
	char *dz = call->out->data, *dh0 = dz + (size_t) (l.n * l.t * l.gates) * l.size;
	char *dc = dh0 + state;
	memset(l.dh, 0, state);
	memset(dc, 0, state);
	for (int64_t k = l.t - 1; k >= 0; k--) {
		if (cells > 0)
			add_above(&l, dc, &in[3], 0, k);
		add_above(&l, l.dh, &in[3], cells, k);
		for (int64_t i = 0; i < l.n; i++)
			l.loops->lstm_gradient(at(&l, dz, l.gates, i, k, 0), dc + (size_t) (i * h) * l.size,
					l.dh + (size_t) (i * h) * l.size, at(&l, in[0].data, l.row, i, k, 0),
					before(&l, in[0].data, 4 * h, in[2].data, i, k), h);
		CHOIR_TRY(send_back(&l, dz, in[1].data, k, false));
	}
	memcpy(dh0, l.dh, state);
	return CHOIR_OK;
}

choir_status chi_gru_gradient(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	const int64_t h = in[1].shape.dim[0];
	const layer l = layer_of(call, in[0].shape.dim[0], in[0].shape.dim[1], h, 3, 5);
	const size_t state = (size_t) (l.n * h) * l.size,
				 gates = (size_t) (l.n * l.t * l.gates) * l.size;
	char *da = call->out->data, *dq = da + gates;
	memset(l.dh, 0, state);
	for (int64_t k = l.t - 1; k >= 0; k--) {
		add_above(&l, l.dh, &in[3], 0, k);
		for (int64_t i = 0; i < l.n; i++)
			l.loops->gru_gradient(at(&l, da, l.gates, i, k, 0), at(&l, dq, l.gates, i, k, 0),
					l.dh + (size_t) (i * h) * l.size, at(&l, in[0].data, l.row, i, k, 0),
					before(&l, in[0].data, 4 * h, in[2].data, i, k), h);
		CHOIR_TRY(send_back(&l, dq, in[1].data, k, true));
	}
	memcpy(dq + gates, l.dh, state);
	return CHOIR_OK;
}

choir_status chi_recurrent_gradient(const choir_kernel_call *call)
{
	const choir_recurrent_attributes *a = call->attributes;
	const choir_buffer *states = &call->in[0], *dz = &call->in[2];
	const int64_t h = call->out->shape.dim[0], t = dz->shape.dim[1];
	layer l = layer_of(call, dz->shape.dim[0], t, h, 0, 0);
	l.gates = dz->shape.dim[2];
	l.row = states->shape.dim[2];
	for (int64_t k = 0; k < t; k++) {
		chi_gemm p = {
			.dtype = l.dtype,
			.m = h,
			.n = l.gates,
			.k = l.n,
			.a = { before(&l, states->data, a->offset, call->in[1].data, 0, k), 1,
					k > 0 ? t * l.row : h },
			.b = { at(&l, dz->data, l.gates, 0, k, 0), t * l.gates, 1 },
			.c = call->out->data,
			.c_row = l.gates,
			.accumulate = k > 0,
			.scratch = l.gemm,
		};
		CHOIR_TRY(l.kernel->gemm(&p));
	}
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "lstm", CHI_REAL, 0, chi_lstm, chi_recurrent_scratch, NULL, &chi_plain_gemm },
	{ "lstm_gradient", CHI_REAL, 0, chi_lstm_gradient, chi_recurrent_scratch, NULL,
			&chi_plain_gemm },
	{ "gru", CHI_REAL, 0, chi_gru, chi_recurrent_scratch, NULL, &chi_plain_gemm },
	{ "gru_gradient", CHI_REAL, 0, chi_gru_gradient, chi_recurrent_scratch, NULL,
			&chi_plain_gemm },
	{ "recurrent_gradient", CHI_REAL, sizeof(choir_recurrent_attributes), chi_recurrent_gradient,
			chi_recurrent_scratch, NULL, &chi_plain_gemm },
};
const chi_kernel_list chi_plain_recurrent = { specs, sizeof specs / sizeof specs[0] };
