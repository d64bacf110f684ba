// Shows a merge call that clips a gradient by its norm over all replicas. The function sum_up runs
// once, in cross-replica context, and sums the values that the four replicas pass.
// Run it in this folder: make && ./custom_merge
#include <choir/choir.h>

#include <stdio.h>

static choir_status sum_up(choir_cross *x, void *user) // called once, for all replicas
{
	(void) user;
	choir_value *square = choir_cross_arg(x, "square");
	return choir_cross_return(x, "square", choir_cross_reduce_to(x, CHOIR_SUM, square, square));
}

static choir_status step(choir_replica *r, void *user)
{
	choir_variable *w = (choir_variable *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *read = choir_variable_read(w, r->frame), *gradient = NULL;
	choir_tensor *errors = choir_mean_squared_error(choir_replica_arg(r, "x"), read);
	CHOIR_TRY(
			choir_tape_gradient(tape, choir_replica_average_loss(r, errors), 1, &read, &gradient));

	choir_replica_set_arg(r, "square", choir_sum(choir_square(gradient), CHOIR_ALL_AXES));
	CHOIR_TRY(choir_replica_merge_call(r, sum_up, NULL));
	choir_tensor *norm = choir_sqrt(choir_replica_result(r, "square"));
	norm = choir_maximum(norm, choir_number(r->frame, 1));
	return choir_variable_assign_sub(w, choir_divide(choir_scale(gradient, 0.1), norm));
}

// Makes a batch of eight examples with one number each. Each replica gets two examples.
static choir_values *batch_of(choir_strategy *s)
{
	static const float x[8] = { 1, 2, 3, 1, 0, 1, 2, 2 };
	choir_values *batch = choir_values_new(s);
	choir_frame *f = choir_values_frame(batch);
	CHOIR_CHECK(choir_values_split(batch, "x", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(8, 1), x)));
	return batch;
}

int main(void)
{
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .replicas = 4));
	choir_variable *w = NULL;
	// With SUM, choir_variable_assign_sub subtracts the sum of the replicas' values.
	CHOIR_SCOPE (s)
		w = choir_variable_new("w", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM));
	choir_values *batch = batch_of(s);
	for (int i = 0; i < 100; i++)
		CHOIR_CHECK(choir_strategy_run(s, step, w, batch, NULL));
	choir_frame *f = choir_frame_new(NULL);
	printf("w is %.3f, the mean of x 1.5\n", choir_tensor_number(choir_variable_read(w, f)));
	choir_frame_free(f);
	choir_values_free(batch);
	choir_strategy_free(s);
	return 0;
}
