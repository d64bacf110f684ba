// Cumulative sums.
#include "base/options.h"
#include "op/op.h"

static choir_tensor *cumsum(choir_tensor *x, const choir_cumsum_attributes *a);

static choir_status cumsum_backward(const chi_node *node, const chi_backward *g)
{
	choir_cumsum_attributes back = *(const choir_cumsum_attributes *) node->attributes;

	back.reverse = !back.reverse;
	g->gradient[0] = cumsum(g->dy, &back);
	return CHOIR_OK;
}

static const chi_op cumsum_op = {
	.name = "cumsum",
	.attribute_bytes = sizeof(choir_cumsum_attributes),
	.backward = cumsum_backward,
};

static choir_tensor *cumsum(choir_tensor *x, const choir_cumsum_attributes *a)
{
	return chi_op_call(&cumsum_op, NULL, 1, &x, a);
}

choir_tensor *choir_cumsum(choir_tensor *x, int axis, const choir_cumsum_options *o)
{
	choir_cumsum_options all;

	if (!x)
		return chi_frame_null_argument(NULL, "cumsum");
	choir_status status = chi_options_take("cumsum: the options'", &all, sizeof all, o);
	if (status == CHOIR_OK &&
			((unsigned) all.exclusive > CHOIR_OFF || (unsigned) all.reverse > CHOIR_OFF))
		status = choir_fail(CHOIR_INVALID,
				"cumsum: exclusive %d or reverse %d is invalid; CHOIR_ON or CHOIR_OFF is needed",
				(int) all.exclusive, (int) all.reverse);
	if (status != CHOIR_OK)
		return chi_frame_record_null(x->frame);
	const choir_cumsum_attributes a = { chi_axis_of("cumsum", x, axis), all.exclusive == CHOIR_ON,
		all.reverse == CHOIR_ON };
	return a.axis == CHOIR_NONE ? NULL : cumsum(x, &a);
}

choir_tensor *chi_count_up(choir_frame *f, int64_t n)
{
	const choir_cumsum_attributes a = { 0, true, false };
	choir_tensor *ones = choir_fill(f, CHOIR_I64, CHOIR_SHAPE(n), 1);
	return ones ? cumsum(ones, &a) : NULL;
}
