// Pooling layers, and flatten.
#include "base/size.h"
#include "train/layer/layer.h"

#include <inttypes.h>

typedef struct {
	choir_layer layer; // first
	int size, stride;
	choir_tensor *(*pool)(choir_tensor *x, int size, int stride, int padding);
} pool2d;

static choir_tensor *apply_pool(choir_layer *l, choir_tensor *x)
{
	const pool2d *p = (const pool2d *) l;
	const choir_shape *s = &x->shape;
	char got[CHI_SHAPE_TEXT];
	if (s->rank != 4 || s->dim[1] < p->size || s->dim[2] < p->size)
		return chi_layer_fail(l, x,
				"needs images [n, h, w, c] of at least %d by %d pixels; the input is %s", p->size,
				p->size, chi_shape_print(s, got));
	return p->pool(x, p->size, p->stride, 0);
}

static int describe_pool(choir_layer *l, chi_export *e, int x)
{
	const pool2d *p = (const pool2d *) l;
	const choir_shape *s = chi_export_shape(e, x);
	if (s->rank != 3 || s->dim[0] < p->size || s->dim[1] < p->size)
		return chi_export_refuse(
				l, e, x, "needs an image [h, w, c] of at least %d by %d pixels", p->size, p->size);
	const int64_t h = (s->dim[0] - p->size) / p->stride + 1;
	const int64_t w = (s->dim[1] - p->size) / p->stride + 1;
	return chi_export_call(e,
			p->pool == choir_max_pool2d ? CHI_C_MAX_POOL2D : CHI_C_AVERAGE_POOL2D, x,
			CHOIR_SHAPE(h, w, s->dim[2]), ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %d, %d",
			s->dim[0], s->dim[1], s->dim[2], p->size, p->stride);
}

static const chi_layer_kind max_kind = {
	.name = "max_pool2d", .apply = apply_pool, .maximum = true, .describe = describe_pool
};
static const chi_layer_kind average_kind = {
	.name = "average_pool2d", .apply = apply_pool, .describe = describe_pool
};

static choir_layer *pool_new(const chi_layer_kind *kind, int size, int stride,
		choir_tensor *(*pool)(choir_tensor *x, int size, int stride, int padding))
{
	if (size < 1 || stride < 0) {
		choir_fail(CHOIR_INVALID,
				"layer: %s of size %d and stride %d; 1 or "
				"more is needed, or stride 0 for the size",
				kind->name, size, stride);
		return NULL;
	}
	pool2d *p = (pool2d *) chi_layer_new(sizeof *p, kind, NULL);
	if (p == NULL)
		return NULL;
	p->size = size;
	p->stride = stride == 0 ? size : stride;
	p->pool = pool;
	chi_layer_set(&p->layer, "size %d, stride %d", size, p->stride);
	return chi_layer_finish(&p->layer, CHOIR_OK);
}

choir_layer *choir_max_pool2d_new(int size, int stride)
{
	return pool_new(&max_kind, size, stride, choir_max_pool2d);
}

choir_layer *choir_average_pool2d_new(int size, int stride)
{
	return pool_new(&average_kind, size, stride, choir_average_pool2d);
}

static choir_tensor *apply_global(choir_layer *l, choir_tensor *x)
{
	char got[CHI_SHAPE_TEXT];
	if (x->shape.rank != 4)
		return chi_layer_fail(l, x, "needs images [n, h, w, c]; the input is %s",
				chi_shape_print(&x->shape, got));
	return choir_mean(x, CHOIR_AXIS(1) | CHOIR_AXIS(2));
}

static int describe_global(choir_layer *l, chi_export *e, int x)
{
	const choir_shape *s = chi_export_shape(e, x);
	if (s->rank != 3)
		return chi_export_refuse(l, e, x, "needs an image [h, w, c]");
	return chi_export_call(
			e, CHI_C_MEAN_PIXELS, x, CHOIR_SHAPE(s->dim[2]), ", %" PRId64, s->dim[2]);
}

static const chi_layer_kind global_kind = {
	.name = "global_average_pool2d", .apply = apply_global, .describe = describe_global
};

choir_layer *choir_global_average_pool2d_new(void)
{
	return chi_layer_finish(chi_layer_new(sizeof(choir_layer), &global_kind, NULL), CHOIR_OK);
}

static choir_tensor *apply_flatten(choir_layer *l, choir_tensor *x)
{
	if (x->shape.rank < 1)
		return chi_layer_fail(l, x, "needs [n, ...]; the input is a scalar");
	choir_shape flat = { 2, { x->shape.dim[0], 1 } }; // as n may be 0
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

static const chi_layer_kind flatten_kind = {
	.name = "flatten", .apply = apply_flatten, .describe = describe_flatten
};

choir_layer *choir_flatten_new(void)
{
	return chi_layer_finish(chi_layer_new(sizeof(choir_layer), &flatten_kind, NULL), CHOIR_OK);
}
