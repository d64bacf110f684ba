// Optimizers, in place.
#include "op/plain/plain.h"

#include <math.h>

static const chi_update1 updates1[] = { CHI_UPDATE_MOMENTUM, CHI_UPDATE_ADAGRAD, CHI_UPDATE_LION };
static const chi_update2 updates2[] = { CHI_UPDATE_ADAM, CHI_UPDATE_RMSPROP, CHI_UPDATE_NADAM,
	CHI_UPDATE_LAMB };

// By the gate, if any. False: write nothing.
static bool take_attributes(const choir_kernel_call *call, choir_update_attributes *gated,
		const choir_update_attributes **attributes)
{
	*attributes = call->attributes;
	const double *gate = (*attributes)->gate;
	if (gate == NULL)
		return true;
	*gated = **attributes;
	gated->gradient_scale *= gate[0];
	*attributes = gated;
	return gate[1] == 0;
}

static choir_status run_sgd(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	choir_update_attributes gated;
	const choir_update_attributes *a;
	if (take_attributes(call, &gated, &a))
		chi_loops_best()->real[in[0].dtype]->sgd(in[0].data, in[1].data, a, chi_elements(&in[0]));
	return CHOIR_OK;
}

static choir_status run1(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	choir_update_attributes gated;
	const choir_update_attributes *a;
	if (take_attributes(call, &gated, &a))
		chi_loops_best()->real[in[0].dtype]->update1[*(const chi_update1 *) call->user](
				in[0].data, in[1].data, in[2].data, a, chi_elements(&in[0]));
	return CHOIR_OK;
}

static choir_status run2(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	choir_update_attributes gated;
	const choir_update_attributes *a;
	if (take_attributes(call, &gated, &a))
		chi_loops_best()->real[in[0].dtype]->update2[*(const chi_update2 *) call->user](
				in[0].data, in[1].data, in[2].data, in[3].data, a, chi_elements(&in[0]));
	return CHOIR_OK;
}

static choir_status run_gate(const choir_kernel_call *call)
{
	const choir_update_gate_attributes *a = call->attributes;
	const double *squares = call->in[0].data;
	const int64_t *ends = call->in[1].data;
	double *out = call->out->data, all = 0;
	int64_t at = 0, bad = -1;
	for (int64_t i = 0; i < chi_elements(&call->in[1]); i++) {
		double sum = 0;
		for (; at < ends[i]; at++)
			sum += squares[at];
		if (!isfinite(sum) && bad < 0)
			bad = i;
		all += sum;
	}
	const double norm = sqrt(all) / a->scale;
	const bool finite = bad < 0 && (a->clip == 0 || isfinite(norm));
	const bool clips = a->clip > 0 && norm > a->clip;
	const double factor = clips ? 1 / a->scale * (a->clip / norm) : 1 / a->scale;
	out[0] = finite || a->any ? factor : 0;
	out[1] = !finite && !a->any;
	out[2] = all;
	out[3] = (double) bad;
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
	{ "update_gate", CHI_F64, sizeof(choir_update_gate_attributes), run_gate, NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_update = { specs, sizeof specs / sizeof specs[0] };
