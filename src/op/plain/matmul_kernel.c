// matmul, and dense.
#include "op/plain/gemm.h"

typedef struct {
	int64_t batch, a_step, b_step;
	chi_gemm first;
} products;

static products products_of(const choir_kernel_call *call, choir_transposed which)
{
	const choir_buffer *a = &call->in[0], *b = &call->in[1];
	const int64_t *ad = a->shape.dim + a->shape.rank - 2, *bd = b->shape.dim + b->shape.rank - 2;
	const bool at = which == CHOIR_TRANSPOSED_A, bt = which == CHOIR_TRANSPOSED_B;
	const int64_t m = at ? ad[1] : ad[0], n = bt ? bd[0] : bd[1], k = at ? ad[0] : ad[1];
	products p = { .batch = 1, .a_step = m * k, .b_step = b->shape.rank > 2 ? k * n : 0 };
	for (int i = 0; i < a->shape.rank - 2; i++)
		p.batch *= a->shape.dim[i];
	const bool one = p.b_step == 0 && !at;
	p.first = (chi_gemm){
		.dtype = a->dtype,
		.m = one ? m * p.batch : m,
		.n = n,
		.k = k,
		.a = { a->data, at ? 1 : ad[1], at ? ad[1] : 1 },
		.b = { b->data, bt ? 1 : bd[1], bt ? bd[1] : 1 },
		.c = call->out->data,
		.c_row = n,
		.scratch = call->scratch,
	};
	p.batch = one ? 1 : p.batch;
	return p;
}

static choir_status run_matmul(const choir_kernel_call *call)
{
	const choir_matmul_attributes *attributes = call->attributes;
	const products p = products_of(call, attributes->transposed);
	chi_gemm gemm = p.first;
	for (int64_t i = 0; i < p.batch; i++) {
		gemm.a.data = chi_element(&call->in[0], i * p.a_step);
		gemm.b.data = chi_element(&call->in[1], i * p.b_step);
		gemm.c = chi_element(call->out, i * gemm.m * gemm.n);
		chi_gemm_run(&gemm);
	}
	return CHOIR_OK;
}

static choir_status run_dense(const choir_kernel_call *call)
{
	const choir_dense_attributes *attributes = call->attributes;
	const chi_gemm gemm = products_of(call, CHOIR_TRANSPOSED_NONE).first;
	chi_gemm_run(&gemm);
	chi_finish(gemm.dtype, gemm.c, gemm.m, gemm.n, call->n > 2 ? call->in[2].data : NULL,
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
