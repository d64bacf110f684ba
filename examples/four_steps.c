// Shows how to write your own optimizer, SGD with momentum, in the four steps of tf.distribute:
// (1) each replica computes a gradient;
// (2) a merge call passes all gradients to cross-replica context;
// (3) the gradients are reduced to the devices of the variable;
// (4) an update function changes each copy of the variable.
// Run it in this folder: make && ./four_steps
#include <choir/choir.h>

#include <stdio.h>

struct model {
	choir_variable *w, *velocity;
};

static choir_status descend(choir_update *u, void *user) // step 4: called for each copy
{
	struct model *m = (struct model *) user;
	choir_tensor *v = choir_scale(choir_variable_read(m->velocity, u->frame), 0.9);
	v = choir_add(v, choir_update_arg(u, "gradient"));
	// The velocity is colocated with w, so an update of w may write it.
	CHOIR_TRY(choir_variable_assign(m->velocity, v));
	return choir_variable_assign_sub(m->w, choir_scale(v, 0.1));
}

static choir_status reduce_and_update(choir_cross *x, void *user)
{
	struct model *m = (struct model *) user;
	choir_reduction item = { choir_cross_arg(x, "gradient"), choir_variable_as_value(m->w), NULL };
	CHOIR_TRY(choir_cross_batch_reduce_to(x, CHOIR_SUM, 1, &item, NULL)); // step 3
	choir_cross_set_arg(x, "gradient", item.result);
	return choir_cross_update(x, m->w, NULL, descend, m);
}

static choir_status step(choir_replica *r, void *user)
{
	struct model *m = (struct model *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *w = choir_variable_read(m->w, r->frame), *gradient = NULL;
	choir_tensor *squares = choir_square(choir_subtract(choir_replica_arg(r, "x"), w));
	// step 1
	CHOIR_TRY(choir_tape_gradient(tape, choir_replica_average_loss(r, squares), 1, &w, &gradient));
	choir_replica_set_arg(r, "gradient", gradient);
	return choir_replica_merge_call(r, reduce_and_update, m); // step 2
}

static choir_status make(struct model *m, choir_strategy *s)
{
	choir_scope scope, beside;
	CHOIR_TRY(choir_scope_enter(&scope, s));
	m->w = choir_variable_new("w", CHOIR_SHAPE(1), NULL);
	CHOIR_TRY(choir_scope_colocate(&beside, choir_variable_as_value(m->w)));
	m->velocity = choir_variable_new("w/velocity", CHOIR_SHAPE(1),
			CHOIR_OPTIONS(choir_variable_options, .trainable = CHOIR_OFF));
	CHOIR_TRY(choir_scope_exit(&beside));
	return choir_scope_exit(&scope);
}

int main(void)
{
	static const float x[4] = { 1, 2, 3, 4 };
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .replicas = 2));
	struct model m = { NULL, NULL };
	CHOIR_CHECK(make(&m, s));
	choir_values *batch = choir_values_new(s);
	choir_frame *f = choir_values_frame(batch);
	CHOIR_CHECK(choir_values_split(batch, "x", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(4, 1), x)));
	for (int i = 0; i < 200; i++)
		CHOIR_CHECK(choir_strategy_run(s, step, &m, batch, NULL));
	printf("w is %.3f, the mean of x 2.5\n", choir_tensor_number(choir_variable_read(m.w, f)));
	choir_values_free(batch);
	choir_strategy_free(s);
	return 0;
}
