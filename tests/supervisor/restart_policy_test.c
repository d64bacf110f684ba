// The restart policy's sentences and decisions, one case at a time. schedule_test.c has random
// schedules.
#include "supervisor/restart_policy.h"

#include "base/alloc.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct {
	chi_restart_policy *v;
	int started, workers, stopped, killed, capacity, replaced, released;
	char said[8192], events[16384], lost[CHI_HOST_NAME];
} job;

static void start(void *user, int attempt, int workers)
{
	(void) user;
	job.started = attempt;
	job.workers = workers;
}

static void stop(void *user)
{
	(void) user;
	job.stopped++;
}

static void kill_all(void *user)
{
	(void) user;
	job.killed++;
}

static int capacity(void *user, const char *lost)
{
	(void) user;
	snprintf(job.lost, sizeof job.lost, "%s", lost);
	return job.capacity;
}

static void add(char *to, size_t size, const char *line)
{
	const size_t at = strlen(to);
	snprintf(to + at, size - at, "%s\n", line);
}

static void say(void *user, const char *line)
{
	(void) user;
	add(job.said, sizeof job.said, line);
}

static void event(void *user, const char *json)
{
	(void) user;
	add(job.events, sizeof job.events, json);
}

static void replace(void *user, int attempt, int worker, bool again)
{
	(void) user;
	assert_int_equal(attempt, job.started);
	job.replaced += again ? worker : 0;
	job.released++;
}

static chi_restart_policy_options options_of(int workers, int restarts)
{
	return (chi_restart_policy_options){ .workers = workers,
		.min_workers = workers > 1 ? workers - 1 : 1,
		.restarts = restarts,
		.lost_after = 5,
		.start_timeout = 60,
		.stop_timeout = 30,
		.end_timeout = 10 };
}

static void begin_with(const chi_restart_policy_options *o)
{
	const chi_restart_policy_owner owner = { NULL, start, stop, kill_all, capacity, say, event,
		replace };
	chi_restart_policy_free(job.v);
	memset(&job, 0, sizeof job);
	job.capacity = 100;
	job.v = chi_restart_policy_new(o, &owner);
	chi_restart_policy_begin(job.v, 0);
	assert_int_equal(job.started, 1);
}

static void join_all(double now)
{
	static const char *const hosts[] = { "a", "a", "b", "b" };
	for (int i = 0; i < job.workers; i++)
		chi_restart_policy_joined(job.v, now, job.started, i, hosts[i % 4], 100 + i);
}

static void begin(int workers, int restarts)
{
	const chi_restart_policy_options o = options_of(workers, restarts);
	begin_with(&o);
	join_all(0.1);
}

static chi_worker_report at_step(int worker, uint64_t step)
{
	chi_worker_report r = { .health.state = CHI_HEALTH_OPEN };
	r.health.step = step;
	r.health.steps = step + 1;
	r.health.first_replica = 2 * worker;
	r.health.replicas = 2;
	r.health.sequence = 90;
	snprintf(r.health.what, sizeof r.health.what, "all_reduce of 10 f32, w:grad");
	return r;
}

static chi_worker_report finished(int worker)
{
	chi_worker_report r = at_step(worker, 10);
	r.health.state = CHI_HEALTH_FINISHED;
	return r;
}

static chi_worker_report failed(int worker, choir_status status, const char *text, bool by_other)
{
	chi_worker_report r = at_step(worker, 10);
	r.health.state = CHI_HEALTH_FAILED;
	r.health.status = status;
	r.health.by_other = by_other;
	snprintf(r.health.text, sizeof r.health.text, "%s", text);
	return r;
}

static void hear(double now, int worker, chi_worker_report r)
{
	chi_restart_policy_heard(job.v, now, job.started, worker, &r);
}

static void end(double now, int worker, chi_worker_report r, bool by_signal, int number)
{
	const chi_process_end how = { by_signal, number, false };
	chi_restart_policy_ended(job.v, now, job.started, worker, &r, &how);
}

static void all_gone(double now)
{
	const int attempt = job.started, n = job.workers;
	for (int i = 0; i < n; i++)
		chi_restart_policy_gone(job.v, now, attempt, i, CHOIR_END, "");
}

