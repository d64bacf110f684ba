// All axes but the first become one.
#include "train/layer/layer.h"

#include "base/size.h"
#include "choir/op.h"

static choir_tensor *apply_flatten(choir_layer *l, choir_tensor *x)
{
	if (x->shape.rank < 1)
		return chi_layer_fail(l, x, "needs [n, ...]; the input is a scalar");
	choir_shape flat = { 2, { x->shape.dim[0], 1 } };
	for (int i = 1; i < x->shape.rank; i++)
		if (!chi_int64_multiply(flat.dim[1], x->shape.dim[i], &flat.dim[1]))
			return chi_layer_fail(l, x, "an example has too many elements");
	return choir_reshape(x, flat);
}

static int describe_flatten(choir_layer *l, chi_export *e, int x)
{
	if (e->value[x].varies)
		return chi_export_refuse(l, e, x, "flatten needs a known number of positions");
	return chi_export_view(e, x, CHOIR_SHAPE(choir_shape_elements(chi_export_shape(e, x))));
}

static const chi_layer_kind flatten_kind = { .name = "flatten",
	.image = CHI_IMAGE_FLATTENED,
	.apply = apply_flatten,
	.describe = describe_flatten };

choir_layer *choir_flatten_new(void)
{
	return chi_layer_finish(chi_layer_new(sizeof(choir_layer), &flatten_kind, NULL), CHOIR_OK);
}
