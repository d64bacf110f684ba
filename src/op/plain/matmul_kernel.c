// matmul, and dense.
#include "op/plain/gemm.h"

typedef struct {
	int64_t batch, m, n, k;
	int64_t a_step, b_step;
	int64_t a_row, a_column, b_row, b_column;
} gemm_shape;

static gemm_shape shape_of(const choir_buffer *a, const choir_buffer *b, choir_transposed which)
{
	const int64_t *ad = a->shape.dim + a->shape.rank - 2, *bd = b->shape.dim + b->shape.rank - 2;
	const bool at = which == CHOIR_TRANSPOSED_A, bt = which == CHOIR_TRANSPOSED_B;
	gemm_shape s = {
		.batch = 1,
		.m = at ? ad[1] : ad[0],
		.k = at ? ad[0] : ad[1],
		.n = bt ? bd[0] : bd[1],
		.a_row = at ? 1 : ad[1],
		.a_column = at ? ad[1] : 1,
		.b_row = bt ? 1 : bd[1],
		.b_column = bt ? bd[1] : 1,
	};
	for (int i = 0; i < a->shape.rank - 2; i++)
		s.batch *= a->shape.dim[i];
	s.a_step = s.m * s.k;
	s.b_step = b->shape.rank > 2 ? s.k * s.n : 0;
	if (s.b_step == 0 && !at) {
		s.m *= s.batch;
		s.batch = 1;
	}
	return s;
}

static choir_status run_matmul(const choir_kernel_call *call)
{
	const choir_matmul_attributes *attributes = call->attributes;
	const choir_buffer *a = &call->in[0], *b = &call->in[1];
	const gemm_shape s = shape_of(a, b, attributes->transposed);
	for (int64_t i = 0; i < s.batch; i++) {
		const chi_gemm gemm = {
			.dtype = a->dtype,
			.m = s.m,
			.n = s.n,
			.k = s.k,
			.a = chi_element(a, i * s.a_step),
			.b = chi_element(b, i * s.b_step),
			.a_row = s.a_row,
			.a_column = s.a_column,
			.b_row = s.b_row,
			.b_column = s.b_column,
			.c_row = s.n,
			.c = chi_element(call->out, i * s.m * s.n),
			.scratch = call->scratch,
		};
		chi_gemm_run(&gemm);
	}
	return CHOIR_OK;
}

static choir_status run_dense(const choir_kernel_call *call)
{
	const choir_dense_attributes *attributes = call->attributes;
	const choir_buffer *x = &call->in[0], *w = &call->in[1];
	const gemm_shape s = shape_of(x, w, CHOIR_TRANSPOSED_NONE);
	const chi_gemm gemm = {
		.dtype = x->dtype,
		.m = s.m,
		.n = s.n,
		.k = s.k,
		.a = x->data,
		.b = w->data,
		.a_row = s.a_row,
		.a_column = s.a_column,
		.b_row = s.b_row,
		.b_column = s.b_column,
		.c_row = s.n,
		.c = call->out->data,
		.scratch = call->scratch,
	};
	chi_gemm_run(&gemm);
	chi_finish(x->dtype, call->out->data, s.m, s.n, call->n > 2 ? call->in[2].data : NULL,
			attributes->activation);
	return CHOIR_OK;
}

static size_t scratch(const choir_kernel_call *call)
{
	return chi_gemm_scratch(call->in[0].dtype);
}

static const chi_kernel_spec specs[] = {
	{ "matmul", CHI_REAL, sizeof(choir_matmul_attributes), run_matmul, scratch, NULL, NULL },
	{ "dense", CHI_REAL, sizeof(choir_dense_attributes), run_dense, scratch, NULL, NULL },
};
const chi_kernel_list chi_plain_matmul = { specs, sizeof specs / sizeof specs[0] };
