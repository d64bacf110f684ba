// Losses of the parts of a global batch: what all replicas' add up to is the mean over the batch,
// and a term that all have counts once.
#include "strategy/world.h"

#include "base/status.h"
#include "choir/op.h"
#include "test.h"

#include <math.h>

typedef struct {
	int64_t rows; // more for each further replica
	int64_t global_batch; // CHOIR_NONE: not said
	double weight;
} job;

// Losses 1, 2, 3, .. over all replicas; replica k has rows + k of them.
static choir_tensor *own_losses(choir_replica *r, const job *j)
{
	float x[64];
	const int id = choir_replica_id(r);
	const int64_t n = j->rows + id;
	int64_t before = 0;
	for (int k = 0; k < id; k++)
		before += j->rows + k;
	for (int64_t i = 0; i < n; i++)
		x[i] = (float) (before + i + 1);
	choir_tensor *t = choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(n), x);
	return j->weight == 1 ? t : choir_multiply(t, choir_number(r->frame, j->weight));
}

static choir_status average(choir_replica *r, void *user)
{
	const job *j = user;
	choir_tensor *losses = own_losses(r, j);
	choir_tensor *own = j->global_batch == CHOIR_NONE
			? choir_replica_average_loss(r, losses)
			: choir_replica_average_loss_over(r, losses, j->global_batch);
	choir_tensor *all = choir_replica_all_reduce(r, CHOIR_SUM, own);
	choir_tensor *regular = choir_replica_scale_regularization(
			r, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2, 3), 0.5));
	choir_replica_return(r, "loss", all);
	return choir_replica_return(r, "regular", choir_replica_all_reduce(r, CHOIR_SUM, regular));
}

static void check(const char *devices, int replicas, job j, double loss)
{
	choir_strategy *s = world_new(replicas, devices, 0);
	choir_values *results = NULL;
	world_ok(choir_strategy_run(s, average, &j, NULL, &results));
	const double have = world_number_of(results, "loss", replicas - 1);
	if (fabs(have - loss) > 1e-5)
		fail_msg("%s, %d replicas: the loss is %g, needed %g", devices, replicas, have, loss);
	assert_true(fabs(world_number_of(results, "regular", 0) - 3) < 1e-5);
	choir_values_free(results);
	choir_strategy_free(s);
}

// spec: D27, 2.13
TEST(the_sum_over_replicas_is_the_mean_over_the_batch)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (int i = 0; i < 3; i++) {
		// 2 + 3 losses, 1 .. 5, of a batch of 5: the mean is 3.
		check(devices[i], 2, (job){ 2, 5, 1 }, 3);
		check(devices[i], 2, (job){ 2, 5, 0.5 }, 1.5);
		// 0 + 1 + 2: a replica without examples has its share, too.
		check(devices[i], 3, (job){ 0, 3, 1 }, 2);
		check(devices[i], 2, (job){ 2, 0, 1 }, 0);
		check(devices[i], 1, (job){ 4, CHOIR_NONE, 1 }, 2.5);
	}
}

static choir_status scalar_loss(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 1);
	WORLD_NEED(choir_replica_average_loss_over(r, NULL, 4) == NULL);
	return choir_replica_return(r, "loss", choir_replica_average_loss_over(r, one, 4));
}

static choir_status scalar_mean(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 1);
	return choir_replica_return(r, "loss", choir_replica_average_loss(r, one));
}

static choir_replica *kept;

static choir_status keep(choir_replica *r, void *user)
{
	(void) user;
	if (choir_replica_id(r) == 0)
		kept = r;
	return CHOIR_OK;
}

// spec: D27, E14, 2.19
TEST(what_cannot_be_averaged)
{
	choir_strategy *s = world_new(2, "cpu:0", 0);
	job j = { 2, -4, 1 };
	world_failed(choir_strategy_run(s, average, &j, NULL, NULL), CHOIR_INVALID,
			"replica 0: average_loss: *global batch*-4", "0 or more");
	world_failed(choir_strategy_run(s, scalar_loss, NULL, NULL, NULL), CHOIR_INVALID,
			"average_loss: *example", "scalar");
	world_failed(choir_strategy_run(s, scalar_mean, NULL, NULL, NULL), CHOIR_INVALID,
			"mean: *example", "scalar");
	world_ok(choir_strategy_run(s, keep, NULL, NULL, NULL));
	// Cross-replica context: no replica, or one that was kept.
	assert_null(choir_replica_average_loss_over(NULL, NULL, 4));
	choir_frame *f = choir_frame_new(choir_device_find("cpu:0"));
	choir_tensor *losses = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1);
	assert_null(choir_replica_average_loss_over(kept, losses, 4));
	world_failed(choir_error_status(), CHOIR_STATE, "average_loss", NULL);
	assert_null(choir_replica_scale_regularization(kept, losses));
	world_failed(choir_error_status(), CHOIR_STATE, "scale_regularization", NULL);
	choir_frame_free(f);
	choir_strategy_free(s);
}

TEST_BEFORE(world_watch)
