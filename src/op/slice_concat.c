// Slices, splits, concatenation and stacks. Contiguous results are views.
#include "base/size.h"
#include "op/tape/tape.h"

#include <inttypes.h>

int chi_axis_of(const char *name, choir_tensor *x, int axis)
{
	const int resolved = axis < 0 ? axis + x->shape.rank : axis;
	char text[CHI_SHAPE_TEXT];

	if (resolved >= 0 && resolved < x->shape.rank)
		return resolved;
	chi_frame_fail(x->frame, CHOIR_INVALID, "%s: %s has no axis %d", name,
			chi_shape_print(&x->shape, text), axis);
	return CHOIR_NONE;
}

typedef struct {
	choir_slice_attributes kernel;
	int64_t count;
} slice;

static choir_status infer_slice(chi_result *r)
{
	const slice *s = r->attributes;

	r->shape.dim[s->kernel.axis] = s->count;
	return CHOIR_OK;
}

// Each is the other's gradient.
static choir_status slice_gradient_backward(const chi_node *node, const chi_backward *g)
{
	const slice *s = node->attributes;
	const int axis = s->kernel.axis;

	g->gradient[0] = choir_slice(g->dy, axis, s->kernel.first, node->in[0]->shape.dim[axis]);
	return CHOIR_OK;
}

static const chi_op slice_gradient_op = {
	.name = "slice_gradient",
	.attribute_bytes = sizeof(slice),
	.infer = infer_slice,
	.backward = slice_gradient_backward,
};

static choir_status slice_backward(const chi_node *node, const chi_backward *g)
{
	slice whole = *(const slice *) node->attributes;

	whole.count = node->in[0]->shape.dim[whole.kernel.axis];
	g->gradient[0] = chi_op_call(&slice_gradient_op, g->dy->frame, 1, &g->dy, &whole);
	return CHOIR_OK;
}

static const chi_op slice_op = {
	.name = "slice",
	.attribute_bytes = sizeof(slice),
	.infer = infer_slice,
	.backward = slice_backward,
};

static choir_tensor *slice_view(choir_tensor *x, const slice *s)
{
	choir_shape rest = x->shape, result = x->shape;

	rest.rank -= s->kernel.axis;
	for (int i = 0; i < rest.rank; i++)
		rest.dim[i] = x->shape.dim[i + s->kernel.axis];
	result.dim[s->kernel.axis] = s->count;
	choir_tensor *flat = chi_tensor_reshape(x, &rest);
	choir_tensor *rows = flat ? chi_tensor_rows(x->frame, flat, s->kernel.first, s->count) : NULL;
	return rows ? chi_op_record(&slice_op, 1, &x, s, chi_tensor_reshape(rows, &result)) : NULL;
}

choir_tensor *choir_slice(choir_tensor *x, int axis, int64_t first, int64_t count)
{
	char text[CHI_SHAPE_TEXT];
	int64_t end;

	if (!x)
		return chi_frame_null_argument(NULL, "slice");
	const slice s = { { chi_axis_of("slice", x, axis), first }, count };
	if (s.kernel.axis == CHOIR_NONE || chi_tensor_check(x) != CHOIR_OK)
		return NULL;
	if (first < 0 || count < 0 || !chi_int64_add(first, count, &end) ||
			end > x->shape.dim[s.kernel.axis])
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"slice: %" PRId64 " elements from %" PRId64 " on along axis %d are not within %s",
				count, first, axis, chi_shape_print(&x->shape, text));
	for (int i = 0; i < s.kernel.axis; i++)
		if (x->shape.dim[i] != 1)
			return chi_op_call(&slice_op, NULL, 1, &x, &s);
	return slice_view(x, &s);
}

choir_status choir_split(choir_tensor *x, int axis, size_t n, choir_tensor *parts[])
{
	char text[CHI_SHAPE_TEXT];

	for (size_t i = 0; i < n; i++)
		parts[i] = NULL;
	if (!x)
		return chi_frame_status(NULL);
	const int resolved = chi_axis_of("split", x, axis);
	if (resolved == CHOIR_NONE)
		return CHOIR_INVALID;
	const int64_t all = x->shape.dim[resolved];
	if (n == 0 || all % (int64_t) n != 0)
		return chi_frame_fail(x->frame, CHOIR_INVALID,
				"split: axis %d of %s does not divide into %zu equal parts", axis,
				chi_shape_print(&x->shape, text), n);
	const int64_t size = all / (int64_t) n;
	for (size_t i = 0; i < n; i++) {
		parts[i] = choir_slice(x, resolved, (int64_t) i * size, size);
		CHOIR_TRY(chi_frame_made(x->frame, parts[i]));
	}
	return CHOIR_OK;
}

