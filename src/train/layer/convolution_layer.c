// Layers for images, sequences and volumes.
#include "op/nn/nn.h"
#include "train/layer/layer.h"

#include <inttypes.h>

typedef struct {
	choir_layer layer;
	int64_t in, out;
	int kernel;
	choir_conv_options how;
} convolution;

static choir_tensor *convolve(
		choir_layer *l, choir_tensor *x, bool images, choir_activation activation)
{
	choir_conv_options how = ((const convolution *) l)->how;
	choir_tensor *kernel = choir_variable_read(l->variable[0], x->frame);
	choir_tensor *bias = l->variables > 1 ? choir_variable_read(l->variable[1], x->frame) : NULL;
	how.activation = activation;
	if (kernel == NULL || (l->variables > 1 && bias == NULL))
		return NULL;
	return images ? chi_conv2d(x, kernel, bias, &how) : chi_conv1d(x, kernel, bias, &how);
}

static choir_tensor *convolve_images(choir_layer *l, choir_tensor *x, choir_activation activation)
{
	const convolution *c = (const convolution *) l;
	const choir_shape *s = &x->shape;
	const choir_shape filter = CHOIR_SHAPE(c->kernel, c->kernel, c->in / c->how.groups, c->out);
	choir_conv2d_attributes attributes;
	choir_shape out;
	char got[CHI_SHAPE_TEXT];
	if (s->rank != 4 || s->dim[3] != c->in)
		return chi_layer_fail(l, x, "conv2d needs [n, h, w, %" PRId64 "]; the input is %s", c->in,
				chi_shape_print(s, got));
	if (chi_convolution_plan(s, &filter, &c->how, &attributes, &out) != CHOIR_OK)
		return chi_layer_fail(l, x,
				"conv2d of %d by %d pixels with padding %d does not fit images %s", c->kernel,
				c->kernel, c->how.padding, chi_shape_print(s, got));
	return convolve(l, x, true, activation);
}

static choir_tensor *apply_2d(choir_layer *l, choir_tensor *x)
{
	return convolve_images(l, x, ((const convolution *) l)->how.activation);
}

static choir_tensor *apply_2d_linear(choir_layer *l, choir_tensor *x)
{
	return convolve_images(l, x, CHOIR_LINEAR);
}

static choir_tensor *apply_1d(choir_layer *l, choir_tensor *x)
{
	const convolution *c = (const convolution *) l;
	const choir_shape *s = &x->shape;
	char got[CHI_SHAPE_TEXT];
	if (s->rank != 3 || s->dim[2] != c->in)
		return chi_layer_fail(l, x, "conv1d needs [n, w, %" PRId64 "]; the input is %s", c->in,
				chi_shape_print(s, got));
	return convolve(l, x, false, c->how.activation);
}

// result converts the shape back.
static int describe_images(choir_layer *l, chi_export *e, int x, const choir_shape *images,
		const choir_conv_options *how, choir_shape (*result)(const choir_shape *out))
{
	const convolution *c = (const convolution *) l;
	const bool row = l->kind->apply == apply_1d;
	const choir_shape filter =
			CHOIR_SHAPE(row ? 1 : c->kernel, c->kernel, c->in / how->groups, c->out);
	choir_conv2d_attributes a;
	choir_shape out;
	if (chi_convolution_plan(images, &filter, how, &a, &out) != CHOIR_OK)
		return chi_export_refuse(
				l, e, x, "%s of %d pixels does not fit", l->kind->name, c->kernel);
	const char *kernel = chi_export_variable(e, l->variable[0]);
	const char *bias = l->variables > 1 ? chi_export_variable(e, l->variable[1]) : "";
	if (kernel == NULL || bias == NULL)
		return CHOIR_NONE;
	const int y = chi_export_call(e, CHI_C_CONV2D, x, result(&out), ", %s.at, %s%s", kernel,
			l->variables > 1 ? bias : "NULL", l->variables > 1 ? ".at" : "");
	return chi_export_activate(e, how->activation,
			chi_export_how(e, y,
					"%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
					", %d, %d, %d, %d, %" PRId64 ", %d, %d",
					images->dim[1], images->dim[2], images->dim[3], out.dim[1], out.dim[2],
					out.dim[3], row ? 1 : c->kernel, c->kernel, a.stride, a.dilation, a.groups,
					a.top, a.left));
}