static choir_status result(int *number)
{
	const char *text;
	assert_int_equal(chi_restart_policy_now(job.v), CHI_RESTART_POLICY_OVER);
	return chi_restart_policy_result(job.v, number, &text);
}

static void need(choir_status status)
{
	int number;
	assert_int_equal(result(&number), status);
	assert_int_equal(number, 0);
}

static void tick_until(double from, double to)
{
	for (double now = from; now <= to; now += 0.25)
		chi_restart_policy_tick(job.v, now);
}

TEST(success_needs_a_record_from_each)
{
	begin(2, 0);
	end(1, 0, finished(0), false, 0);
	assert_int_equal(chi_restart_policy_now(job.v), CHI_RESTART_POLICY_RUNS);
	end(2, 1, finished(1), false, 0);
	all_gone(2);
	need(CHOIR_OK);
	begin(2, 0); // an exit status of 0 is no record
	end(1, 0, finished(0), false, 0);
	end(2, 1, at_step(1, 3), false, 0);
	assert_text_holds(job.said, "worker 1 (a, pid 101, replicas 2 to 3)*status 0*step 3");
	all_gone(2);
	need(CHOIR_PEER_LOST);
	begin(1, 0); // nor is a record with another status
	end(1, 0, finished(0), false, 3);
	assert_text_holds(job.said, "worker 0*exited with status 3*left its cluster");
	begin(1, 0);
	end(1, 0, (chi_worker_report){ 0 }, false, 0);
	assert_text_holds(job.said, "choir_cluster_new");
}

TEST(a_killed_worker_is_the_cause)
{
	begin(4, 1);
	chi_worker_report waits = at_step(0, 1503);
	waits.health.waiting = true;
	waits.health.peer = 2;
	hear(1, 0, waits);
	hear(1, 2, at_step(2, 1503));
	chi_worker_report last = at_step(2, 1503);
	last.health.saved = 1501;
	end(2, 2, last, true, SIGKILL);
	assert_int_equal(job.killed, 1);
	assert_text_holds(job.said,
			"worker 2 (b, pid 102, replicas 4 to 5)*killed by SIGKILL*step 1503*"
			"all_reduce of 10 f32, w:grad*90*workers that wait: 0");
	assert_text_holds(job.events,
			"\"event\": \"failure\"*\"worker\": 2*\"host\": \"b\"*\"pid\": 102*"
			"\"step\": 1503*\"saved_step\": 1500");
	end(2.1, 1, at_step(1, 1503), true, SIGKILL); // by the supervisor
	all_gone(2.1);
	assert_text_holds(job.said, "restart 1 of 1 with 4 workers*step 1500");
	chi_restart_policy_tick(job.v, 2.2);
	assert_int_equal(job.started, 2);
	last.out_of_memory = true;
	join_all(3);
	end(4, 2, last, true, SIGKILL);
	assert_text_holds(job.said, "run out of memory");
	all_gone(4);
	need(CHOIR_PEER_LOST);
	assert_text_holds(job.said, "gives up after 1 restart");
}

