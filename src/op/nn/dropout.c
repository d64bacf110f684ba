// The gradient draws again, so no mask is stored.
#include "choir/nn.h"
#include "op/op.h"

static choir_status dropout_backward(const chi_node *node, const chi_backward *g)
{
	g->gradient[0] = chi_op_call(node->op, g->dy->frame, 1, &g->dy, node->attributes);
	return CHOIR_OK;
}

static const chi_op dropout_op = {
	.name = "dropout",
	.attribute_bytes = sizeof(choir_random_attributes),
	.backward = dropout_backward,
};

choir_tensor *choir_dropout(choir_tensor *x, double rate, uint64_t seed)
{
	if (!x)
		return chi_frame_null_argument(NULL, "dropout");
	choir_frame *f = x->frame;
	if (!(rate >= 0 && rate < 1))
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"dropout: the rate is %g; 0 or more and less than 1 is needed", rate);
	if (!choir_frame_is_training(f) || rate == 0)
		return x;
	choir_random_attributes random;
	if (!chi_op_draw(f, "dropout", seed, &random))
		return NULL;
	random.rate = rate;
	return chi_op_call(&dropout_op, f, 1, &x, &random);
}
