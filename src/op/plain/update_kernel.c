// Optimizer updates, in place.
#include "op/plain/plain.h"

static choir_status run_sgd(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	chi_loops_best()->real[in[0].dtype]->sgd(
			in[0].data, in[1].data, call->attributes, chi_elements(&in[0]));
	return CHOIR_OK;
}

static choir_status run_momentum(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	chi_loops_best()->real[in[0].dtype]->momentum(
			in[0].data, in[1].data, in[2].data, call->attributes, chi_elements(&in[0]));
	return CHOIR_OK;
}

static choir_status run_adam(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	chi_loops_best()->real[in[0].dtype]->adam(in[0].data, in[1].data, in[2].data, in[3].data,
			call->attributes, chi_elements(&in[0]));
	return CHOIR_OK;
}

static choir_status run_rmsprop(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	chi_loops_best()->real[in[0].dtype]->rmsprop(in[0].data, in[1].data, in[2].data, in[3].data,
			call->attributes, chi_elements(&in[0]));
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "sgd_update", CHI_REAL, sizeof(choir_update_attributes), run_sgd, NULL, NULL, NULL },
	{ "momentum_update", CHI_REAL, sizeof(choir_update_attributes), run_momentum, NULL, NULL,
			NULL },
	{ "adam_update", CHI_REAL, sizeof(choir_update_attributes), run_adam, NULL, NULL, NULL },
	{ "rmsprop_update", CHI_REAL, sizeof(choir_update_attributes), run_rmsprop, NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_update = { specs, sizeof specs / sizeof specs[0] };
