// Values that the coordinator's program reads and writes while closures wait.
#include "choir/op.h"
#include "choir/update.h"
#include "choir/weights.h"

#include "coordinator/job.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 5, CLOSURES = 10 };

static choir_variable *sum, *rows;

static choir_status build(choir_strategy *s, void *user)
{
	(void) s, (void) user;
	sum = choir_variable_new("sum", CHOIR_SCALAR,
			CHOIR_OPTIONS(
					choir_variable_options, .aggregation = CHOIR_AGGREGATION_ONLY_FIRST_REPLICA));
	rows = choir_variable_new("rows", CHOIR_SHAPE(ROWS), NULL);
	return sum == NULL || rows == NULL ? choir_error_status() : CHOIR_OK;
}

// Adds 1 to all elements.
static choir_status add(choir_closure *c, void *user)
{
	choir_frame *f = choir_values_frame(choir_closure_args(c));
	(void) user;
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	CHOIR_TRY(choir_variable_assign_add(sum, choir_number(f, 1)));
	return choir_variable_assign_add(rows, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(ROWS), 1));
}

static const choir_function functions[] = { { "add", add, NULL }, { NULL, NULL, NULL } };

typedef struct {
	job j;
	choir_task *task;
	choir_strategy *s;
	choir_coordinator *c;
} world;

static void open_world(world *w)
{
	static const choir_strategy_options strategy = {
		.size = sizeof strategy, .partition = CHOIR_PARTITION_FIXED, .max_shards = 2
	};
	static const choir_coordinator_options options = {
		.size = sizeof options, .functions = functions, .build = build
	};
	w->j = (job){ .strategy = &strategy, .options = &options };
	job_open(&w->j, 2, false);
	for (int i = 0; i < 2; i++)
		job_start(&w->j, "ps", i, NULL);
	job_start(&w->j, "worker", 0, NULL);
	job_coordinate(&w->j, &w->task, &w->s, &w->c);
}

static void close_world(world *w)
{
	job_end(&w->j, w->task, w->s, w->c);
}

static void schedule(const world *w)
{
	for (int i = 0; i < CLOSURES; i++)
		assert_int_equal(choir_coordinator_schedule(w->c, "add", NULL, NULL), CHOIR_OK);
}

static bool all_equal(choir_tensor *t)
{
	choir_tensor *range =
			choir_subtract(choir_max(t, CHOIR_ALL_AXES), choir_min(t, CHOIR_ALL_AXES));
	return choir_tensor_number(range) == 0;
}

// spec: 2.15, 2.16
TEST(shards_are_read_at_one_moment)
{
	static const int32_t some[] = { 4, 0 };
	world w;
	open_world(&w);
	assert_int_equal(choir_variable_shards(rows), 2);
	choir_frame *f = choir_frame_new(NULL);
	for (int i = 0; i < 4; i++) {
		schedule(&w);
		choir_tensor *indices = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(2), some);
		assert_true(all_equal(choir_variable_read(rows, f)));
		assert_true(all_equal(choir_variable_gather(rows, indices)));
		assert_true(all_equal(choir_variable_slice(rows, f, 0, ROWS, 1)));
		choir_frame_clear(f);
	}
	choir_frame_free(f);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	close_world(&w);
}

static choir_status add_in_update(choir_update *u, void *user)
{
	(void) user;
	return choir_variable_assign_add(choir_update_variable(u), choir_number(u->frame, 100));
}

static choir_status add_in_run(choir_replica *r, void *user)
{
	(void) user;
	return choir_variable_assign_add(sum, choir_number(r->frame, 100));
}

static choir_status add_hundred(const world *w, int how, choir_frame *f)
{
	switch (how) {
	case 0:
		return choir_variable_assign_add(sum, choir_number(f, 100));
	case 1:
		return choir_cross_update(choir_strategy_cross(w->s), sum, NULL, add_in_update, NULL);
	default:
		return choir_strategy_run(w->s, add_in_run, NULL, NULL, NULL);
	}
}

static double sum_now(void)
{
	choir_frame *f = choir_frame_new(NULL);
	const double now = choir_tensor_number(choir_variable_read(sum, f));
	choir_frame_free(f);
	return now;
}

// spec: 2.16
TEST(neither_writes_nor_closures_are_lost)
{
	world w;
	open_world(&w);
	choir_frame *f = choir_frame_new(NULL);
	for (int i = 0; i < 6; i++) {
		schedule(&w);
		if (add_hundred(&w, i % 3, f) != CHOIR_OK)
			fail_msg("%d: %s", i, choir_error());
		const double all = (i + 1) * (100 + CLOSURES);
		if (i < 3)
			assert_true(sum_now() >= all - CLOSURES);
		else // a program may read until it sees all updates
			while (sum_now() < all)
				nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
		assert_true(sum_now() == all);
	}
	choir_frame_free(f);
	close_world(&w);
}

static void remove_file(const char *path)
{
	assert_int_equal(remove(path), 0);
}

// spec: 2.7, 2.16
TEST(a_restore_while_closures_wait_is_not_lost)
{
	char path[128];
	world w;
	open_world(&w);
	snprintf(path, sizeof path, "%s/saved", w.j.folder);
	assert_int_equal(choir_strategy_save(w.s, path, NULL), CHOIR_OK);
	schedule(&w);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	choir_frame *f = choir_frame_new(NULL);
	assert_int_equal(choir_variable_assign(sum, choir_number(f, 1000)), CHOIR_OK);
	choir_frame_free(f);
	schedule(&w);
	assert_int_equal(choir_strategy_restore(w.s, path), CHOIR_OK);
	assert_true(sum_now() <= CLOSURES);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	assert_true(sum_now() <= CLOSURES);
	remove_file(path);
	close_world(&w);
}
