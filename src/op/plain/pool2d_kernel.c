// Pooling kernels.
#include "op/plain/plain.h"

static chi_pool pool_of(const choir_buffer *x, const choir_buffer *y, const void *attributes)
{
	const int64_t *dim = x->shape.dim;
	return (chi_pool){
		.n = dim[0],
		.h = dim[1],
		.w = dim[2],
		.c = dim[3],
		.out_h = y->shape.dim[1],
		.out_w = y->shape.dim[2],
		.attributes = attributes,
	};
}

static choir_status run_max(const choir_kernel_call *call)
{
	const chi_pool pool = pool_of(&call->in[0], call->out, call->attributes);
	chi_loops_best()->real[call->out->dtype]->max_pool(&pool, call->out->data, call->in[0].data);
	return CHOIR_OK;
}

static choir_status run_max_half(const choir_kernel_call *call)
{
	const chi_pool pool = pool_of(&call->in[0], call->out, call->attributes);
	chi_half_loops_best(call->out->dtype)->max_pool(&pool, call->out->data, call->in[0].data);
	return CHOIR_OK;
}

// Sums over overlapping windows are rounded once, by way of f32.
static int score_half(const choir_kernel_call *call)
{
	const choir_pool2d_attributes *a = call->attributes;
	return a->stride >= a->window && call->in[1].dtype == call->out->dtype &&
			call->in[2].dtype == call->out->dtype;
}

static choir_status run_max_gradient_half(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	const chi_pool pool = pool_of(&in[0], &in[1], call->attributes);
	chi_half_loops_best(call->out->dtype)
			->max_pool_gradient(&pool, call->out->data, in[0].data, in[1].data, in[2].data);
	return CHOIR_OK;
}

static choir_status run_max_gradient(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	const chi_pool pool = pool_of(&in[0], &in[1], call->attributes);
	chi_loops_best()->real[call->out->dtype]->max_pool_gradient(
			&pool, call->out->data, in[0].data, in[1].data, in[2].data);
	return CHOIR_OK;
}

static choir_status run_max_take(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	const chi_pool pool = pool_of(&in[0], call->out, call->attributes);
	chi_loops_best()->real[call->out->dtype]->max_pool_take(
			&pool, call->out->data, in[0].data, in[1].data, in[2].data);
	return CHOIR_OK;
}

static choir_status run_average(const choir_kernel_call *call)
{
	const chi_pool pool = pool_of(&call->in[0], call->out, call->attributes);
	chi_loops_best()->real[call->out->dtype]->average_pool(
			&pool, call->out->data, call->in[0].data);
	return CHOIR_OK;
}

static choir_status run_average_gradient(const choir_kernel_call *call)
{
	const chi_pool pool = pool_of(call->out, &call->in[0], call->attributes);
	chi_loops_best()->real[call->out->dtype]->average_pool_gradient(
			&pool, call->out->data, call->in[0].data);
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "max_pool2d", CHI_REAL, sizeof(choir_pool2d_attributes), run_max, NULL, NULL, NULL },
	{ "max_pool2d_gradient", CHI_REAL, sizeof(choir_pool2d_attributes), run_max_gradient, NULL,
			NULL, NULL },
	{ "max_pool2d", CHI_HALF, sizeof(choir_pool2d_attributes), run_max_half, NULL, NULL, NULL },
	{ "max_pool2d_gradient", CHI_HALF, sizeof(choir_pool2d_attributes), run_max_gradient_half,
			NULL, score_half, NULL },
	{ "max_pool2d_take", CHI_REAL, sizeof(choir_pool2d_attributes), run_max_take, NULL, NULL,
			NULL },
	{ "average_pool2d", CHI_REAL, sizeof(choir_pool2d_attributes), run_average, NULL, NULL, NULL },
	{ "average_pool2d_gradient", CHI_REAL, sizeof(choir_pool2d_attributes), run_average_gradient,
			NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_pool2d = { specs, sizeof specs / sizeof specs[0] };