TEST(consequences_wait_for_their_cause)
{
	begin(4, 0);
	end(1, 0, failed(0, CHOIR_CANCELLED, "worker 3 stopped: bad", true), false, 1);
	hear(1.1, 1, failed(1, CHOIR_TIMEOUT, "waited 60 s for worker 3", false));
	assert_int_equal(job.killed, 0);
	end(1.3, 3, failed(3, CHOIR_IO, "disk full", false), false, 1);
	assert_text_holds(job.said, "worker 3*disk full");
	begin(4, 0); // without a cause, the best that is known
	end(1, 0, failed(0, CHOIR_CANCELLED, "worker 3 stopped: bad", true), false, 1);
	hear(1.1, 1, failed(1, CHOIR_TIMEOUT, "waited 60 s for worker 3", false));
	tick_until(1.2, 3.5);
	assert_text_holds(job.said, "worker 1*waited 60 s");
	begin(4, 0); // a worker that reports a failure may finish its last words
	hear(1, 3, failed(3, CHOIR_IO, "disk full", false));
	assert_int_equal(job.killed, 0);
	tick_until(1.1, 3.5);
	assert_text_holds(job.said, "worker 3*disk full");
	begin(4, 0); // a launcher that ends before its workers is not to blame if one of them died
	chi_restart_policy_launcher_ended(job.v, 1, 1, "", "mpirun exited with status 137");
	assert_int_equal(job.killed, 0);
	end(1.2, 2, at_step(2, 5), true, SIGSEGV);
	assert_text_holds(job.said, "worker 2*SIGSEGV");
	begin(4, 0); // an MPI has aborted worker 0, because worker 2 was killed
	end(1, 0, at_step(0, 5), true, SIGABRT);
	assert_int_equal(job.killed, 0);
	end(1.1, 2, at_step(2, 5), true, SIGKILL);
	assert_text_holds(job.said, "worker 2*SIGKILL");
	begin(4, 0);
	tick_until(0.25, 1);
	end(1, 0, at_step(0, 5), true, SIGABRT);
	tick_until(1.3, 1.6);
	assert_text_holds(job.said, "worker 0*SIGABRT");
	begin(4, 0);
	chi_restart_policy_launcher_ended(job.v, 1, 1, "", "mpirun exited with status 137");
	tick_until(1.1, 3.5);
	assert_text_holds(job.said, "mpirun exited with status 137 before all workers had ended");
}

// spec: D20
TEST(silence_is_named_with_its_host)
{
	begin(4, 0);
	for (double now = 1; now < 7; now += 0.25) {
		for (int i = 0; i < 4; i++) {
			chi_worker_report r = at_step(i, 7);
			r.silence = i == 1 ? now - 1 : 0;
			hear(now, i, r);
		}
		chi_restart_policy_tick(job.v, now);
	}
	assert_text_holds(job.said, "worker 1 (a, pid 101*no heartbeat for 5.0 s (it is stopped)");
	begin(4, 1);
	for (double now = 1; now < 7; now += 0.25) {
		for (int i = 0; i < 2; i++)
			hear(now, i, at_step(i, 7));
		for (int i = 2; now < 1.1 && i < 4; i++)
			hear(now, i, at_step(i, 7));
		chi_restart_policy_tick(job.v, now);
	}
	assert_text_holds(job.said, "worker 2 (b*no heartbeat for*all workers of host b: 2 3");
	chi_restart_policy_gone(job.v, 6.8, 1, 0, CHOIR_END, "");
	chi_restart_policy_gone(job.v, 6.8, 1, 1, CHOIR_END, "");
	job.capacity = 3;
	assert_int_equal(chi_restart_policy_now(job.v),
			CHI_RESTART_POLICY_ENDS); // until host b has fenced itself
	tick_until(6.9, 8);
	assert_int_equal(job.started, 2);
	assert_string_equal(job.lost, "b");
	assert_int_equal(job.workers, 3); // fewer
	begin(2, 0);
	chi_restart_policy_gone(job.v, 1, 1, 1, CHOIR_PEER_LOST, "the connection was closed");
	assert_text_holds(job.said, "worker 1*lost; its agent: the connection was closed");
}

TEST(time_that_this_process_has_not_seen_does_not_count)
{
	begin(2, 0);
	hear(1, 0, at_step(0, 1));
	hear(1, 1, at_step(1, 1));
	chi_restart_policy_tick(job.v, 1);
	chi_restart_policy_tick(job.v, 1000);
	assert_string_equal(job.said, "");
	tick_until(1000.25, 1004);
	assert_string_equal(job.said, "");
	tick_until(1004.25, 1006);
	assert_text_holds(job.said, "no heartbeat");
}

static void fail_once(double now, uint64_t step, const char *why, bool by_signal, int number)
{
	join_all(now);
	hear(now, 0, at_step(0, step));
	chi_worker_report r = why == NULL ? at_step(1, step) : failed(1, CHOIR_INVALID, why, false);
	r.health.step = step;
	end(now, 1, r, by_signal, number);
	all_gone(now);
	chi_restart_policy_tick(job.v, now + 0.1);
}

