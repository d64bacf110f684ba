// Optimizer updates, in place.
#include "op/plain/plain.h"

// A spec's user points to one of these.
static const chi_update1 updates1[] = { CHI_UPDATE_MOMENTUM, CHI_UPDATE_ADAGRAD, CHI_UPDATE_LION };
static const chi_update2 updates2[] = { CHI_UPDATE_ADAM, CHI_UPDATE_RMSPROP, CHI_UPDATE_NADAM,
	CHI_UPDATE_LAMB };

static choir_status run_sgd(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	chi_loops_best()->real[in[0].dtype]->sgd(
			in[0].data, in[1].data, call->attributes, chi_elements(&in[0]));
	return CHOIR_OK;
}

static choir_status run1(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	chi_loops_best()->real[in[0].dtype]->update1[*(const chi_update1 *) call->user](
			in[0].data, in[1].data, in[2].data, call->attributes, chi_elements(&in[0]));
	return CHOIR_OK;
}

static choir_status run2(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	chi_loops_best()->real[in[0].dtype]->update2[*(const chi_update2 *) call->user](in[0].data,
			in[1].data, in[2].data, in[3].data, call->attributes, chi_elements(&in[0]));
	return CHOIR_OK;
}

enum { ATTRIBUTES = sizeof(choir_update_attributes) };

static const chi_kernel_spec specs[] = {
	{ "sgd_update", CHI_REAL, ATTRIBUTES, run_sgd, NULL, NULL, NULL },
	{ "momentum_update", CHI_REAL, ATTRIBUTES, run1, NULL, NULL, &updates1[0] },
	{ "adagrad_update", CHI_REAL, ATTRIBUTES, run1, NULL, NULL, &updates1[1] },
	{ "lion_update", CHI_REAL, ATTRIBUTES, run1, NULL, NULL, &updates1[2] },
	{ "adam_update", CHI_REAL, ATTRIBUTES, run2, NULL, NULL, &updates2[0] },
	{ "rmsprop_update", CHI_REAL, ATTRIBUTES, run2, NULL, NULL, &updates2[1] },
	{ "nadam_update", CHI_REAL, ATTRIBUTES, run2, NULL, NULL, &updates2[2] },
	{ "lamb_update", CHI_REAL, ATTRIBUTES, run2, NULL, NULL, &updates2[3] },
};
const chi_kernel_list chi_plain_update = { specs, sizeof specs / sizeof specs[0] };