static choir_status infer_concat(chi_result *r)
{
	const choir_slice_attributes *a = r->attributes;
	char text[2][CHI_SHAPE_TEXT];

	for (size_t k = 1; k < r->n; k++) {
		const choir_shape *s = &r->in[k]->shape;
		bool fits = s->rank == r->shape.rank;
		for (int i = 0; i < s->rank && fits; i++)
			fits = i == a->axis || s->dim[i] == r->shape.dim[i];
		if (!fits || r->in[k]->dtype != r->dtype)
			return choir_fail(CHOIR_INVALID, "%s %s and %s %s do not fit along axis %d",
					choir_dtype_name(r->dtype), chi_shape_print(&r->in[0]->shape, text[0]),
					choir_dtype_name(r->in[k]->dtype), chi_shape_print(s, text[1]), a->axis);
		if (!chi_int64_add(r->shape.dim[a->axis], s->dim[a->axis], &r->shape.dim[a->axis]))
			return choir_fail(CHOIR_INVALID, "too many elements along axis %d", a->axis);
	}
	return CHOIR_OK;
}

static choir_status concat_backward(const chi_node *node, const chi_backward *g)
{
	const choir_slice_attributes *a = node->attributes;
	int64_t first = 0;

	for (size_t k = 0; k < node->n; k++) {
		const int64_t count = node->in[k]->shape.dim[a->axis];
		if (g->want[k])
			g->gradient[k] = choir_slice(g->dy, a->axis, first, count);
		first += count;
	}
	return CHOIR_OK;
}

static choir_status concat_forward(const chi_node *node)
{
	choir_tensor *filled[CHI_MAX_INPUTS];
	choir_buffer in[CHI_MAX_INPUTS];
	size_t n = 0;

	for (size_t k = 0; k < node->n; k++)
		if (choir_shape_elements(&node->in[k]->shape) > 0)
			filled[n++] = node->in[k];
	for (size_t k = 0; k < n; k++)
		in[k] = (choir_buffer){ filled[k]->data, filled[k]->dtype, filled[k]->shape };
	choir_buffer out = { node->out->data, node->out->dtype, node->out->shape };
	return n ? chi_kernel_run(node->out->frame->stream, "concat", n, in, &out, node->attributes)
			 : CHOIR_OK;
}

static const chi_op concat_op = {
	.name = "concat",
	.attribute_bytes = sizeof(choir_slice_attributes),
	.infer = infer_concat,
	.backward = concat_backward,
	.forward = concat_forward,
};

choir_tensor *choir_concat(size_t n, choir_tensor *const tensors[], int axis)
{
	if (n == 0 || !tensors[0])
		return chi_frame_null_argument(NULL, "concat");
	choir_frame *f = tensors[0]->frame;
	choir_slice_attributes a = { .axis = chi_axis_of("concat", tensors[0], axis) };
	if (a.axis == CHOIR_NONE)
		return NULL;
	choir_tensor *in[CHI_MAX_INPUTS], *head = tensors[0];
	for (size_t done = 1; done < n || done == 1;) {
		size_t count = 0;
		in[count++] = head;
		while (count < CHI_MAX_INPUTS && done < n)
			in[count++] = tensors[done++];
		head = chi_op_call(&concat_op, f, count, in, &a);
		if (!head || done >= n)
			break;
	}
	return head;
}

choir_tensor *choir_stack(size_t n, choir_tensor *const tensors[], int axis)
{
	char text[CHI_SHAPE_TEXT];

	if (n == 0 || !tensors[0])
		return chi_frame_null_argument(NULL, "stack");
	choir_frame *f = tensors[0]->frame;
	choir_shape shape = tensors[0]->shape;
	const int at = axis < 0 ? axis + shape.rank + 1 : axis;
	if (at < 0 || at > shape.rank || shape.rank == CHOIR_MAX_RANK)
		return chi_frame_fail_null(f, CHOIR_INVALID, "stack: %s cannot get a new axis %d",
				chi_shape_print(&shape, text), axis);
	choir_tensor **in = chi_arena_alloc(&f->arena, n * sizeof *in);
	if (!in)
		return chi_frame_record_null(f);
	for (int i = shape.rank++; i > at; i--)
		shape.dim[i] = shape.dim[i - 1];
	shape.dim[at] = 1;
	for (size_t i = 0; i < n; i++)
		if (!(in[i] = choir_reshape(tensors[i], shape)))
			return NULL;
	return choir_concat(n, in, at);
}