TEST(the_same_failure_twice_ends_the_job)
{
	begin(2, 9);
	fail_once(1, 7, "bad (pid 100)", false, 1);
	fail_once(2, 7, "bad (pid 200)", false, 1);
	need(CHOIR_STATE);
	assert_text_holds(job.said, "same way twice");
	begin(2, 9);
	fail_once(1, 7, "bad", false, 1);
	fail_once(2, 8, "bad", false, 1); // another step
	fail_once(3, 8, "worse", false, 1); // in another way
	fail_once(4, 8, NULL, true, SIGKILL); // from outside
	fail_once(5, 8, NULL, true, SIGKILL);
	fail_once(6, 8, NULL, true, SIGSEGV);
	assert_int_equal(job.started, 7);
	fail_once(7, 8, NULL, true, SIGSEGV);
	need(CHOIR_STATE);
}

TEST(attempts_without_a_step_are_further_and_further_apart)
{
	begin(1, 9);
	double now = 0.1, pauses[] = { 1, 2, 4, 8 };
	for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
		const int attempt = job.started;
		chi_restart_policy_joined(job.v, now, attempt, 0, "a", 1);
		end(now, 0, (chi_worker_report){ 0 }, true, SIGKILL);
		all_gone(now);
		tick_until(now, now + pauses[i] - 0.3);
		assert_int_equal(job.started, attempt);
		tick_until(now + pauses[i] - 0.3, now + pauses[i] + 0.3);
		assert_int_equal(job.started, attempt + 1);
		now += pauses[i] + 0.3;
	}
}

TEST(a_stop_lets_workers_save)
{
	int number;
	begin(2, 3);
	chi_restart_policy_stop(job.v, 1, SIGTERM);
	assert_int_equal(job.stopped, 1);
	end(2, 0, finished(0), false, CHI_EXIT_STOPPED);
	end(2, 1, finished(1), false, CHI_EXIT_STOPPED);
	all_gone(2);
	need(CHOIR_CANCELLED);
	begin(1, 3); // a program that knows nothing of stops
	chi_restart_policy_stop(job.v, 1, SIGTERM);
	end(2, 0, at_step(0, 1), true, SIGTERM);
	all_gone(2);
	assert_int_equal(result(&number), CHOIR_CANCELLED);
	assert_int_equal(number, SIGTERM);
	begin(1, 3); // one that ignores them
	chi_restart_policy_tick(job.v, 1);
	chi_restart_policy_stop(job.v, 1, SIGTERM);
	for (double now = 1.25; now < 32; now += 0.25) {
		hear(now, 0, at_step(0, 1));
		chi_restart_policy_tick(job.v, now);
	}
	assert_text_holds(job.said, "not stopped within 30 s");
	assert_int_equal(job.killed, 1);
	begin(1, 3); // the second signal does not wait
	chi_restart_policy_stop(job.v, 1, SIGTERM);
	chi_restart_policy_stop(job.v, 1.1, SIGINT);
	assert_int_equal(job.killed, 1);
	all_gone(1.2);
	assert_int_equal(result(&number), CHOIR_CANCELLED);
	assert_int_equal(number, SIGINT);
	const chi_restart_policy_options o = options_of(2, 3);
	begin_with(&o); // nobody is there yet
	chi_restart_policy_stop(job.v, 1, SIGTERM);
	assert_int_equal(job.killed, 1);
	assert_int_equal(result(&number), CHOIR_CANCELLED);
	begin_with(&o); // who comes later does not start
	chi_restart_policy_joined(job.v, 1, 1, 0, "a", 1);
	chi_restart_policy_stop(job.v, 1, SIGTERM);
	assert_false(chi_restart_policy_joined(job.v, 2, 1, 1, "a", 2));
	begin(1, 3); // a failure while it stops is a failure, and nothing starts again
	chi_restart_policy_stop(job.v, 1, SIGTERM);
	end(2, 0, failed(0, CHOIR_IO, "disk full", false), false, 1);
	all_gone(2);
	need(CHOIR_PEER_LOST);
	assert_text_holds(job.said, "disk full");
	begin(1, 3); // in a pause there is nothing to stop
	end(1, 0, (chi_worker_report){ 0 }, true, SIGKILL);
	all_gone(1);
	assert_int_equal(chi_restart_policy_now(job.v), CHI_RESTART_POLICY_PAUSES);
	chi_restart_policy_stop(job.v, 1.1, SIGTERM);
	assert_int_equal(result(&number), CHOIR_CANCELLED);
}

