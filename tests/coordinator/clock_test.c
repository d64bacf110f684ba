// A job while the system's time of day jumps: all waits and heartbeats use the monotonic clock.
#include "choir/coordinator.h"

#include "base/atomic.h"
#include "coordinator/job.h"
#include "test.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Each reading of the time of day is an hour before or after the last one, in all processes of the
// job, which are forks.
static chi_atomic32 readings;
static bool jumps;

int clock_gettime(clockid_t clock, struct timespec *out)
{
	const int result = (int) syscall(SYS_clock_gettime, clock, out);
	if (jumps && clock == CLOCK_REALTIME)
		out->tv_sec += chi_atomic32_add(&readings, 1) % 2 == 0 ? 3600 : -3600;
	return result;
}

static choir_status build(choir_strategy *s, void *user)
{
	(void) s, (void) user;
	return CHOIR_OK;
}

static choir_status wait_a_while(choir_closure *c, void *user)
{
	(void) c, (void) user;
	nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
	return CHOIR_OK;
}

static const choir_function functions[] = { { "wait", wait_a_while, NULL }, { NULL, NULL, NULL } };
static const choir_coordinator_options options = {
	.size = sizeof options, .functions = functions, .build = build, .program = "clock"
};

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void need_workers(const choir_coordinator *c, int n)
{
	const double until = seconds() + 10;
	while (choir_coordinator_workers(c) != n && seconds() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(choir_coordinator_workers(c), n);
}

TEST(the_time_of_day_may_jump)
{
	job j = { .options = &options, .lost_after = 1 };
	struct timespec once, again;
	jumps = true;
	clock_gettime(CLOCK_REALTIME, &once);
	clock_gettime(CLOCK_REALTIME, &again);
	assert_true(once.tv_sec - again.tv_sec > 7000);
	job_open(&j, 1, true);
	job_start(&j, "ps", 0, NULL);
	const int victim = job_start(&j, "worker", 0, NULL);
	job_start(&j, "worker", 0, NULL);
	choir_task *task = job_task(&j, "coordinator", 0);
	choir_strategy *s = choir_parameter_server_strategy_new(NULL);
	choir_coordinator *c = choir_coordinator_new(s, task, &options);
	if (c == NULL)
		fail_msg("%s", choir_error());
	need_workers(c, 2);
	for (int i = 0; i < 50; i++)
		assert_int_equal(choir_coordinator_schedule(c, "wait", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(c), CHOIR_OK);
	const double begin = seconds();
	while (seconds() < begin + 2) { // only heartbeats
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		assert_int_equal(choir_coordinator_workers(c), 2);
	}
	const double stopped = seconds();
	assert_int_equal(kill(j.pid[victim], SIGSTOP), 0);
	need_workers(c, 1);
	const double took = seconds() - stopped;
	assert_true(took > 0.5 && took < 8); // a busy machine
	assert_int_equal(choir_coordinator_schedule(c, "wait", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(c), CHOIR_OK);
	kill(j.pid[victim], SIGKILL);
	assert_int_equal(job_wait(&j, victim), -1);
	choir_coordinator_free(c);
	assert_int_equal(job_wait(&j, 0), CHOIR_OK);
	assert_int_equal(job_wait(&j, 2), CHOIR_OK);
	choir_strategy_free(s);
	choir_task_free(task);
	job_close(&j);
	jumps = false;
}
