// Means over the global batch, perhaps unevenly divided.
#include "choir/op.h"
#include "strategy/replica/replica.h"

static choir_tensor *sum_of_losses(choir_replica *replica, choir_tensor *losses, const char *what)
{
	if (losses == NULL || chi_replica_check(replica, what) != CHOIR_OK)
		return NULL;
	if (losses->shape.rank == 0)
		return chi_frame_fail_null(replica->frame, CHOIR_INVALID,
				"%s: the losses are a scalar; one loss per example is needed", what);
	return choir_sum(losses, CHOIR_ALL_AXES);
}

static choir_tensor *over(choir_tensor *sum, int64_t examples)
{
	return choir_scale(sum, examples == 0 ? 0 : 1 / (double) examples);
}

choir_tensor *choir_replica_average_loss(choir_replica *replica, choir_tensor *losses)
{
	choir_tensor *sum = sum_of_losses(replica, losses, "mean");
	if (sum == NULL)
		return NULL;
	// A run without counted arguments makes its own data, equally in each replica.
	const chi_replica *r = chi_replica_of(replica);
	const int64_t known = r->run->task.args == NULL
			? CHOIR_UNKNOWN
			: chi_values_global_examples(r->run->task.args);
	return over(sum,
			known == CHOIR_UNKNOWN ? losses->shape.dim[0] * choir_replica_count(replica) : known);
}

choir_tensor *choir_replica_average_loss_over(
		choir_replica *replica, choir_tensor *losses, int64_t global_batch)
{
	choir_tensor *sum = sum_of_losses(replica, losses, "average_loss");
	if (sum != NULL && global_batch < 0)
		return chi_frame_fail_null(replica->frame, CHOIR_INVALID,
				"average_loss: the global batch has %lld examples; 0 or more are needed",
				(long long) global_batch);
	return sum == NULL ? NULL : over(sum, global_batch);
}

choir_tensor *choir_replica_scale_regularization(choir_replica *replica, choir_tensor *loss)
{
	if (loss == NULL || chi_replica_check(replica, "scale_regularization") != CHOIR_OK)
		return NULL;
	return choir_scale(choir_sum(loss, CHOIR_ALL_AXES), 1 / (double) choir_replica_count(replica));
}
