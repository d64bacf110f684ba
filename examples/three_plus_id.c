// Shows a merge call: the example in TensorFlow's documentation of DistributionStrategy, which
// calls replicas towers. Each replica's v is three plus the replica's id. A merge call sums all v,
// and each replica returns sum + v.
// Run it in this folder: make && ./three_plus_id
#include <choir/choir.h>

#include <stdio.h>

static choir_status merge(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "v");
	choir_tensor *sum = choir_value_local(v, 0);
	for (int i = 1; i < choir_value_local_count(v); i++)
		sum = choir_add(sum, choir_value_local(v, i));
	return choir_cross_return(x, "sum", choir_tensor_as_value(sum));
}

static choir_status fn(choir_replica *r, void *user)
{
	const int *three = (const int *) user;
	choir_tensor *v = choir_fill(r->frame, CHOIR_I32, CHOIR_SCALAR, *three + choir_replica_id(r));
	choir_replica_set_arg(r, "v", v);
	CHOIR_TRY(choir_replica_merge_call(r, merge, NULL));
	return choir_replica_return(r, "result", choir_add(choir_replica_result(r, "sum"), v));
}

int main(void)
{
	int three = 3;
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .replicas = 2));
	choir_values *merged = NULL;
	CHOIR_CHECK(choir_strategy_run(s, fn, &three, NULL, &merged));
	choir_value *list = choir_values_find(merged, "result");
	for (int i = 0; i < choir_value_local_count(list); i++)
		printf("%g\n", choir_tensor_number(choir_value_local(list, i))); // prints 10 and 11
	choir_values_free(merged);
	choir_strategy_free(s);
	return 0;
}
