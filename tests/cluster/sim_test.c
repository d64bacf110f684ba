// The conformance suite on the played cluster, with all numbers of workers, delays and buffering;
// and what only it can do: workers that die, networks that are cut.
#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"
#include "choir/extend/suite.h"
#include "choir/log.h"
#include "cluster/cluster.h"
#include "cluster/worker_threads.h"
#include "cluster/suite.h"
#include "short.h"
#include "test.h"

#include <string.h>

static const choir_cluster_options timeouts = {
	.size = sizeof timeouts, .timeout = SUITE_TIMEOUT, .start_timeout = SUITE_TIMEOUT
};

static const char *run_program(choir_cluster *c, int worker, void *user)
{
	const suite_program *p = user;
	(void) worker;
	return c == NULL ? choir_error() : p->run(c);
}

TEST(the_suite_passes)
{
	static const int workers[] = { 1, 2, 3, 4, 5, 8 };
	static const size_t eager[] = { 0, 4096, SIZE_MAX };
	for (int p = 0; p < suite_count; p++)
		for (size_t n = 0; n < sizeof workers / sizeof workers[0]; n++)
			for (uint64_t seed = 0; seed < (SERIAL_STRIDE > 1 ? 1 : SHORT ? 2 : 6); seed++) {
				if (workers[n] < suite_programs[p].min)
					continue;
				const sim_options o = { .workers = workers[n],
					.seed = seed,
					.slowest = seed % 2 ? 0 : 0.1,
					.eager = eager[seed % 3] };
				sim *s = sim_new(&o);
				assert_non_null(s);
				suite_program program = suite_programs[p];
				worker_threads_run(s, workers[n], &timeouts, run_program, &program);
				sim_free(s);
			}
}

// Workers of one process have the same affinity mask.
static const char *shares(choir_cluster *c, int worker, void *user)
{
	(void) worker;
	const bool alone = *(const int *) user == 1;
	return c == NULL ? choir_error() : c->shares_processors != alone ? NULL : "wrong";
}

TEST(workers_know_who_shares_their_processors)
{
	for (int workers = 1; workers < 3; workers++) {
		sim *s = sim_new(&(sim_options){ .workers = workers });
		assert_non_null(s);
		worker_threads_run(s, workers, &timeouts, shares, &workers);
		sim_free(s);
	}
}

// The public suite of the table (choir/extend/suite.h).

enum { ROUNDS = 20 };

typedef struct {
	sim *s[ROUNDS];
	sim_argument argument[ROUNDS][2];
	sim_options o;
	int checks;
} rounds;

static const void *argument_of(int round, int worker, void *user)
{
	rounds *r = user;
	if (r->s[round] == NULL)
		r->s[round] = sim_new(&r->o);
	r->argument[round][worker] = (sim_argument){ r->s[round], worker };
	return &r->argument[round][worker];
}

static void count_check(const char *check, choir_status result, const char *text, void *user)
{
	rounds *r = user;
	if (result != CHOIR_OK)
		fail_msg("%s: %s", check, text);
	r->checks++;
}

TEST(the_suite_of_the_table_passes)
{
	static const size_t eager[] = { 0, 4096, SIZE_MAX };
	for (uint64_t seed = 0; seed < 6; seed++) {
		rounds r = { .o = { .workers = 2,
							 .seed = seed,
							 .slowest = seed % 2 ? 0 : 0.1,
							 .eager = eager[seed % 3] } };
		assert_int_equal(choir_suite_run(CHOIR_OPTIONS(choir_suite_options,
												 .transport = &sim_table, .argument = argument_of),
								 count_check, &r),
				CHOIR_OK);
		assert_int_equal(r.checks, 7);
		for (int i = 0; i < ROUNDS; i++)
			sim_free(r.s[i]);
	}
}

