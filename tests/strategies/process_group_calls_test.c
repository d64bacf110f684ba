// Multi-worker mirrored where a call fails on one worker before it has asked another: all others
// are told why, and nobody waits for what does not come.
#include "process_group.h"
#include "plain_kernels.h"

#include "base/alloc.h"
#include "test.h"

typedef enum { OPTIONS, ARGUMENTS, RESULTS, WRONG } wrong_call;

static void a_bad_option(choir_strategy_options *o, int worker, void *user)
{
	if (*(wrong_call *) user == OPTIONS && worker == 1)
		o->timeout = -2;
}

static choir_status sum_ones(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	return choir_replica_all_reduce(r, CHOIR_SUM, x) == NULL ? choir_error_status() : CHOIR_OK;
}

static const char *one_calls_wrongly(choir_strategy *s, int worker, void *user)
{
	const wrong_call what = *(wrong_call *) user;
	const char *found = what == OPTIONS ? "timeout*-2" : "belong to another strategy";
	if (s != NULL && what == OPTIONS)
		return "a time-out that there is not";
	if (s != NULL) { // else it has heard of worker 1 already
		choir_strategy *other = choir_mirrored_strategy_new(
				CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0"));
		choir_values *foreign = choir_values_new(other), *results = worker == 1 ? foreign : NULL;
		const choir_status status = what == ARGUMENTS
				? choir_strategy_run(s, sum_ones, NULL, worker == 1 ? foreign : NULL, NULL)
				: choir_strategy_run(s, sum_ones, NULL, NULL, &results);
		if (results != foreign)
			choir_values_free(results);
		choir_values_free(foreign);
		choir_strategy_free(other);
		if (status == CHOIR_OK)
			return "the run went well";
	}
	return worker == 1 ? peers_last_failure(CHOIR_INVALID, found, NULL)
					   : peers_last_failure(CHOIR_CANCELLED, "worker 1", found);
}

static choir_status next_batch(choir_distributed_dataset *data, choir_values *batch, int64_t *rows)
{
	CHOIR_TRY(choir_distributed_dataset_next(data, &batch));
	*rows = choir_tensor_shape(choir_value_local(choir_values_find(batch, "number"), 0))->dim[0];
	return CHOIR_OK;
}

// The second step fails on worker 1: for all of them, until they go back to the start.
static const char *one_cannot_read(choir_strategy *s, int worker, void *user)
{
	(void) user;
	const char *wrong = NULL;
	choir_strategy *other =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0"));
	choir_values *batch = choir_values_new(s), *foreign = choir_values_new(other);
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(
			s, choir_dataset_batch(choir_range_dataset_new("number", 0, 12, 1), 4), NULL);
	int64_t rows = 0;
	for (int turn = 0; turn < 2 && wrong == NULL; turn++) {
		if (next_batch(data, batch, &rows) != CHOIR_OK || rows != 2)
			wrong = "the first step";
		for (int again = 0; again < 2 && wrong == NULL; again++) {
			choir_values *to = worker == 1 && again == 0 ? foreign : batch;
			if (next_batch(data, to, &rows) == CHOIR_OK)
				wrong = "a step that worker 1 has not";
			else
				wrong = worker == 1 ? peers_last_failure(CHOIR_INVALID, "dataset:", "strategy")
									: peers_last_failure(CHOIR_CANCELLED, "worker 1", "strategy");
		}
		if (wrong == NULL && choir_distributed_dataset_rewind(data) != CHOIR_OK)
			wrong = choir_error();
	}
	choir_values_free(batch);
	choir_values_free(foreign);
	choir_strategy_free(other);
	return wrong;
}

static const char *one_alone(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	if (choir_strategy_run_replica(s, 0, sum_ones, NULL, NULL) == CHOIR_OK)
		return "a sum alone";
	const char *wrong = peers_last_failure(CHOIR_UNSUPPORTED, "all_reduce*f32 [3]", "2 replicas");
	return wrong != NULL || choir_strategy_run(s, sum_ones, NULL, NULL, NULL) == CHOIR_OK
			? wrong
			: choir_error();
}

static choir_status mean_of(choir_replica *r, void *user)
{
	choir_tensor *x = choir_fill(r->frame, *(choir_dtype *) user, CHOIR_SHAPE(3), 1);
	return choir_replica_all_reduce(r, CHOIR_MEAN, x) == NULL ? choir_error_status() : CHOIR_OK;
}

// Both are added up as f64.
static const char *one_has_longer_integers(choir_strategy *s, int worker, void *user)
{
	(void) user;
	choir_dtype dtype = worker == 1 ? CHOIR_I64 : CHOIR_I32;
	if (s != NULL && choir_strategy_run(s, mean_of, &dtype, NULL, NULL) == CHOIR_OK)
		return "a mean of i32 and i64";
	return peers_last_or_heard(CHOIR_STATE, "mean, i32", "mean, i64");
}

static const char *one_has_no_optimizer(choir_strategy *s, int worker, void *user)
{
	choir_optimizer *o = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			o = choir_optimizer_new(CHOIR_SGD,
					CHOIR_OPTIONS(
							choir_optimizer_options, .learning_rate = worker == 1 ? -1 : 0.1));
	if (o != NULL)
		return "an optimizer that worker 1 has not";
	return worker == 1 ? peers_last_failure(CHOIR_INVALID, "optimizer sgd", "rate*-1")
					   : peers_last_failure(CHOIR_CANCELLED, "worker 1", "rate*-1");
}

typedef enum { REDUCE, REDUCE_ACROSS, CONCAT, REDUCE_TO, REDUCE_ALL_TO, REDUCTIONS } reduction;

static choir_status return_ones(choir_replica *r, void *user)
{
	(void) user;
	const choir_dtype dtype = choir_replica_id(r) == 3 ? CHOIR_I32 : CHOIR_F32;
	return choir_replica_return(r, "x", choir_fill(r->frame, dtype, CHOIR_SHAPE(2), 1));
}

static bool reduces(choir_strategy *s, reduction what, choir_value *v)
{
	choir_cross *x = choir_strategy_cross(s);
	choir_reduction item = { v, choir_cross_destination(x, NULL), NULL };
	switch (what) {
	case REDUCE:
		return choir_strategy_reduce(s, CHOIR_SUM, v, CHOIR_NO_AXIS) != NULL;
	case REDUCE_ACROSS:
		return choir_cross_reduce(x, CHOIR_SUM, v, CHOIR_NO_AXIS) != NULL;
	case CONCAT:
		return choir_cross_gather(x, v, 0) != NULL;
	case REDUCE_TO:
		return choir_cross_reduce_to(x, CHOIR_SUM, v, item.to) != NULL;
	case REDUCE_ALL_TO:
	case REDUCTIONS:
		return choir_cross_batch_reduce_to(x, CHOIR_SUM, 1, &item, NULL) == CHOIR_OK;
	}
	return false;
}

// Outside of runs, where only worker 1 has replicas that differ: it need not wait for the other.
static const char *one_cannot_reduce(choir_strategy *s, int worker, void *user)
{
	choir_values *all = NULL;
	const bool went_well = s != NULL &&
			choir_strategy_run(s, return_ones, NULL, NULL, &all) == CHOIR_OK &&
			reduces(s, *(reduction *) user, choir_values_find(all, "x"));
	choir_values_free(all);
	if (went_well)
		return "a sum of f32 and i32";
	return worker == 1 ? peers_last_failure(CHOIR_INVALID, "f32", "i32")
					   : peers_last_failure(CHOIR_CANCELLED, "worker 1", "i32");
}

// spec: 2.17
TEST(test_one_calls_wrongly)
{
	for (wrong_call what = OPTIONS; what < WRONG; what++)
		peers_run(&(peers_job){ .replicas = 3,
				.place = { 3, "cpu:0" },
				.fn = one_calls_wrongly,
				.options = a_bad_option,
				.user = &what });
	const peers_place two = { 2, "cpu:0" };
	for (reduction what = REDUCE; what < REDUCTIONS; what++)
		peers_run(&(peers_job){
				.replicas = 4, .place = two, .fn = one_cannot_reduce, .user = &what });
	peers_run(&(peers_job){ .replicas = 2, .place = two, .fn = one_cannot_read });
	peers_run(&(peers_job){ .replicas = 2, .place = two, .fn = one_alone });
	peers_run(&(peers_job){ .replicas = 2, .place = two, .fn = one_has_longer_integers });
	peers_run(&(peers_job){ .replicas = 4, .place = two, .fn = one_has_longer_integers });
	peers_run(&(peers_job){ .replicas = 2, .place = two, .fn = one_has_no_optimizer });
}

// ---- Memory.

// What is asked for outside of runs, of which a worker without memory must tell the others.
static const char *ask_somehow(choir_strategy *s, int worker, void *user)
{
	const uint64_t *n = user;
	choir_variable *v = NULL;
	choir_metric *mean = NULL, *matrix = NULL;
	CHOIR_SCOPE (s) {
		v = choir_variable_new("v", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
		mean = choir_metric_new("mean", CHOIR_METRIC_MEAN);
		matrix = choir_confusion_matrix_new("matrix", 2);
	}
	choir_frame *f = choir_frame_new(NULL), *g = choir_frame_new(NULL);
	if (choir_cluster_barrier(choir_strategy_cluster(s)) == CHOIR_OK) { // all are ready
		if (worker == 0)
			chi_alloc_fail(*n, false);
		choir_metric_result(mean);
		choir_metric_confusion_matrix(matrix, f);
		choir_variable_read(v, g);
		choir_strategy_hash(s);
	}
	choir_frame_free(f);
	choir_frame_free(g);
	const choir_status status = choir_error_status(); // never that the other one is just gone
	return status == CHOIR_OK || status == CHOIR_NO_MEMORY || status == CHOIR_CANCELLED
			? NULL
			: choir_error();
}

TEST(test_memory_outside_runs)
{
	uint64_t n = 1;
	for (bool failed = true; failed; n++) {
		peers_run(&(peers_job){
				.replicas = 4, .place = { 2, "cpu:0" }, .fn = ask_somehow, .user = &n });
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
	}
	assert_true(n > 10);
}
