// Pooling layers.
#include "op/nn/nn.h"
#include "train/layer/layer.h"

#include <inttypes.h>

typedef choir_tensor *pool_fn(choir_tensor *x, int size, int stride, int padding);

typedef struct {
	chi_layer_kind kind;
	int axes;
	pool_fn *pool;
	const char *needs;
} pool_kind;

typedef struct {
	choir_layer layer;
	int size, stride, padding;
} pool;

static int fewest(const pool *p)
{
	return p->padding < 0 || p->size <= 2 * p->padding ? 1 : p->size - 2 * p->padding;
}

static choir_tensor *apply_pool(choir_layer *l, choir_tensor *x)
{
	const pool *p = (const pool *) l;
	const pool_kind *k = (const pool_kind *) l->kind;
	const choir_shape *s = &x->shape;
	char got[CHI_SHAPE_TEXT];
	bool fits = s->rank == k->axes + 2;
	for (int i = 1; i <= k->axes && fits; i++)
		fits = s->dim[i] >= fewest(p);
	if (!fits)
		return chi_layer_fail(l, x, "needs %s of at least %d by %d pixels; the input is %s",
				k->needs, fewest(p), fewest(p), chi_shape_print(s, got));
	return k->pool(x, p->size, p->stride, p->padding);
}

static int describe_pool(choir_layer *l, chi_export *e, int x)
{
	const pool *p = (const pool *) l;
	const choir_shape *s = chi_export_shape(e, x);
	int rows[2], columns[2];
	int64_t h, w;
	if (s->rank != 3 || s->dim[0] < 1 || s->dim[1] < 1 ||
			!chi_windows(s->dim[0], p->size, p->stride, p->padding, rows, &h) ||
			!chi_windows(s->dim[1], p->size, p->stride, p->padding, columns, &w))
		return chi_export_refuse(l, e, x, "needs an image [h, w, c] of at least %d by %d pixels",
				fewest(p), fewest(p));
	return chi_export_call(e, l->kind->maximum ? CHI_C_MAX_POOL2D : CHI_C_AVERAGE_POOL2D, x,
			CHOIR_SHAPE(h, w, s->dim[2]),
			", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %d, %d, %d, %d",
			s->dim[0], s->dim[1], h, w, s->dim[2], p->size, p->stride, rows[0], columns[0]);
}

#define IMAGES "images [n, h, w, c]"
static const pool_kind max_1d = { { .name = "max_pool1d", .apply = apply_pool, .maximum = true },
	1, choir_max_pool1d, "sequences [n, w, c]" };
static const pool_kind max_2d = {
	{ .name = "max_pool2d", .apply = apply_pool, .maximum = true, .describe = describe_pool }, 2,
	choir_max_pool2d, IMAGES
};
static const pool_kind max_3d = { { .name = "max_pool3d", .apply = apply_pool, .maximum = true },
	3, choir_max_pool3d, "volumes [n, d, h, w, c]" };
static const pool_kind average_1d = { { .name = "average_pool1d", .apply = apply_pool }, 1,
	choir_average_pool1d, "sequences [n, w, c]" };
static const pool_kind average_2d = {
	{ .name = "average_pool2d", .apply = apply_pool, .describe = describe_pool }, 2,
	choir_average_pool2d, IMAGES
};
static const pool_kind average_3d = { { .name = "average_pool3d", .apply = apply_pool }, 3,
	choir_average_pool3d, "volumes [n, d, h, w, c]" };

static choir_layer *pool_new(const pool_kind *kind, int size, int stride, int padding)
{
	if (size < 1 || stride < 0 || padding < CHOIR_PADDING_SAME || padding >= size)
		return chi_fail_null(CHOIR_INVALID,
				"layer: %s of size %d, stride %d and padding %d; a size of 1 or more is needed, a "
				"stride of 1 or more, or 0 for the size, and a padding below the size, or SAME",
				kind->kind.name, size, stride, padding);
	pool *p = (pool *) chi_layer_new(sizeof *p, &kind->kind, NULL);
	if (p == NULL)
		return NULL;
	p->size = size;
	p->stride = stride == 0 ? size : stride;
	p->padding = padding;
	chi_layer_set(&p->layer, "size %d, stride %d, padding %d", size, p->stride, padding);
	return chi_layer_finish(&p->layer, CHOIR_OK);
}

