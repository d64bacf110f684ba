// Pad, tile and flip, mostly made of other operations.
#include "base/options.h"
#include "base/size.h"
#include "op/op.h"

#include <inttypes.h>

static choir_status flip_backward(const chi_node *node, const chi_backward *g)
{
	const choir_flip_attributes *a = node->attributes;

	g->gradient[0] = choir_flip(g->dy, a->axis);
	return CHOIR_OK;
}

static const chi_op flip_op = {
	.name = "flip",
	.attribute_bytes = sizeof(choir_flip_attributes),
	.backward = flip_backward,
};

choir_tensor *choir_flip(choir_tensor *x, int axis)
{
	if (!x)
		return chi_frame_null_argument(NULL, "flip");
	const choir_flip_attributes a = { chi_axis_of("flip", x, axis) };
	return a.axis == CHOIR_NONE ? NULL : chi_op_call(&flip_op, NULL, 1, &x, &a);
}

static choir_tensor *constant(const choir_tensor *x, int axis, int64_t count, double value)
{
	choir_shape shape = x->shape;
	shape.dim[axis] = count;
	return count > 0 ? choir_fill(x->frame, x->dtype, shape, value) : NULL;
}

static choir_tensor *mirrored(choir_tensor *x, int axis, int64_t first, int64_t count)
{
	return count > 0 ? choir_flip(choir_slice(x, axis, first, count), axis) : NULL;
}

static choir_tensor *pad_axis(
		choir_tensor *x, int axis, int64_t before, int64_t after, const choir_pad_options *o)
{
	const int64_t n = x->shape.dim[axis];
	const bool reflect = o->mode == CHOIR_PAD_REFLECT;
	choir_tensor *parts[3];
	size_t count = 0;
	choir_tensor *left =
			reflect ? mirrored(x, axis, 1, before) : constant(x, axis, before, o->value);
	choir_tensor *right =
			reflect ? mirrored(x, axis, n - 1 - after, after) : constant(x, axis, after, o->value);

	if ((before > 0 && !left) || (after > 0 && !right))
		return NULL;
	if (left)
		parts[count++] = left;
	parts[count++] = x;
	if (right)
		parts[count++] = right;
	return count > 1 ? choir_concat(count, parts, axis) : x;
}

static choir_status check_pad(const choir_tensor *x, const int64_t before[], const int64_t after[],
		const choir_pad_options *o)
{
	char text[CHI_SHAPE_TEXT];

	if ((unsigned) o->mode > CHOIR_PAD_REFLECT)
		return choir_fail(
				CHOIR_INVALID, "mode %d is unknown; known: CONSTANT and REFLECT", (int) o->mode);
	for (int i = 0; i < x->shape.rank; i++) {
		const int64_t limit = o->mode == CHOIR_PAD_REFLECT ? x->shape.dim[i] - 1 : INT64_MAX / 4;
		if (before[i] < 0 || after[i] < 0 || before[i] > limit || after[i] > limit)
			if (before[i] != 0 || after[i] != 0)
				return choir_fail(CHOIR_INVALID,
						"%" PRId64 " elements before and %" PRId64 " after axis %d of %s; 0 or "
						"more are needed, and fewer than the axis has for REFLECT",
						before[i], after[i], i, chi_shape_print(&x->shape, text));
	}
	return CHOIR_OK;
}

choir_tensor *choir_pad(
		choir_tensor *x, const int64_t before[], const int64_t after[], const choir_pad_options *o)
{
	choir_pad_options all;

	if (!x)
		return chi_frame_null_argument(NULL, "pad");
	choir_status status = chi_options_take("the options'", &all, sizeof all, o);
	if (status == CHOIR_OK)
		status = check_pad(x, before, after, &all);
	if (status != CHOIR_OK)
		return chi_op_failed(x->frame, "pad");
	for (int i = 0, rank = x->shape.rank; x && i < rank; i++)
		x = pad_axis(x, i, before[i], after[i], &all);
	return x;
}

static choir_tensor *tile_axis(choir_tensor *x, int axis, int64_t repeats)
{
	choir_shape tiled = x->shape;
	int64_t outer = 1, rest = 1;

	if (repeats == 1)
		return x;
	if (repeats < 0 || !chi_int64_multiply(tiled.dim[axis], repeats, &tiled.dim[axis]))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"tile: %" PRId64 " repeats of axis %d; 0 or more are needed, and a size that fits",
				repeats, axis);
	for (int i = 0; i < axis; i++)
		outer *= x->shape.dim[i];
	for (int i = axis; i < x->shape.rank; i++)
		rest *= x->shape.dim[i];
	choir_tensor *once = choir_reshape(x, CHOIR_SHAPE(outer, 1, rest));
	choir_tensor *often = chi_broadcast_to(once, &CHOIR_SHAPE(outer, repeats, rest));
	return often ? choir_reshape(often, tiled) : NULL;
}

choir_tensor *choir_tile(choir_tensor *x, const int64_t repeats[])
{
	if (!x)
		return chi_frame_null_argument(NULL, "tile");
	for (int i = 0, rank = x->shape.rank; x && i < rank; i++)
		x = tile_axis(x, i, repeats[i]);
	return x;
}
