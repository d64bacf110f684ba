// The training loop of several workers: the bits of one, stops and failures of one worker.
#include "strategies/process_group.h"
#include "test.h"
#include "train/files.h"

#include <string.h>

enum { EXAMPLES = 30, BATCH = 8, EPOCHS = 3 };

static float inputs[EXAMPLES][2], targets[EXAMPLES][1];

static void make_data(void)
{
	for (int i = 0; i < EXAMPLES; i++) {
		inputs[i][0] = (float) (i % 7) / 7;
		inputs[i][1] = (float) (i % 5) / 5;
		targets[i][0] = inputs[i][0] - 2 * inputs[i][1];
	}
}
TEST_BEFORE(make_data)

typedef struct {
	uint64_t hash; // of one worker
	int64_t stop_at, fail_at; // steps of worker 1; 0: never
	choir_toggle stop_in_epochs;
	bool save_fails; // of worker 1, at the stop
} job;

typedef struct {
	const job *of;
	int worker;
} own;

static choir_status batch_ends(const choir_fit_event *e, void *user)
{
	const own *o = user;
	if (o->worker == 1 && e->step == o->of->stop_at)
		choir_model_stop(e->model);
	return o->worker == 1 && e->step == o->of->fail_at ? choir_fail(CHOIR_IO, "no more paper")
													   : CHOIR_OK;
}

static choir_status save(const choir_fit_event *e, void *user)
{
	const own *o = user;
	(void) e;
	return o->worker == 1 ? choir_fail(CHOIR_IO, "no more paper") : CHOIR_OK;
}

static choir_distributed_dataset *distribute(choir_strategy *s)
{
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(2), .data = inputs },
		{ .name = "y", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(1), .data = targets }
	};
	choir_dataset *d = choir_memory_dataset_new(EXAMPLES, 2, columns, false);
	return choir_strategy_distribute_dataset(
			s, choir_dataset_batch(choir_dataset_shuffle(d, EXAMPLES, 5), BATCH), NULL);
}

static choir_status fit(choir_strategy *s, const own *o, choir_model **m, int64_t *rows)
{
	choir_distributed_dataset *train = distribute(s), *test = distribute(s);
	CHOIR_SCOPE (s) {
		choir_layer *layer = choir_dense_new("y", 2, 1, CHOIR_LINEAR);
		*m = choir_model_new(CHOIR_OPTIONS(choir_model_options, .layer = layer,
				.loss = choir_mean_squared_error,
				.optimizer = choir_optimizer_new(CHOIR_SGD, NULL)));
	}
	const choir_callback callback = {
		.size = sizeof callback, .batch_end = batch_ends, .user = (void *) (uintptr_t) o
	};
	choir_checkpoint_manager *checkpoints = o->of->save_fails
			? choir_checkpoint_manager_new(s, files_path("workers"), NULL)
			: NULL;
	const choir_status status = choir_fit(*m, train,
			CHOIR_OPTIONS(choir_fit_options, .epochs = EPOCHS, .validation = test,
					.callbacks = &callback, .n_callbacks = 1, .checkpoints = checkpoints,
					.save = save, .save_at_stop = CHOIR_ON, .user = (void *) (uintptr_t) o,
					.stop_in_epochs = o->of->stop_in_epochs));
	choir_checkpoint_manager_free(checkpoints);
	CHOIR_TRY(status);
	choir_frame *f = choir_frame_new(NULL);
	const choir_tensor *all = choir_predict(*m, test, f);
	*rows = all == NULL ? 0 : choir_tensor_shape(all)->dim[0];
	choir_frame_free(f);
	return CHOIR_OK;
}

static const char *worker(choir_strategy *s, int w, void *user)
{
	const job *j = user;
	const own o = { j, w };
	choir_model *m = NULL;
	int64_t rows = 0;
	if (s == NULL)
		return choir_error();
	const choir_status status = fit(s, &o, &m, &rows);
	if (j->fail_at > 0 || j->save_fails)
		return w == 1 ? peers_last_failure(CHOIR_IO, "fit*epoch 1*batch 3", "no more paper")
					  : peers_last_failure(CHOIR_CANCELLED, "worker 1", "no more paper");
	if (status != CHOIR_OK)
		return choir_error();
	const int64_t epochs = j->stop_in_epochs == CHOIR_OFF ? 2 : 1;
	if (j->stop_at > 0)
		return choir_model_epochs(m) == epochs && choir_model_stopped(m) && rows == EXAMPLES
				? NULL
				: "it did not stop in epoch 2, or at its end";
	return choir_strategy_hash(s) == j->hash && choir_model_epochs(m) == EPOCHS && rows == EXAMPLES
			? NULL
			: "other weights than those of one worker";
}

static void run(job *j)
{
	static const peers_place places[] = { { 2, "cpu:0" }, { 3, "cpu:0,cpu:1" } };
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
		peers_run(&(peers_job){
				.replicas = 4, .place = places[i], .seed = i, .fn = worker, .user = j });
}

TEST(workers_have_the_bits_of_one)
{
	job j = { 0 };
	choir_model *m = NULL;
	int64_t rows = 0;
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = 4, .devices = "cpu:0", .seed = 11));
	assert_int_equal(fit(s, &(own){ &j, 0 }, &m, &rows), CHOIR_OK);
	assert_int_equal(rows, EXAMPLES);
	j.hash = choir_strategy_hash(s);
	choir_strategy_free(s);
	run(&j);
}

TEST(one_worker_stops_all)
{
	run(&(job){ .stop_at = 6 });
	run(&(job){ .stop_at = 6, .stop_in_epochs = CHOIR_OFF });
}

TEST(one_worker_fails_all)
{
	run(&(job){ .fail_at = 3 });
	run(&(job){ .stop_at = 3, .save_fails = true });
}

TEST_GROUP(NULL, files_teardown)