TEST(long_waits_are_reported_and_may_end_the_job)
{
	chi_restart_policy_options o = options_of(3, 0);
	o.stall = 30;
	begin_with(&o);
	join_all(0.1);
	for (double now = 1; now < 40; now += 0.25) {
		for (int i = 0; i < 3; i++) {
			chi_worker_report r = at_step(i, 7);
			r.health.waiting = i != 1;
			r.health.peer = 1;
			r.unchanged = now - 1;
			hear(now, i, r);
		}
		chi_restart_policy_tick(job.v, now);
	}
	assert_text_holds(job.said,
			"workers 0 2 have waited up to 10 s for worker 1 (a, pid 101*"
			"computing*step 7*worker 1*keeps other workers waiting for 30.0 s");
}

TEST(workers_that_do_not_come_or_do_not_end)
{
	const chi_restart_policy_options o = options_of(2, 0);
	begin_with(&o);
	chi_restart_policy_joined(job.v, 1, 1, 0, "a", 1);
	for (double now = 1; now < 61; now += 0.25) {
		hear(now, 0, at_step(0, 0));
		chi_restart_policy_tick(job.v, now);
	}
	assert_text_holds(job.said, "1 of 2 workers have joined within 60 s");
	begin(2, 0);
	chi_restart_policy_tick(job.v, 1);
	end(1, 0, finished(0), false, 0);
	for (double now = 1; now < 12; now += 0.25) {
		hear(now, 1, finished(1));
		chi_restart_policy_tick(job.v, now);
	}
	assert_text_holds(job.said, "worker 1*has finished but does not end; killed");
	all_gone(12);
	need(CHOIR_OK);
	begin_with(&o); // the launcher says why nobody has come
	chi_restart_policy_launcher_ended(
			job.v, 1, 1, "bad", "ssh to host bad exited with status 255");
	assert_text_holds(job.said, "ssh to host bad*255*joined");
	job.capacity = 0;
	begin(2, 1);
	job.capacity = 0;
	end(1, 0, at_step(0, 1), true, SIGKILL);
	all_gone(1);
	assert_text_holds(job.said, "capacity for 0 workers; at least 1");
	need(CHOIR_PEER_LOST);
}

TEST(strange_reports_are_ignored)
{
	begin(2, 0);
	const chi_worker_report r = at_step(0, 1);
	const chi_process_end how = { true, SIGKILL, false };
	chi_restart_policy_joined(job.v, 1, 1, -1, "x", 1);
	chi_restart_policy_joined(job.v, 1, 1, 2, "x", 1);
	chi_restart_policy_joined(job.v, 1, 1, 0, "x", 1); // a second time
	chi_restart_policy_heard(job.v, 1, 7, 0, &r);
	chi_restart_policy_ended(job.v, 1, 0, 0, &r, &how);
	chi_restart_policy_ended(job.v, 1, 1, 99, &r, &how);
	chi_restart_policy_gone(job.v, 1, 2, 0, CHOIR_PEER_LOST, "the connection was closed");
	chi_restart_policy_launcher_ended(job.v, 1, 0, "", "an old one");
	assert_string_equal(job.said, "");
	assert_int_equal(chi_restart_policy_now(job.v), CHI_RESTART_POLICY_RUNS);
}

TEST(the_state_is_shown)
{
	chi_text text = { 0 };
	char line[100];
	begin(2, 3);
	chi_worker_report r = at_step(1, 12);
	snprintf(r.health.what, sizeof r.health.what, "\x1b[2J");
	hear(1, 1, r);
	chi_restart_policy_describe(job.v, 2, false, &text);
	assert_text_holds(text.data,
			"attempt 1*restart 0 of 3*worker 0 (a, pid 100): starting*"
			"worker 1*computing in step 12*\\x1b");
	assert_null(strchr(text.data, '\x1b'));
	chi_text_free(&text);
	chi_restart_policy_describe(job.v, 2, true, &text);
	assert_text_holds(text.data, "\"phase\": \"runs\"*\"restarts\": 0*\"worker\": 1*\"step\": 12");
	assert_null(strchr(text.data, '\x1b'));
	chi_text_free(&text);
	assert_string_equal(
			chi_restart_policy_progress(job.v, line, sizeof line), "2 of 2 workers, step 12");
}

