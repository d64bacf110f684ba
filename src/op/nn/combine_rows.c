// Rows times weights, summed and divided.
#include "op/nn/nn.h"

static choir_tensor *checked(choir_tensor *rows, choir_tensor *weights)
{
	char text[2][CHI_SHAPE_TEXT];
	const choir_shape *r = &rows->shape, *w = &weights->shape;
	bool fits = r->rank == w->rank + 1 && w->rank > 0;
	for (int i = 0; fits && i < w->rank; i++)
		fits = r->dim[i] == w->dim[i];
	return fits ? rows
				: chi_frame_fail_null(rows->frame, CHOIR_INVALID,
						  "combine_rows: rows %s and weights %s do not fit; weights need the "
						  "shape of the rows without their last axis, and at least one axis",
						  chi_shape_print(r, text[0]), chi_shape_print(w, text[1]));
}

// A zero becomes 1: the root's gradient at 0 is infinite.
static choir_tensor *divisor(choir_tensor *weights, choir_combiner combiner)
{
	const bool root = combiner == CHOIR_COMBINER_SQRTN;
	choir_tensor *sum = choir_sum(root ? choir_square(weights) : weights, CHOIR_AXIS(-1));
	choir_tensor *is_zero = choir_subtract(choir_number(weights->frame, 1),
			choir_cast(choir_cast(choir_stop_gradient(sum), CHOIR_BOOL), weights->dtype));
	sum = choir_add(sum, is_zero);
	return root ? choir_sqrt(sum) : sum;
}

choir_tensor *choir_combine_rows(
		choir_tensor *rows, choir_tensor *weights, choir_combiner combiner)
{
	if (rows == NULL || weights == NULL)
		return chi_frame_null_argument(rows != NULL ? rows->frame
						: weights != NULL			? weights->frame
													: NULL,
				"combine_rows");
	if ((unsigned) combiner > CHOIR_COMBINER_SQRTN)
		return chi_frame_fail_null(rows->frame, CHOIR_INVALID,
				"combine_rows: combiner %d is unknown; known: MEAN, SUM and SQRTN",
				(int) combiner);
	if (chi_tensor_check(rows) != CHOIR_OK || chi_tensor_check(weights) != CHOIR_OK ||
			checked(rows, weights) == NULL)
		return NULL;
	const int last = weights->shape.rank;
	choir_shape line = rows->shape, one = rows->shape; // [.., 1, n] and [.., 1]
	line.dim[last - 1] = 1;
	line.dim[last] = weights->shape.dim[last - 1];
	one.rank = last;
	one.dim[last - 1] = 1;
	choir_shape combined = one;
	combined.dim[last - 1] = rows->shape.dim[last];
	choir_tensor *sum = choir_reshape(
			choir_matmul(choir_reshape(weights, line), rows, CHOIR_TRANSPOSED_NONE), combined);
	return combiner == CHOIR_COMBINER_SUM
			? sum
			: choir_divide(sum, choir_reshape(divisor(weights, combiner), one));
}