// All run barriers until something happens; each failure names the worker that died.
static const char *run_until_it_fails(choir_cluster *c, int worker, void *user)
{
	const int dies = *(int *) user;
	choir_status status = c == NULL ? choir_error_status() : CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < 100; i++)
		status = choir_cluster_barrier(c);
	const bool known =
			status == CHOIR_PEER_LOST || status == CHOIR_CANCELLED || status == CHOIR_TIMEOUT;
	if (!known)
		return status == CHOIR_OK ? "nothing failed" : choir_error();
	const char *words = worker == dies ? "was killed" : "worker";
	return strstr(choir_error(), words) != NULL ? NULL : choir_error();
}

// spec: D20
TEST(a_dead_worker_stops_all)
{
	for (int n = 2; n <= 4; n++)
		for (int dies = 0; dies < n; dies++)
			for (int call = 1; call < 40; call++) {
				const sim_options o = { .workers = n,
					.seed = (uint64_t) call,
					.slowest = 0.01,
					.eager = call % 2 ? SIZE_MAX : 0 };
				sim *s = sim_new(&o);
				assert_non_null(s);
				sim_kill(s, dies, call, call % 3 == 0);
				worker_threads_run(s, n, &timeouts, run_until_it_fails, &dies);
				sim_free(s);
			}
}

static const char *need_lost(choir_cluster *c, int worker, void *user)
{
	(void) user;
	if (c == NULL)
		return worker == 1 ? NULL : choir_error();
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK)
		status = choir_cluster_barrier(c);
	return worker == 1 ? NULL : suite_failure(status, CHOIR_PEER_LOST, "worker 1");
}

// spec: D20
TEST(a_death_that_is_seen_is_named)
{
	const sim_options o = { .workers = 2, .slowest = 0.01 };
	sim *s = sim_new(&o);
	assert_non_null(s);
	sim_kill(s, 1, 30, false);
	worker_threads_run(s, 2, &timeouts, need_lost, NULL);
	sim_free(s);
}

typedef struct {
	sim *s;
	bool mend;
} cut_case;

static const char *run_into_a_cut(choir_cluster *c, int worker, void *user)
{
	const cut_case *cut = user;
	if (c == NULL || choir_cluster_barrier(c) != CHOIR_OK)
		return choir_error();
	if (worker == 0)
		sim_cut(cut->s, 1); // worker 0 has no network any more
	const double begun = sim_now(cut->s);
	if (cut->mend && worker == 0)
		sim_cut(cut->s, 0);
	choir_status status = choir_cluster_barrier(c);
	if (status == CHOIR_OK)
		status = choir_cluster_barrier(c);
	if (cut->mend)
		return status == CHOIR_OK ? NULL : choir_error();
	if (status != CHOIR_TIMEOUT && status != CHOIR_CANCELLED)
		return status == CHOIR_OK ? "it went through a cut" : choir_error();
	return sim_now(cut->s) - begun <= 2 * SUITE_TIMEOUT + 1 ? NULL : "it took too long";
}

// spec: D20
TEST(a_cut_ends_in_the_deadline)
{
	for (int mend = 0; mend < 2; mend++)
		for (uint64_t seed = 0; seed < 10; seed++) {
			const sim_options o = { .workers = 3, .seed = seed, .slowest = 0.1 };
			cut_case cut = { sim_new(&o), mend };
			assert_non_null(cut.s);
			worker_threads_run(cut.s, 3, &timeouts, run_into_a_cut, &cut);
			sim_free(cut.s);
		}
}

static const char *run_mismatch(choir_cluster *c, int worker, void *user)
{
	(void) worker;
	return c == NULL ? choir_error() : suite_mismatch(c, *(const uint64_t *) user);
}

TEST(mismatches_are_named)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		const sim_options o = { .workers = 2 + (int) (seed % 3),
			.seed = seed,
			.slowest = 0.01,
			.eager = seed % 2 ? SIZE_MAX : 0 };
		sim *s = sim_new(&o);
		assert_non_null(s);
		worker_threads_run(s, o.workers, &timeouts, run_mismatch, &seed);
		sim_free(s);
	}
}

