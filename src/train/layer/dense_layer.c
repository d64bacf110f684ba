// The fully connected layer, with or without bias.
#include "op/nn/nn.h"
#include "train/layer/layer.h"

#include <inttypes.h>

typedef struct {
	choir_layer layer;
	int64_t in;
	choir_activation activation;
} dense;

static choir_tensor *apply(choir_layer *l, choir_tensor *x)
{
	const dense *d = (const dense *) l;
	const int rank = x->shape.rank;
	char got[CHI_SHAPE_TEXT];
	if (rank < 2 || x->shape.dim[rank - 1] != d->in)
		return chi_layer_fail(l, x, "dense needs [n, .., %" PRId64 "]; the input is %s", d->in,
				chi_shape_print(&x->shape, got));
	choir_tensor *kernel = choir_variable_read(l->variable[0], x->frame);
	if (l->variables == 1)
		return chi_activation_apply(d->activation, choir_matmul(x, kernel, CHOIR_TRANSPOSED_NONE));
	choir_tensor *bias = choir_variable_read(l->variable[1], x->frame);
	return chi_dense(x, kernel, bias, d->activation);
}

static int describe(choir_layer *l, chi_export *e, int x)
{
	const dense *d = (const dense *) l;
	const choir_shape *s = chi_export_shape(e, x);
	if (s->rank < 1 || s->dim[s->rank - 1] != d->in)
		return chi_export_refuse(l, e, x, "dense needs [.., %" PRId64 "]", d->in);
	return chi_export_dense(
			e, d->activation, x, l->variable[0], l->variables > 1 ? l->variable[1] : NULL);
}

static const chi_layer_kind kind = { .name = "dense",
	.image = CHI_IMAGE_USED,
	.sequences = true,
	.apply = apply,
	.describe = describe };

static choir_layer *make(
		const char *name, int64_t in, int64_t out, choir_activation activation, bool bias)
{
	if (chi_layer_check("dense", name, true, activation) != CHOIR_OK)
		return NULL;
	if (in < 1 || out < 1)
		return chi_fail_null(CHOIR_INVALID,
				"layer \"%s\": dense from %" PRId64 " to %" PRId64 "; both must be 1 or more",
				name, in, out);
	dense *d = (dense *) chi_layer_new(sizeof *d, &kind, name);
	if (d == NULL)
		return NULL;
	d->in = in;
	d->activation = activation;
	chi_layer_set(&d->layer, "activation %s", chi_layer_activation(activation));
	return chi_layer_finish(
			&d->layer, chi_layer_make_weights(&d->layer, &CHOIR_SHAPE(in, out), bias));
}

choir_layer *choir_dense_new(
		const char *name, int64_t in, int64_t out, choir_activation activation)
{
	return make(name, in, out, activation, true);
}

choir_layer *choir_dense_no_bias_new(const char *name, int64_t in, int64_t out)
{
	return make(name, in, out, CHOIR_LINEAR, false);
}
