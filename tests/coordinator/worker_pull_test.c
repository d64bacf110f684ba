// Values of one worker: each worker has its own, closures change them, and all can be read.
#include "choir/coordinator.h"

#include "base/alloc.h"
#include "coordinator/job.h"
#include "test.h"

#include <math.h>
#include <time.h>

enum { WORKERS = 3, CALLS = 60 };

static double number_of(choir_values *set, const char *name)
{
	double number = NAN;
	choir_tensor *t = choir_value_tensor(choir_values_find(set, name));
	if (t == NULL || choir_tensor_to_host(t, &number, sizeof number) != CHOIR_OK)
		return NAN;
	return number;
}

static choir_status give(choir_closure *c, const char *name, double number)
{
	return choir_closure_return(
			c, name, choir_number(choir_values_frame(choir_closure_args(c)), number));
}

static choir_status build(choir_strategy *s, void *user)
{
	(void) s, (void) user;
	return CHOIR_OK;
}

// A worker's counter, which begins with 1.
static choir_status counter(choir_closure *c, void *user)
{
	(void) user;
	return give(c, "count", 1);
}

static choir_status count(choir_closure *c, void *user)
{
	choir_values *own = choir_closure_values(c, "counter");
	(void) user;
	if (own == NULL || choir_closure_values(c, "no such") != NULL)
		return choir_error_status();
	choir_tensor *more = choir_number(choir_values_frame(own), number_of(own, "count") + 1);
	return choir_values_set(own, "count", choir_tensor_as_value(more));
}

static choir_status tell(choir_closure *c, void *user)
{
	(void) user;
	CHOIR_TRY(give(c, "worker", choir_closure_worker(c)));
	return give(c, "count", number_of(choir_closure_values(c, "counter"), "count"));
}

static choir_status fails(choir_closure *c, void *user)
{
	(void) c, (void) user;
	return choir_fail(CHOIR_INVALID, "this closure fails");
}

// Its values cannot be made.
static choir_status spoilt(choir_closure *c, void *user)
{
	(void) user;
	return choir_closure_values(c, "fails") == NULL ? choir_error_status() : CHOIR_OK;
}

// Values with several leaves, made while the n-th allocation fails: whole, or not at all.
static choir_status large(choir_closure *c, void *user)
{
	(void) user;
	CHOIR_TRY(give(c, "first", 3));
	return give(c, "second", 4);
}

static choir_status scarce(choir_closure *c, void *user)
{
	(void) user;
	chi_alloc_fail((uint64_t) number_of(choir_closure_args(c), "n"), false);
	const bool made = choir_closure_values(c, "large") != NULL;
	const choir_status status = made ? CHOIR_OK : choir_error_status();
	chi_alloc_fail(0, false);
	if (status != CHOIR_OK && status != CHOIR_NO_MEMORY)
		return status;
	CHOIR_TRY(give(c, "made", made));
	choir_values *own = made ? choir_closure_values(c, "large") : NULL;
	return made ? give(c, "sum", number_of(own, "first") + number_of(own, "second")) : CHOIR_OK;
}

static const choir_function functions[] = { { "counter", counter, NULL }, { "count", count, NULL },
	{ "tell", tell, NULL }, { "fails", fails, NULL }, { "spoilt", spoilt, NULL },
	{ "large", large, NULL }, { "scarce", scarce, NULL }, { NULL, NULL, NULL } };

static const choir_coordinator_options options = {
	.size = sizeof options, .functions = functions, .build = build, .program = "values"
};
typedef struct {
	job j;
	choir_task *task;
	choir_strategy *s;
	choir_coordinator *c;
} world;

