// Values of one worker: each worker has its own, closures change them, and all can be read.
#include "choir/coordinator.h"

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

static const choir_function functions[] = { { "counter", counter, NULL }, { "count", count, NULL },
	{ "tell", tell, NULL }, { "fails", fails, NULL }, { "spoilt", spoilt, NULL },
	{ NULL, NULL, NULL } };

// spec: D19, 2.16
TEST(workers_have_their_own_values_which_can_be_read_together)
{
	const choir_coordinator_options options = {
		.size = sizeof options, .functions = functions, .build = build, .program = "values"
	};
	job j = { .options = &options };
	choir_values *sets[WORKERS];
	double sum = 0;
	int n;
	job_open(&j, 1, false);
	job_start(&j, "ps", 0, NULL);
	for (int i = 0; i < WORKERS; i++)
		job_start(&j, "worker", 0, NULL);
	choir_task *task = job_task(&j, "coordinator", 0);
	choir_strategy *s = choir_parameter_server_strategy_new(NULL);
	choir_coordinator *c = choir_coordinator_new(s, task, &options);
	if (c == NULL)
		fail_msg("%s", choir_error());
	for (int i = 0; choir_coordinator_workers(c) < WORKERS && i < 5000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(choir_coordinator_schedule(c, "count", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(c), CHOIR_OK);
	assert_int_equal(choir_coordinator_read_all(c, "tell", WORKERS, sets, &n), CHOIR_OK);
	assert_int_equal(n, WORKERS);
	for (int i = 0; i < n; i++) {
		assert_true(number_of(sets[i], "worker") == i);
		sum += number_of(sets[i], "count") - 1;
		choir_values_free(sets[i]);
	}
	assert_true(sum == CALLS);
	assert_int_equal(choir_coordinator_read_all(c, "tell", 2, sets, &n), CHOIR_INVALID);
	assert_text_holds(choir_error(), "capacity of 2*3 workers");
	assert_int_equal(choir_coordinator_read_all(c, "no such", WORKERS, sets, &n), CHOIR_NOT_FOUND);
	assert_int_equal(choir_coordinator_read_all(c, "spoilt", WORKERS, sets, &n), CHOIR_INVALID);
	assert_text_holds(choir_error(), "this closure fails*worker");
	assert_int_equal(n, 0);
	assert_int_equal(choir_coordinator_join(c), CHOIR_OK); // it was told
	choir_coordinator_free(c);
	for (int i = 0; i < j.n; i++)
		assert_int_equal(job_wait(&j, i), CHOIR_OK);
	choir_strategy_free(s);
	choir_task_free(task);
	job_close(&j);
}
