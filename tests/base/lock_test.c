// Mutexes exclude, conditions wake and time out, and debug builds catch every wrong order.
#include "base/lock.h"
#include "base/clock.h"
#include "base/thread.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 };

static chi_mutex shared = CHI_MUTEX_STATIC(CHI_RANK_POOL, "shared");

static void count_up(void *arg)
{
	int *count = arg;
	for (int i = 0; i < ROUNDS; i++) {
		chi_mutex_lock(&shared);
		++*count;
		chi_mutex_unlock(&shared);
	}
}

TEST(test_exclusion)
{
	int count = 0;
	chi_thread threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(chi_thread_start(&threads[i], "count", count_up, &count), CHOIR_OK);
	for (int i = 0; i < THREADS; i++)
		chi_thread_join(&threads[i]);
	assert_int_equal(count, THREADS * ROUNDS);
}

TEST(test_order)
{
	chi_mutex low, high;
	chi_mutex_init(&low, CHI_RANK_STRATEGY, "low");
	chi_mutex_init(&high, CHI_RANK_RUN, "high");
	chi_mutex_check_none_held();
	for (int i = 0; i < 3; i++) {
		chi_mutex_lock(&low);
		chi_mutex_lock(&high);
		chi_mutex_unlock(&low); // not the last one taken: fine
		chi_mutex_unlock(&high);
	}
	chi_mutex_check_none_held();
	chi_mutex_destroy(&low);
	chi_mutex_destroy(&high);
}

typedef struct {
	chi_mutex mutex;
	chi_cond cond;
	int turn, waiters;
} table;

static void table_init(table *t)
{
	*t = (table){ 0 };
	chi_mutex_init(&t->mutex, CHI_RANK_RUN, "table");
	chi_cond_init(&t->cond);
}

static void table_destroy(table *t)
{
	chi_cond_destroy(&t->cond);
	chi_mutex_destroy(&t->mutex);
}

TEST(test_deadline)
{
	table t;
	table_init(&t);
	chi_mutex_lock(&t.mutex);
	double start = chi_clock_now(), deadline = chi_clock_deadline(0.02);
	while (chi_cond_wait(&t.cond, &t.mutex, deadline))
		;
	assert_true(chi_clock_now() - start >= 0.019);
	assert_false(chi_cond_wait(&t.cond, &t.mutex, 0)); // long ago
	chi_mutex_unlock(&t.mutex);
	table_destroy(&t);
}

static void take_turns(void *arg)
{
	table *t = arg;
	chi_mutex_lock(&t->mutex);
	t->waiters++;
	for (int i = 0; i < 500; i++) {
		while (t->turn % 2 == 0)
			chi_cond_wait(&t->cond, &t->mutex, HUGE_VAL);
		t->turn++;
		chi_cond_signal(&t->cond);
	}
	chi_mutex_unlock(&t->mutex);
}

TEST(test_signals)
{
	table t;
	table_init(&t);
	chi_thread thread;
	assert_int_equal(chi_thread_start(&thread, "turns", take_turns, &t), CHOIR_OK);
	chi_mutex_lock(&t.mutex);
	double deadline = chi_clock_deadline(30);
	bool in_time = true;
	for (int i = 0; i < 500; i++) {
		while (t.turn % 2 == 1 && in_time)
			in_time = chi_cond_wait(&t.cond, &t.mutex, deadline);
		t.turn++;
		chi_cond_signal(&t.cond);
	}
	chi_mutex_unlock(&t.mutex);
	chi_thread_join(&thread);
	assert_true(in_time);
	assert_int_equal(t.turn, 1000);
	table_destroy(&t);
}

static void wait_for_turn(void *arg)
{
	table *t = arg;
	chi_mutex_lock(&t->mutex);
	t->waiters++;
	while (t->turn == 0)
		chi_cond_wait(&t->cond, &t->mutex, HUGE_VAL);
	t->waiters--;
	chi_mutex_unlock(&t->mutex);
}

static int waiters(table *t)
{
	chi_mutex_lock(&t->mutex);
	int count = t->waiters;
	chi_mutex_unlock(&t->mutex);
	return count;
}

TEST(test_broadcast)
{
	table t;
	table_init(&t);
	chi_thread threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(chi_thread_start(&threads[i], "wait", wait_for_turn, &t), CHOIR_OK);
	while (waiters(&t) < THREADS)
		usleep(100);
	chi_mutex_lock(&t.mutex);
	t.turn = 1;
	chi_cond_broadcast(&t.cond);
	chi_mutex_unlock(&t.mutex);
	for (int i = 0; i < THREADS; i++)
		chi_thread_join(&threads[i]);
	assert_int_equal(t.waiters, 0);
	table_destroy(&t);
}

#ifndef NDEBUG

static void take_downwards(chi_mutex *low, chi_mutex *high)
{
	chi_mutex_lock(high);
	chi_mutex_lock(low);
}

static void take_twice(chi_mutex *low, chi_mutex *high)
{
	(void) high;
	chi_mutex_lock(low);
	chi_mutex_lock(low);
}

static void release_unheld(chi_mutex *low, chi_mutex *high)
{
	chi_mutex_lock(low);
	chi_mutex_unlock(high);
}

static void wait_below(chi_mutex *low, chi_mutex *high)
{
	chi_cond cond;
	chi_cond_init(&cond);
	chi_mutex_lock(low);
	chi_mutex_lock(high);
	chi_cond_wait(&cond, low, 0);
}

static void call_out(chi_mutex *low, chi_mutex *high)
{
	chi_mutex_lock(low);
	chi_mutex_lock(high);
	chi_mutex_unlock(low);
	chi_mutex_check_none_held();
}

// Runs fn in a child, which must abort after one line that names the mutexes.
static void assert_caught(void (*fn)(chi_mutex *low, chi_mutex *high), const char *facts)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		chi_mutex low, high;
		chi_mutex_init(&low, CHI_RANK_STRATEGY, "low");
		chi_mutex_init(&high, CHI_RANK_RUN, "high");
		fn(&low, &high);
		_exit(0);
	}
	close(ends[1]);
	char text[256];
	ssize_t got = read(ends[0], text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	close(ends[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_text_holds(text, facts);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(test_wrong_order)
{
	assert_caught(take_downwards, "low (rank 10)*taken*high (rank 20)");
	assert_caught(take_twice, "low (rank 10)*taken*low (rank 10)");
	assert_caught(release_unheld, "high (rank 20)*released*low (rank 10)");
	assert_caught(wait_below, "low (rank 10)*wait*high (rank 20)");
	assert_caught(call_out, "high (rank 20)*held*program's code");
}

#else

TEST(test_wrong_order)
{
	skip(); // only debug builds check
}

#endif
