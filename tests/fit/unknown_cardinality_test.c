// Data of unknown cardinality, where only the next batch shows that an epoch has ended.
#include "base/status.h"
#include "fit/training.h"
#include "test.h"
#include "train/files.h"

#include <string.h>

enum { EPOCHS = 2, ROWS = 12, ROWS_OF_A_BATCH = 2, EVERY = 3, SAVES = 12 };

typedef struct {
	training t;
	choir_distributed_dataset *data;
	choir_checkpoint_manager *checkpoints;
	int64_t saves[SAVES], n_saves, stop_at;
	bool saves_at_stop;
	int fails_at; // a row
} program;

static bool keep(const choir_component in[], void *user)
{
	(void) in, (void) user;
	return true;
}

static choir_status read_row(const choir_component in[], choir_component out[], void *user)
{
	const program *p = user;
	const float *x = in[0].data;
	if (p->fails_at > 0 && x[0] == (float) p->fails_at)
		return choir_fail(CHOIR_IO, "no more paper");
	memcpy(out[0].data, x, FEATURES * sizeof *x);
	memcpy(out[1].data, in[1].data, 1);
	return CHOIR_OK;
}

static choir_status save(const choir_fit_event *e, void *user)
{
	program *p = user;
	assert_true(p->n_saves < SAVES);
	p->saves[p->n_saves++] = e->step;
	return choir_checkpoint_manager_save(p->checkpoints, NULL);
}

static choir_status step_ends(const choir_fit_event *e, void *user)
{
	const program *p = user;
	if (e->step == p->stop_at)
		choir_model_stop(e->model);
	return CHOIR_OK;
}

static void open_program(program *p, const char *folder)
{
	static float x[ROWS][FEATURES];
	static uint8_t label[ROWS];
	for (int i = 0; i < ROWS; i++) {
		x[i][0] = (float) i;
		label[i] = (uint8_t) (i % CLASSES);
	}
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(FEATURES), .data = x },
		{ .name = "label", .dtype = CHOIR_U8, .shape = CHOIR_SCALAR, .data = label }
	};
	p->t = training_open("cpu:0", 2);
	choir_dataset *d = choir_memory_dataset_new(ROWS, 2, columns, true);
	d = choir_dataset_filter(choir_dataset_map(d, NULL, read_row, p), keep, NULL);
	p->data = choir_strategy_distribute_dataset(
			p->t.strategy, choir_dataset_batch(d, ROWS_OF_A_BATCH), NULL);
	p->checkpoints = choir_checkpoint_manager_new(p->t.strategy, folder, NULL);
	assert_int_equal(choir_distributed_dataset_cardinality(p->data), CHOIR_UNKNOWN_CARDINALITY);
}

// Gives the hash of the weights.
static uint64_t train(program *p, const char *folder, choir_status *status)
{
	open_program(p, folder);
	const choir_callback c = { .size = sizeof c, .batch_end = step_ends, .user = p };
	*status = choir_fit(p->t.model, p->data,
			CHOIR_OPTIONS(choir_fit_options, .epochs = EPOCHS, .checkpoints = p->checkpoints,
					.checkpoint_every = EVERY, .save = save, .user = p, .callbacks = &c,
					.n_callbacks = 1, .save_at_stop = p->saves_at_stop ? CHOIR_ON : CHOIR_OFF));
	const uint64_t hash = choir_strategy_hash(p->t.strategy);
	choir_checkpoint_manager_free(p->checkpoints);
	choir_strategy_free(p->t.strategy);
	return hash;
}

TEST(an_epoch_s_end_saves_once)
{
	static const int64_t saves[] = { 3, 6, 9, 12 };
	program p = { .stop_at = 0 };
	choir_status status;
	train(&p, files_path("once"), &status);
	must(status);
	assert_int_equal(p.n_saves, sizeof saves / sizeof saves[0]);
	assert_memory_equal(p.saves, saves, sizeof saves);
}

TEST(a_save_in_an_epoch_is_before_the_batch_that_was_read)
{
	program whole = { .stop_at = 0 };
	choir_status status;
	const uint64_t hash = train(&whole, files_path("whole"), &status);
	must(status);
	for (int saves_at_stop = 0; saves_at_stop < 2; saves_at_stop++) {
		const char *folder = files_path(saves_at_stop ? "stop" : "part");
		program part = { .stop_at = 4, .saves_at_stop = saves_at_stop }, rest = { .stop_at = 0 };
		train(&part, folder, &status);
		must(status);
		assert_int_equal(part.n_saves, 1 + saves_at_stop);
		assert_true(train(&rest, folder, &status) == hash);
		must(status);
		assert_int_equal(rest.saves[0], 6);
	}
}

TEST(a_save_comes_before_the_failure_of_the_next_batch)
{
	program p = { .fails_at = EVERY * ROWS_OF_A_BATCH + 1 };
	choir_status status;
	train(&p, files_path("failure"), &status);
	assert_failed(status, CHOIR_IO, "epoch 1, batch 4, step 4*no more paper");
	assert_int_equal(p.n_saves, 1);
	assert_int_equal(p.saves[0], EVERY);
}

TEST_GROUP(NULL, files_teardown)