static void wait_for_workers(const world *w)
{
	for (int i = 0; choir_coordinator_workers(w->c) < WORKERS && i < 5000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(choir_coordinator_workers(w->c), WORKERS);
}

static void open_world(world *w)
{
	*w = (world){ .j.options = &options };
	job_open(&w->j, 1, false);
	job_start(&w->j, "ps", 0, NULL);
	for (int i = 0; i < WORKERS; i++)
		job_start(&w->j, "worker", 0, NULL);
	job_coordinate(&w->j, &w->task, &w->s, &w->c);
	wait_for_workers(w);
}

// Gives how many processes did not end well.
static int close_world(world *w)
{
	int lost = 0;
	choir_coordinator_free(w->c);
	for (int i = 0; i < w->j.n; i++)
		lost += job_wait(&w->j, i) != CHOIR_OK;
	choir_strategy_free(w->s);
	choir_task_free(w->task);
	job_close(&w->j);
	return lost;
}

// spec: D19, 2.16
TEST(workers_have_their_own_values_which_can_be_read_together)
{
	world w;
	choir_values *sets[WORKERS];
	double sum = 0;
	int n;
	open_world(&w);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(choir_coordinator_schedule(w.c, "count", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	assert_int_equal(choir_coordinator_read_all(w.c, "tell", WORKERS, sets, &n), CHOIR_OK);
	assert_int_equal(n, WORKERS);
	for (int i = 0; i < n; i++) {
		assert_true(number_of(sets[i], "worker") == i);
		sum += number_of(sets[i], "count") - 1;
		choir_values_free(sets[i]);
	}
	assert_true(sum == CALLS);
	assert_int_equal(choir_coordinator_read_all(w.c, "tell", 2, sets, &n), CHOIR_INVALID);
	assert_text_holds(choir_error(), "capacity of 2*3 workers");
	assert_int_equal(
			choir_coordinator_read_all(w.c, "no such", WORKERS, sets, &n), CHOIR_NOT_FOUND);
	assert_int_equal(choir_coordinator_read_all(w.c, "spoilt", WORKERS, sets, &n), CHOIR_INVALID);
	assert_text_holds(choir_error(), "this closure fails*worker");
	assert_int_equal(n, 0);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK); // it was told
	assert_int_equal(close_world(&w), 0);
}

// A worker that has called a function has joined the servers, too. Once lost, it does not return.
static void call_each(world *w)
{
	choir_values *sets[WORKERS];
	int n;
	wait_for_workers(w);
	assert_int_equal(choir_coordinator_read_all(w->c, "tell", WORKERS, sets, &n), CHOIR_OK);
	assert_int_equal(n, WORKERS);
	while (n > 0)
		choir_values_free(sets[--n]);
}

// spec: D19
TEST(values_are_made_whole_when_memory_runs_out)
{
	world w;
	double made = 0;
	int n = 1;
	open_world(&w);
	call_each(&w);
	for (; made == 0; n++) {
		choir_values *args = choir_values_new(w.s), *result = NULL;
		choir_remote_value *value = NULL;
		assert_true(n < 300);
		choir_tensor *number = choir_number(choir_values_frame(args), n);
		assert_int_equal(choir_values_set(args, "n", choir_tensor_as_value(number)), CHOIR_OK);
		assert_int_equal(choir_coordinator_schedule(w.c, "scarce", args, &value), CHOIR_OK);
		if (choir_coordinator_fetch(w.c, value, &result) != CHOIR_OK)
			fail_msg("allocation %d: %s", n, choir_error());
		made = number_of(result, "made");
		if (made != 0)
			assert_true(number_of(result, "sum") == 7);
		choir_remote_value_free(value);
		choir_values_free(args);
	}
	assert_true(n > 5);
	assert_int_equal(close_world(&w), 0);
}

// A worker may be lost, since its message or its connection may be what has no memory. A read
// gives all others, or nothing.
TEST(all_workers_are_read_or_none_when_memory_runs_out)
{
	world w;
	bool failed = true;
	int lost = 0;
	open_world(&w);
	for (uint64_t n = 1; failed; n++) {
		choir_values *sets[WORKERS];
		int found;
		assert_true(n < 300);
		call_each(&w);
		chi_alloc_fail(n, false);
		const choir_status status = choir_coordinator_read_all(w.c, "tell", WORKERS, sets, &found);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		const int gone = WORKERS - choir_coordinator_workers(w.c);
		if (status != (failed && gone == 0 ? CHOIR_NO_MEMORY : CHOIR_OK))
			fail_msg("allocation %d, %d gone: %s", (int) n, gone, choir_error());
		assert_int_equal(found, status == CHOIR_OK ? WORKERS - gone : 0);
		for (int i = 0; i < found; i++) {
			assert_true(number_of(sets[i], "count") >= 1);
			choir_values_free(sets[i]);
		}
		lost += gone;
		for (int i = 0; i < gone; i++)
			job_start(&w.j, "worker", 0, NULL);
	}
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	assert_int_equal(close_world(&w), lost);
}