choir_layer *choir_max_pool1d_new(int size, int stride, int padding)
{
	return pool_new(&max_1d, size, stride, padding);
}

choir_layer *choir_max_pool2d_new(int size, int stride, int padding)
{
	return pool_new(&max_2d, size, stride, padding);
}

choir_layer *choir_max_pool3d_new(int size, int stride, int padding)
{
	return pool_new(&max_3d, size, stride, padding);
}

choir_layer *choir_average_pool1d_new(int size, int stride, int padding)
{
	return pool_new(&average_1d, size, stride, padding);
}

choir_layer *choir_average_pool2d_new(int size, int stride, int padding)
{
	return pool_new(&average_2d, size, stride, padding);
}

choir_layer *choir_average_pool3d_new(int size, int stride, int padding)
{
	return pool_new(&average_3d, size, stride, padding);
}

static choir_tensor *apply_global(choir_layer *l, choir_tensor *x)
{
	char got[CHI_SHAPE_TEXT];
	if (x->shape.rank != 4)
		return chi_layer_fail(l, x, "needs images [n, h, w, c]; the input is %s",
				chi_shape_print(&x->shape, got));
	return choir_mean(x, CHOIR_AXES(1, 2));
}

static int describe_global(choir_layer *l, chi_export *e, int x)
{
	const choir_shape *s = chi_export_shape(e, x);
	if (s->rank != 3)
		return chi_export_refuse(l, e, x, "needs an image [h, w, c]");
	return chi_export_call(
			e, CHI_C_MEAN_PIXELS, x, CHOIR_SHAPE(s->dim[2]), ", %" PRId64, s->dim[2]);
}

static const chi_layer_kind global_kind = { .name = "global_average_pool2d",
	.image = CHI_IMAGE_ENDED,
	.apply = apply_global,
	.describe = describe_global };

choir_layer *choir_global_average_pool2d_new(void)
{
	return chi_layer_finish(chi_layer_new(sizeof(choir_layer), &global_kind, NULL), CHOIR_OK);
}

static choir_tensor *apply_global_max(choir_layer *l, choir_tensor *x)
{
	(void) l;
	return choir_global_max_pool(x);
}

// Of time steps; a sequence without any gives zeros.
static choir_tensor *average_of(choir_tensor *x, choir_tensor *lengths)
{
	x->frame->lengths = NULL;
	choir_tensor *one = choir_number(x->frame, 1);
	choir_tensor *n = choir_cast(choir_maximum(choir_cast(lengths, CHOIR_I64), one), x->dtype);
	choir_tensor *sum = choir_sum(choir_zero_padding(x, lengths), CHOIR_AXIS(1));
	return n == NULL ? NULL : choir_divide(sum, choir_reshape(n, CHOIR_SHAPE(n->shape.dim[0], 1)));
}

static choir_tensor *apply_global_average(choir_layer *l, choir_tensor *x)
{
	char got[CHI_SHAPE_TEXT];
	if (x->frame->lengths == NULL)
		return choir_global_average_pool(x);
	if (x->shape.rank != 3)
		return chi_layer_fail(l, x, "%s needs sequences [n, timesteps, c]; the input is %s",
				l->kind->name, chi_shape_print(&x->shape, got));
	return average_of(x, x->frame->lengths);
}

static const chi_layer_kind global_max_kind = {
	.name = "global_max_pool", .image = CHI_IMAGE_ENDED, .apply = apply_global_max, .maximum = true
};
static const chi_layer_kind global_any_kind = { .name = "global_average_pool",
	.image = CHI_IMAGE_ENDED,
	.sequences = true,
	.apply = apply_global_average };

choir_layer *choir_global_max_pool_new(void)
{
	return chi_layer_finish(chi_layer_new(sizeof(choir_layer), &global_max_kind, NULL), CHOIR_OK);
}

choir_layer *choir_global_average_pool_new(void)
{
	return chi_layer_finish(chi_layer_new(sizeof(choir_layer), &global_any_kind, NULL), CHOIR_OK);
}