static void begin_spare(int workers)
{
	chi_restart_policy_options o = options_of(workers, 0);
	o.spare_from = 2;
	begin_with(&o);
	join_all(0.1);
}

TEST(a_spare_worker_starts_again)
{
	begin_spare(4);
	hear(1, 3, at_step(3, 7));
	end(2, 3, at_step(3, 7), true, SIGKILL);
	assert_text_holds(job.said, "worker 3*died: killed by SIGKILL; the other workers go on");
	assert_int_equal(job.killed, 0);
	tick_until(2, 2.75);
	assert_int_equal(job.released, 0);
	chi_restart_policy_tick(job.v, 3);
	assert_int_equal(job.replaced, 3);
	assert_true(chi_restart_policy_joined(job.v, 3.5, 1, 3, "b", 200));
	for (double now = 3.5; now < 30; now++) { // the others are heard, and it is silent
		for (int i = 0; i < 3; i++)
			hear(now, i, at_step(i, 9));
		chi_restart_policy_tick(job.v, now);
	}
	assert_text_holds(job.said, "worker 3*sent no heartbeat*it starts again");
	assert_int_equal(job.replaced, 6);
	for (int i = 0; i < 3; i++)
		end(31, i, finished(i), false, 0); // while it starts
	assert_int_equal(chi_restart_policy_now(job.v), CHI_RESTART_POLICY_ENDS);
	all_gone(31);
	need(CHOIR_OK);
}

TEST(a_spare_worker_that_never_steps_does_not_start_again)
{
	begin_spare(3);
	for (int i = 0; i < 2; i++) {
		end(1 + 3 * i, 2, (chi_worker_report){ 0 }, false, 1);
		assert_int_equal(job.released, i);
		hear(3 + 3 * i, 0, at_step(0, 1));
		hear(3 + 3 * i, 1, at_step(0, 1));
		chi_restart_policy_tick(job.v, 3 + 3 * i);
		assert_int_equal(job.released, i + 1);
		assert_int_equal(chi_restart_policy_joined(job.v, 3 + 3 * i, 1, 2, "a", 300), i == 0);
	}
	assert_text_holds(
			job.said, "worker 2*status 1*it starts again*worker 2*it does not start again");
	assert_int_equal(job.replaced, 2);
	// A server is no spare worker, and what follows from its end is no failure of a worker.
	begin_spare(4);
	hear(1, 0, at_step(0, 3));
	end(2, 1, (chi_worker_report){ 0 }, true, SIGKILL);
	end(2.1, 3, failed(3, CHOIR_PEER_LOST, "ps 0 is lost", true), false, 1);
	all_gone(3);
	need(CHOIR_PEER_LOST);
	assert_text_holds(job.said, "worker 1*killed by SIGKILL*in step 3");
	assert_int_equal(job.released, 0);
	begin_spare(3); // a stop
	chi_restart_policy_stop(job.v, 1, SIGTERM);
	end(2, 0, finished(0), false, CHI_EXIT_STOPPED);
	end(2, 2, at_step(2, 3), true, SIGKILL);
	end(2, 1, finished(1), false, 0);
	all_gone(3);
	need(CHOIR_CANCELLED);
}

TEST(memory_may_run_out)
{
	const chi_restart_policy_options o = options_of(2, 0);
	const chi_restart_policy_owner owner = { NULL, start, stop, kill_all, capacity, say, event,
		replace };
	for (uint64_t n = 1; n <= 2; n++) {
		chi_alloc_fail(n, false);
		assert_null(chi_restart_policy_new(&o, &owner));
		chi_alloc_fail(0, false);
	}
	begin(2, 0);
	chi_alloc_fail(1, true); // events are lost, the job is not
	end(1, 0, finished(0), false, 0);
	end(1, 1, finished(1), false, 0);
	all_gone(1);
	chi_alloc_fail(0, false);
	need(CHOIR_OK);
	chi_restart_policy_free(job.v);
	job.v = NULL;
}
