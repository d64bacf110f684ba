// An activation as a layer.
#include "train/layer/layer.h"

#include "op/nn/nn.h"

typedef struct {
	choir_layer layer;
	choir_activation activation;
} activation_layer;

static choir_tensor *apply_activation(choir_layer *l, choir_tensor *x)
{
	if (!chi_dtype_is_float(x->dtype))
		return chi_layer_fail(l, x, "activation needs f32 or f64; the input is %s, cast it",
				choir_dtype_name(x->dtype));
	return chi_activation_apply(((const activation_layer *) l)->activation, x);
}

static int describe_activation(choir_layer *l, chi_export *e, int x)
{
	return chi_export_activate(e, ((const activation_layer *) l)->activation, x);
}

static const chi_layer_kind activation_kind = { .name = "activation",
	.sequences = true,
	.apply = apply_activation,
	.describe = describe_activation };

choir_layer *choir_activation_new(choir_activation activation)
{
	if (chi_layer_check("activation", NULL, false, activation) != CHOIR_OK)
		return NULL;
	activation_layer *a = (activation_layer *) chi_layer_new(sizeof *a, &activation_kind, NULL);
	if (a == NULL)
		return NULL;
	a->activation = activation;
	chi_layer_set(&a->layer, "activation %s", chi_layer_activation(activation));
	return chi_layer_finish(&a->layer, CHOIR_OK);
}
