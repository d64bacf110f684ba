// Jacobians and products with Hessians, by recorded backward passes.
#include "choir/op.h"
#include "op/tape/tape.h"

static choir_shape joined(const choir_shape *y, const choir_shape *x)
{
	choir_shape both = *y;
	for (int i = 0; i < x->rank; i++)
		both.dim[both.rank++] = x->dim[i];
	return both;
}

choir_tensor *choir_jacobian(choir_tape *tape, choir_tensor *y, choir_tensor *x)
{
	char text[2][CHI_SHAPE_TEXT];

	if (!tape || !y || !x)
		return chi_frame_null_argument(tape ? tape->frame : NULL, "jacobian");
	choir_frame *f = tape->frame;
	if (y->shape.rank + x->shape.rank > CHOIR_MAX_RANK)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"jacobian: y is %s and x %s; %d axes or fewer are possible for both",
				chi_shape_print(&y->shape, text[0]), chi_shape_print(&x->shape, text[1]),
				CHOIR_MAX_RANK);
	const choir_shape shape = joined(&y->shape, &x->shape);
	const int64_t n = choir_shape_elements(&y->shape);
	if (n == 0)
		return choir_fill(f, x->dtype, shape, 0);
	choir_tensor *flat = choir_reshape(y, CHOIR_SHAPE(n));
	choir_tensor **rows = chi_arena_alloc(&f->arena, (size_t) n * sizeof *rows);
	if (!rows)
		chi_frame_record_error(f);
	for (int64_t i = 0; rows && i < n; i++) {
		choir_tensor *one = flat ? choir_slice(flat, 0, i, 1) : NULL;
		if (!one || choir_tape_gradient_recorded(tape, one, 1, &x, &rows[i]) != CHOIR_OK)
			return NULL;
	}
	choir_tensor *all = rows ? choir_stack((size_t) n, rows, 0) : NULL;
	return all ? choir_reshape(all, shape) : NULL;
}

// The gradient of sum(gradient v), with v constant.
choir_status choir_hessian_vector_product(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *const vectors[], choir_tensor *products[])
{
	choir_tensor *sum = NULL;

	CHOIR_TRY(choir_tape_gradient_recorded(tape, y, n, sources, products));
	for (size_t i = 0; i < n; i++) {
		choir_tensor *v = vectors[i] ? choir_stop_gradient(vectors[i]) : NULL;
		choir_tensor *part = choir_sum(choir_multiply(products[i], v), CHOIR_ALL_AXES);
		sum = i == 0 ? part : choir_add(sum, part);
		products[i] = NULL;
	}
	if (!sum)
		return n == 0 ? CHOIR_OK : chi_frame_status(tape->frame);
	return choir_tape_gradient_recorded(tape, sum, n, sources, products);
}