static choir_shape image_of(const choir_shape *out)
{
	return CHOIR_SHAPE(out->dim[1], out->dim[2], out->dim[3]);
}

static choir_shape sequence_of(const choir_shape *out)
{
	return CHOIR_SHAPE(out->dim[2], out->dim[3]);
}

static int describe_2d(choir_layer *l, chi_export *e, int x)
{
	const convolution *c = (const convolution *) l;
	const choir_shape *s = chi_export_shape(e, x);
	if (s->rank != 3 || s->dim[2] != c->in)
		return chi_export_refuse(l, e, x, "conv2d needs [h, w, %" PRId64 "]", c->in);
	return describe_images(
			l, e, x, &CHOIR_SHAPE(1, s->dim[0], s->dim[1], s->dim[2]), &c->how, image_of);
}

static int describe_1d(choir_layer *l, chi_export *e, int x)
{
	const convolution *c = (const convolution *) l;
	const choir_shape *s = chi_export_shape(e, x);
	choir_conv_options columns;
	if (s->rank != 2 || s->dim[1] != c->in || e->value[x].varies)
		return chi_export_refuse(
				l, e, x, "conv1d needs [w, %" PRId64 "] with a known number of positions", c->in);
	if (!chi_convolution_columns(&c->how, &columns))
		return chi_export_refuse(l, e, x, "conv1d has too much padding");
	return describe_images(
			l, e, x, &CHOIR_SHAPE(1, 1, s->dim[0], s->dim[1]), &columns, sequence_of);
}

static const chi_layer_kind kind_2d = { .name = "conv2d",
	.image = CHI_IMAGE_MADE,
	.apply = apply_2d,
	.apply_linear = apply_2d_linear,
	.describe = describe_2d };
static const chi_layer_kind kind_1d = {
	.name = "conv1d", .image = CHI_IMAGE_MADE, .apply = apply_1d, .describe = describe_1d
};

typedef struct {
	chi_layer_kind kind;
	int axes;
	bool transposed;
	choir_tensor *(*op)(choir_tensor *x, choir_tensor *filter, const choir_conv_options *o);
} unfused_kind;

static choir_tensor *apply_unfused(choir_layer *l, choir_tensor *x)
{
	const convolution *c = (const convolution *) l;
	const unfused_kind *k = (const unfused_kind *) l->kind;
	const choir_shape *s = &x->shape;
	char got[CHI_SHAPE_TEXT];
	if (s->rank != k->axes + 2 || s->dim[s->rank - 1] != c->in)
		return chi_layer_fail(l, x,
				"%s needs %d axes, of which the last is %" PRId64 "; the input is %s",
				l->kind->name, k->axes + 2, c->in, chi_shape_print(s, got));
	choir_conv_options how = c->how;
	how.activation = CHOIR_LINEAR;
	how.bias = CHOIR_DEFAULT;
	choir_tensor *y = k->op(x, choir_variable_read(l->variable[0], x->frame), &how);
	if (y != NULL && l->variables > 1)
		y = choir_bias_add(y, choir_variable_read(l->variable[1], x->frame));
	return chi_activation_apply(c->how.activation, y);
}

static const unfused_kind kind_3d = {
	{ .name = "conv3d", .image = CHI_IMAGE_MADE, .apply = apply_unfused }, 3, false, choir_conv3d
};
static const unfused_kind kind_2d_transpose = {
	{ .name = "conv2d_transpose", .image = CHI_IMAGE_MADE, .apply = apply_unfused }, 2, true,
	choir_conv2d_transpose
};
static const unfused_kind kind_1d_transpose = {
	{ .name = "conv1d_transpose", .image = CHI_IMAGE_MADE, .apply = apply_unfused }, 1, true,
	choir_conv1d_transpose
};

static const unfused_kind kind_3d_transpose = {
	{ .name = "conv3d_transpose", .image = CHI_IMAGE_MADE, .apply = apply_unfused }, 3, true,
	choir_conv3d_transpose
};

static choir_status check_sizes(const chi_layer_kind *kind, const char *name, int64_t in,
		int64_t out, int kernel, int64_t groups)
{
	if (in < 1 || out < 1 || kernel < 1)
		return choir_fail(CHOIR_INVALID,
				"layer \"%s\": %s from %" PRId64 " to %" PRId64 " "
				"channels by %d pixels; all must be 1 or more",
				name, kind->name, in, out, kernel);
	if (in % groups != 0 || out % groups != 0)
		return choir_fail(CHOIR_INVALID,
				"layer \"%s\": %" PRId64 " groups do not divide "
				"%" PRId64 " input and %" PRId64 " output channels",
				name, groups, in, out);
	return CHOIR_OK;
}

