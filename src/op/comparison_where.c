// Comparisons, logic, and where.
#include "op/op.h"

#include <math.h>

static choir_status infer_comparison(chi_result *r)
{
	CHOIR_TRY(chi_infer_binary(r));
	r->dtype = CHOIR_BOOL;
	return CHOIR_OK;
}

static choir_tensor *truth(choir_tensor *x)
{
	return x ? choir_cast(x, CHOIR_BOOL) : NULL;
}

#define COMPARISON(function, kernel, first, second) \
	choir_tensor *choir_##function(choir_tensor *a, choir_tensor *b) \
	{ \
		static const chi_op op = { #kernel, .label = #function, .infer = infer_comparison }; \
		choir_tensor *const in[] = { first, second }; \
		return chi_op_call(&op, NULL, 2, in, NULL); \
	}
COMPARISON(equal, equal, a, b)
COMPARISON(not_equal, not_equal, a, b)
COMPARISON(less, less, a, b)
COMPARISON(less_equal, less_equal, a, b)
COMPARISON(greater, less, b, a)
COMPARISON(greater_equal, less_equal, b, a)
COMPARISON(logical_and, logical_and, truth(a), truth(b))
COMPARISON(logical_or, logical_or, truth(a), truth(b))

choir_tensor *choir_logical_not(choir_tensor *x)
{
	return choir_equal(truth(x), x ? choir_number(x->frame, 0) : NULL);
}

choir_tensor *choir_is_finite(choir_tensor *x)
{
	if (!x)
		return chi_frame_null_argument(NULL, "is_finite");
	if (!chi_dtype_is_float(x->dtype))
		return choir_fill(x->frame, CHOIR_BOOL, x->shape, 1);
	if (x->dtype == CHOIR_F16 || x->dtype == CHOIR_BF16 || x->is_number)
		x = choir_cast(x, x->is_number ? CHOIR_F64 : CHOIR_F32);
	return x ? choir_less(choir_abs(x), choir_number(x->frame, INFINITY)) : NULL;
}

// Kernels take the condition last: the first input has the kernel's dtype.

static choir_status infer_where(chi_result *r)
{
	choir_shape both;

	if (r->in[0]->dtype != r->in[1]->dtype || r->in[2]->dtype != CHOIR_BOOL)
		return choir_fail(CHOIR_INVALID,
				"the dtypes are %s and %s, that of the condition is %s; twice the same, and bool, "
				"are needed",
				choir_dtype_name(r->in[0]->dtype), choir_dtype_name(r->in[1]->dtype),
				choir_dtype_name(r->in[2]->dtype));
	CHOIR_TRY(chi_broadcast_shapes(&r->in[0]->shape, &r->in[1]->shape, &both));
	return chi_broadcast_shapes(&both, &r->in[2]->shape, &r->shape);
}

static choir_status where_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *zero = choir_number(g->dy->frame, 0), *condition = node->in[2];

	if (g->want[0])
		g->gradient[0] = chi_sum_to(choir_where(condition, g->dy, zero), &node->in[0]->shape);
	if (g->want[1])
		g->gradient[1] = chi_sum_to(choir_where(condition, zero, g->dy), &node->in[1]->shape);
	return CHOIR_OK;
}

static const chi_op where_op = {
	.name = "where",
	.infer = infer_where,
	.backward = where_backward,
};

choir_tensor *choir_where(choir_tensor *condition, choir_tensor *a, choir_tensor *b)
{
	if (a && b && a->is_number && b->is_number)
		a = choir_cast(a, CHOIR_F32);
	choir_tensor *const in[] = { a, b, condition };
	return chi_op_call(&where_op, NULL, 3, in, NULL);
}
