// The convolution layer.
#include "train/layer.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
	choir_layer layer; // first
	int64_t in;
	int kernel, stride, padding;
	choir_activation activation;
} conv2d;

static choir_tensor *apply(choir_layer *l, choir_tensor *x)
{
	const conv2d *c = (const conv2d *) l;
	const choir_shape *s = &x->shape;
	char got[CHI_SHAPE_TEXT];
	int pad[2];
	int64_t out;
	if (s->rank != 4 || s->dim[3] != c->in)
		return chi_layer_fail(l, x, "conv2d needs [n, h, w, %" PRId64 "], got %s", c->in,
				chi_shape_print(s, got));
	for (int axis = 1; axis <= 2; axis++)
		if (!chi_windows(s->dim[axis], c->kernel, c->stride, c->padding, pad, &out))
			return chi_layer_fail(l, x,
					"conv2d of %d by %d pixels with %d of padding does not fit "
					"images %s",
					c->kernel, c->kernel, c->padding, chi_shape_print(s, got));
	choir_tensor *kernel = choir_variable_read(l->variable[0], x->frame);
	choir_tensor *bias = choir_variable_read(l->variable[1], x->frame);
	if (kernel == NULL || bias == NULL)
		return NULL;
	return chi_layer_rest(c->activation, chi_conv2d(x, kernel, bias, c->stride, c->padding,
			chi_layer_fused(c->activation)));
}

static const chi_layer_kind kind = { .name = "conv2d", .apply = apply };

static choir_status check(const char *name, int64_t in, int64_t out, int kernel,
		const choir_conv2d_options *o)
{
	CHOIR_TRY(chi_layer_check("conv2d", name, true, o->activation));
	if (in < 1 || out < 1 || kernel < 1)
		return choir_fail(CHOIR_INVALID, "layer \"%s\": conv2d from %" PRId64 " to %" PRId64
				" channels by %d pixels: all must be 1 or more", name, in, out, kernel);
	if (o->stride < 0)
		return choir_fail(CHOIR_INVALID,
				"layer \"%s\": stride %d: 1 or more is needed, or 0 for 1", name, o->stride);
	if (o->padding < CHOIR_NONE)
		return choir_fail(CHOIR_INVALID,
				"layer \"%s\": padding %d: 0 or more pixels are needed, or "
				"CHOIR_NONE for SAME",
				name, o->padding);
	return CHOIR_OK;
}

choir_layer *choir_conv2d_new(const char *name, int64_t in, int64_t out, int kernel,
		const choir_conv2d_options *o)
{
	choir_conv2d_options all = { .size = sizeof all };
	if (o != NULL && (o->size < sizeof(size_t) || o->size > sizeof all)) {
		choir_fail(CHOIR_INVALID, "layer \"%s\": the options' size is %zu, not %zu: set it with "
				"CHOIR_OPTIONS", name == NULL ? "conv2d" : name, o->size, sizeof all);
		return NULL;
	}
	if (o != NULL)
		memcpy(&all, o, o->size);
	if (check(name, in, out, kernel, &all) != CHOIR_OK)
		return NULL;
	conv2d *c = (conv2d *) chi_layer_new(sizeof *c, &kind, name);
	if (c == NULL)
		return NULL;
	c->in = in;
	c->kernel = kernel;
	c->stride = all.stride == 0 ? 1 : all.stride;
	c->padding = all.padding;
	c->activation = all.activation;
	return chi_layer_finish(&c->layer,
			chi_layer_make_weights(&c->layer, &CHOIR_SHAPE(kernel, kernel, in, out)));
}