static choir_layer *make(const chi_layer_kind *kind, int axes, const char *name, int64_t in,
		int64_t out, int kernel, const choir_conv_options *o)
{
	choir_conv_options how;
	if (chi_layer_check(kind->name, name, true, CHOIR_LINEAR) != CHOIR_OK)
		return NULL;
	if (chi_convolution_options(o, axes, &how) != CHOIR_OK) {
		chi_error_prefix("layer \"%s\"", name);
		return NULL;
	}
	if (check_sizes(kind, name, in, out, kernel, how.groups) != CHOIR_OK)
		return NULL;
	convolution *c = (convolution *) chi_layer_new(sizeof *c, kind, name);
	if (c == NULL)
		return NULL;
	c->in = in;
	c->out = out;
	c->kernel = kernel;
	c->how = how;
	c->layer.channels = out;
	c->layer.rectifies = kind == &kind_2d && how.activation == CHOIR_RELU;
	chi_layer_set(&c->layer, "activation %s, stride %d, padding %d (%d %d, %d %d), dilation %d",
			chi_layer_activation(how.activation), how.stride, how.padding, how.pad_before[0],
			how.pad_after[0], how.pad_before[1], how.pad_after[1], how.dilation);
	return &c->layer;
}

static choir_layer *make_fused(const chi_layer_kind *kind, int axes, const char *name, int64_t in,
		int64_t out, int kernel, const choir_conv_options *o)
{
	choir_layer *l = make(kind, axes, name, in, out, kernel, o);
	if (l == NULL)
		return NULL;
	const choir_conv_options *how = &((const convolution *) l)->how;
	const choir_shape two = CHOIR_SHAPE(kernel, kernel, in / how->groups, out);
	const choir_shape one = CHOIR_SHAPE(kernel, in / how->groups, out);
	return chi_layer_finish(
			l, chi_layer_make_weights(l, axes == 2 ? &two : &one, how->bias != CHOIR_OFF));
}

static choir_status make_unfused_weights(choir_layer *l)
{
	const convolution *c = (const convolution *) l;
	const unfused_kind *k = (const unfused_kind *) l->kind;
	const choir_variable_options glorot = { .size = sizeof glorot,
		.initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM };
	choir_shape shape = { k->axes + 2, { 0 } };
	for (int i = 0; i < k->axes; i++)
		shape.dim[i] = c->kernel;
	shape.dim[k->axes] = (k->transposed ? c->out : c->in) / c->how.groups;
	shape.dim[k->axes + 1] = k->transposed ? c->in : c->out;
	CHOIR_TRY(chi_layer_make_variable(l, "kernel", shape, &glorot));
	return c->how.bias == CHOIR_OFF
			? CHOIR_OK
			: chi_layer_make_variable(l, "bias", CHOIR_SHAPE(c->out), NULL);
}

static choir_layer *make_unfused(const unfused_kind *kind, const char *name, int64_t in,
		int64_t out, int kernel, const choir_conv_options *o)
{
	choir_layer *l = make(&kind->kind, kind->axes, name, in, out, kernel, o);
	return l == NULL ? NULL : chi_layer_finish(l, make_unfused_weights(l));
}

choir_layer *choir_conv3d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o)
{
	return make_unfused(&kind_3d, name, in, out, kernel, o);
}

choir_layer *choir_conv2d_transpose_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o)
{
	return make_unfused(&kind_2d_transpose, name, in, out, kernel, o);
}

choir_layer *choir_conv1d_transpose_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o)
{
	return make_unfused(&kind_1d_transpose, name, in, out, kernel, o);
}

choir_layer *choir_conv3d_transpose_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o)
{
	return make_unfused(&kind_3d_transpose, name, in, out, kernel, o);
}

choir_layer *choir_conv2d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o)
{
	return make_fused(&kind_2d, 2, name, in, out, kernel, o);
}

choir_layer *choir_conv1d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o)
{
	return make_fused(&kind_1d, 1, name, in, out, kernel, o);
}
