// L1 and L2 (Tikhonov 1943; Tibshirani 1996; Keras' L1L2).
#include "strategy/replica/replica.h"
#include "train/layer/layer.h"

static choir_tensor *add_term(choir_tensor *sum, double factor, choir_tensor *term)
{
	term = choir_scale(choir_sum(term, CHOIR_ALL_AXES), factor);
	return sum == NULL || term == NULL ? term : choir_add(sum, term);
}

bool chi_layer_is_regularized(choir_layer *l)
{
	for (int i = 0; i < choir_layer_variables(l); i++) {
		const choir_variable *v = choir_layer_variable(l, i);
		if (v->l1 != 0 || v->l2 != 0)
			return true;
	}
	return false;
}

choir_tensor *choir_layer_regularization_loss(choir_layer *l, choir_replica *r)
{
	if (r == NULL || chi_replica_check(r, "regularization_loss") != CHOIR_OK)
		return NULL;
	if (l == NULL)
		return chi_frame_null_argument(r->frame, "layer");
	if (l->strategy != choir_replica_strategy(r)->owner)
		return chi_frame_fail_null(r->frame, CHOIR_STATE,
				"regularization_loss: mixing strategies: the layer belongs to %s, this replica to "
				"%s",
				l->strategy->label, choir_replica_strategy(r)->label);
	choir_tensor *sum = NULL;
	for (int i = 0; i < l->variables; i++) {
		choir_variable *v = choir_layer_variable(l, i);
		if (v->l1 == 0 && v->l2 == 0)
			continue;
		choir_tensor *w = choir_variable_read(v, r->frame);
		if (v->l1 != 0)
			sum = add_term(sum, v->l1, choir_abs(w));
		if (v->l2 != 0)
			sum = add_term(sum, v->l2, choir_square(w));
	}
	if (sum == NULL)
		sum = choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 0);
	return choir_replica_scale_regularization(r, sum);
}
