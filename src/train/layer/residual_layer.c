// Residual blocks: a layer's result added to its input.
#include "train/layer/layer.h"

#include "base/hash.h"
#include "op/nn/nn.h"

#include <limits.h>

typedef struct {
	choir_layer layer;
	choir_layer *inside, *shortcut; // shortcut NULL: x itself
	choir_activation activation;
} residual;

static choir_tensor *apply(choir_layer *l, choir_tensor *x)
{
	const residual *r = (const residual *) l;
	char text[2][CHI_SHAPE_TEXT];
	choir_tensor *lengths = x->frame->lengths;
	choir_tensor *y = choir_layer_apply(r->inside, x);
	x->frame->lengths = lengths;
	choir_tensor *beside = r->shortcut != NULL ? choir_layer_apply(r->shortcut, x) : x;
	if (y == NULL || beside == NULL)
		return NULL;
	if (chi_dtype_wide(y->dtype) != chi_dtype_wide(beside->dtype) ||
			!chi_shape_equal(&y->shape, &beside->shape))
		return chi_layer_fail(l, x,
				"the layers return %s, but the shortcut %s; both must have one shape",
				chi_shape_print(&y->shape, text[0]), chi_shape_print(&beside->shape, text[1]));
	return chi_activation_apply(r->activation, choir_add(y, beside));
}

static choir_variable *variable(choir_layer *l, int index)
{
	const residual *r = (const residual *) l;
	const int inside = r->inside->variables;
	return index < inside ? choir_layer_variable(r->inside, index)
						  : choir_layer_variable(r->shortcut, index - inside);
}

static int describe(choir_layer *l, chi_export *e, int x)
{
	const residual *r = (const residual *) l;
	char text[CHI_SHAPE_TEXT];
	const int y = chi_layer_describe(r->inside, e, x);
	const int beside = r->shortcut != NULL ? chi_layer_describe(r->shortcut, e, x) : x;
	if (y == CHOIR_NONE || beside == CHOIR_NONE)
		return CHOIR_NONE;
	if (!chi_shape_equal(chi_export_shape(e, y), chi_export_shape(e, beside)))
		return chi_export_refuse(l, e, y, "the layers must return the shortcut's shape %s",
				chi_shape_print(chi_export_shape(e, beside), text));
	return chi_export_activate(e, r->activation, chi_export_add(e, y, beside));
}

static void follow(choir_layer *l, chi_image *image)
{
	const residual *r = (const residual *) l;
	chi_image beside = *image;
	chi_layer_follow(r->inside, image);
	if (r->shortcut != NULL)
		chi_layer_follow(r->shortcut, &beside);
}

static const chi_layer_kind kind = { .name = "residual",
	.follow = follow,
	.sequences = true,
	.apply = apply,
	.variable = variable,
	.describe = describe };

choir_layer *choir_residual_new(
		choir_layer *inside, choir_layer *shortcut, choir_activation activation)
{
	choir_layer *const layers[] = { inside, shortcut };
	if (chi_layer_check("residual", NULL, false, activation) != CHOIR_OK ||
			chi_layer_check_inside("residual", shortcut != NULL ? 2 : 1, layers) != CHOIR_OK)
		return NULL;
	residual *r = (residual *) chi_layer_new(sizeof *r, &kind, NULL);
	if (r == NULL)
		return NULL;
	r->inside = inside;
	r->shortcut = shortcut;
	r->activation = activation;
	chi_layer_set(&r->layer, "activation %s, contents %016llx", chi_layer_activation(activation),
			(unsigned long long) chi_hash_mix(
					chi_layer_hash(inside) + 3 * chi_layer_hash(shortcut)));
	const int64_t all = (int64_t) inside->variables + choir_layer_variables(shortcut);
	if (all > INT_MAX)
		return chi_layer_finish(&r->layer,
				choir_fail(CHOIR_INVALID, "residual: the layers have more than %d variables",
						INT_MAX));
	r->layer.variables = (int) all;
	return chi_layer_finish_around(
			&r->layer, 2, (choir_layer *const[]){ inside, shortcut }, CHOIR_OK);
}
