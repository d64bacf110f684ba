// One product makes queries, keys and values, another combines the heads.
#include "train/layer/layer.h"

#include "choir/nn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct {
	choir_layer layer;
	int64_t width;
	choir_attention_options how;
} attention;

enum { IN, IN_BIAS, OUT, OUT_BIAS };

static choir_tensor *project(choir_layer *l, int first, choir_tensor *x)
{
	choir_tensor *kernel = choir_variable_read(l->variable[first], x->frame);
	choir_tensor *bias = choir_variable_read(l->variable[first + 1], x->frame);
	return chi_dense(x, kernel, bias, CHOIR_LINEAR);
}

// A mask without padding.
static choir_tensor *keys(const choir_tensor *x)
{
	const int64_t n = x->shape.dim[0], t = x->shape.dim[1];
	choir_tensor *mask = choir_sequence_mask(x->frame->lengths, t);
	return mask == NULL ? NULL : choir_reshape(mask, CHOIR_SHAPE(n, 1, 1, t));
}

static choir_tensor *apply(choir_layer *l, choir_tensor *x)
{
	const attention *a = (const attention *) l;
	char got[CHI_SHAPE_TEXT];
	if (x->shape.rank != 3 || x->shape.dim[2] != a->width)
		return chi_layer_fail(l, x,
				"self_attention needs [n, positions, %" PRId64 "]; the input is %s", a->width,
				chi_shape_print(&x->shape, got));
	choir_attention_options how = a->how;
	if (x->frame->lengths != NULL && how.causal != CHOIR_ON) { // causal: padding is later
		how.mask = keys(x);
		if (how.mask == NULL)
			return NULL;
	}
	choir_tensor *y = choir_self_attention(project(l, IN, x), &how);
	return y == NULL ? NULL : project(l, OUT, y);
}

static int describe(choir_layer *l, chi_export *e, int x)
{
	const attention *a = (const attention *) l;
	choir_shape s = *chi_export_shape(e, x);
	const int64_t width = a->width / a->how.heads;
	if (s.rank != 2 || s.dim[1] != a->width)
		return chi_export_refuse(
				l, e, x, "self_attention needs [positions, %" PRId64 "]", a->width);
	const int qkv = chi_export_dense(e, CHOIR_LINEAR, x, l->variable[IN], l->variable[IN_BIAS]);
	const int y = chi_export_call(e, CHI_C_ATTENTION, qkv, s,
			", %" PRId64 ", %" PRId64 ", %d, %.9ef", a->how.heads, width,
			a->how.causal == CHOIR_ON, (double) (float) (1 / sqrt((double) width)));
	return chi_export_dense(e, CHOIR_LINEAR, chi_export_work(e, y, width + s.dim[0]),
			l->variable[OUT], l->variable[OUT_BIAS]);
}

static const chi_layer_kind kind = {
	.name = "self_attention", .sequences = true, .apply = apply, .describe = describe
};

static choir_status make_weights(choir_layer *l, int64_t width)
{
	const choir_variable_options o = { .size = sizeof o,
		.initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM };
	CHOIR_TRY(chi_layer_make_variable(l, "qkv/kernel", CHOIR_SHAPE(width, 3 * width), &o));
	CHOIR_TRY(chi_layer_make_variable(l, "qkv/bias", CHOIR_SHAPE(3 * width), NULL));
	CHOIR_TRY(chi_layer_make_variable(l, "output/kernel", CHOIR_SHAPE(width, width), &o));
	return chi_layer_make_variable(l, "output/bias", CHOIR_SHAPE(width), NULL);
}

choir_layer *choir_self_attention_new(
		const char *name, int64_t width, int64_t heads, choir_toggle causal)
{
	if (chi_layer_check("self_attention", name, true, CHOIR_LINEAR) != CHOIR_OK)
		return NULL;
	if (width < 1 || width > INT64_MAX / 3 || heads < 1 || width % heads != 0 ||
			(unsigned) causal > CHOIR_OFF)
		return chi_fail_null(CHOIR_INVALID,
				"layer \"%s\": self_attention of width %" PRId64 " with %" PRId64 " heads and "
				"causal %d; heads that divide the width, and CHOIR_ON or CHOIR_OFF are needed",
				name, width, heads, (int) causal);
	attention *a = (attention *) chi_layer_new(sizeof *a, &kind, name);
	if (a == NULL)
		return NULL;
	a->width = width;
	a->how = (choir_attention_options){ .size = sizeof a->how, .heads = heads, .causal = causal };
	chi_layer_set(&a->layer, "%lld heads, causal %d", (long long) heads, (int) causal);
	return chi_layer_finish(&a->layer, make_weights(&a->layer, width));
}