// ---- Long waits are said.

static chi_atomic32 lines;

static void count_line(choir_log_level level, const char *line, void *user)
{
	(void) user;
	if (level == CHOIR_LOG_WARNING && strstr(line, "worker 0 has waited 10 s for worker 1 (") &&
			strstr(line, ") in barrier; the timeout is 40 s") != NULL)
		chi_atomic32_add(&lines, 1);
}

static const char *wait_for_worker_1(choir_cluster *c, int worker, void *user)
{
	if (c == NULL)
		return choir_error();
	if (worker == 1) { // until the other has given up
		sim_rest(user, 1, true);
		const double begun = chi_clock_now();
		while (sim_now(user) < 39 && chi_clock_now() - begun < 60)
			chi_thread_nap(1e-3);
		sim_rest(user, 1, false);
		return NULL;
	}
	return choir_cluster_barrier(c) == CHOIR_TIMEOUT &&
					text_holds(choir_error(), "40.0*worker 1") &&
					text_holds(choir_error(), "barrier")
			? NULL
			: choir_error();
}

TEST(a_long_wait_is_logged_once)
{
	const choir_cluster_options long_timeout = { .size = sizeof long_timeout, .timeout = 40 };
	sim *s = sim_new(&(sim_options){ .workers = 2, .seed = 1 });
	assert_non_null(s);
	chi_atomic32_store(&lines, 0);
	choir_logger_set(CHOIR_LOG_WARNING, count_line, NULL);
	worker_threads_run(s, 2, &long_timeout, wait_for_worker_1, s);
	choir_logger_set(CHOIR_LOG_WARNING, NULL, NULL);
	assert_int_equal(chi_atomic32_load(&lines), 1);
	sim_free(s);
}

TEST(a_cluster_that_is_null)
{
	assert_int_equal(choir_cluster_worker(NULL), 0);
	assert_int_equal(choir_cluster_workers(NULL), 0);
	assert_int_equal(choir_cluster_task_index(NULL), 0);
	assert_false(choir_cluster_is_chief(NULL));
	assert_string_equal(choir_cluster_task_type(NULL), "");
	assert_string_equal(choir_cluster_worker_name(NULL, 0), "");
	assert_string_equal(choir_cluster_transport(NULL), "");
	choir_cluster_abort(NULL, "nobody");
}

static const char *do_everything(choir_cluster *c, int worker, void *user)
{
	int value = 1, all[2];
	(void) user;
	choir_status status = c == NULL ? choir_error_status() : choir_cluster_barrier(c);
	if (status == CHOIR_OK)
		status = choir_cluster_broadcast(c, 1, &value, sizeof value);
	if (status == CHOIR_OK)
		status = choir_cluster_all_gather(c, &worker, sizeof worker, all);
	chi_setting setting;
	chi_setting_set(&setting, "seed", "1");
	if (status == CHOIR_OK)
		status = chi_cluster_check_consistency(c, &setting, 1);
	return status == CHOIR_OK || choir_error()[0] != '\0' ? NULL : "a failure without a text";
}

TEST(the_nth_allocation_fails)
{
	worker_threads_every_allocation(&timeouts, do_everything, NULL);
}

TEST(virtual_time_costs_none)
{
	const double begun = chi_clock_now();
	for (uint64_t seed = 0; seed < 20; seed++) {
		const sim_options o = { .workers = 3, .seed = seed, .slowest = 1 };
		sim *s = sim_new(&o);
		assert_non_null(s);
		suite_program program = suite_programs[3];
		worker_threads_run(s, 3, NULL, run_program, &program);
		assert_true(sim_now(s) > 5);
		assert_true(sim_messages(s) > 50);
		sim_free(s);
	}
	assert_true(chi_clock_now() - begun < 100); // 20 runs of more than five virtual seconds
}
