// prefetch: the same elements, end and failures as without it, whatever the thread is doing when
// the dataset is rewound or freed.
#include "data/elements.h"

#include "base/atomic.h"
#include "base/status.h"
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const choir_column number = { .name = "number", .dtype = CHOIR_I64 };

static void nap(long milliseconds)
{
	nanosleep(&(struct timespec){ .tv_nsec = milliseconds * 1000000 }, NULL);
}

TEST(everything_comes_in_order)
{
	static const int ahead[] = { 1, 2, 3, 7, 1000 };
	for (size_t a = 0; a < sizeof ahead / sizeof ahead[0]; a++)
		for (int kind = 0; kind < 3; kind++) {
			choir_dataset *d = kind == 1 ? numbers_in_memory(100) : numbers_as_stream(100);
			if (kind == 2)
				d = choir_dataset_batch(d, 9);
			d = choir_dataset_prefetch(d, ahead[a]);
			if (a % 2 && kind != 2)
				d = choir_dataset_batch(d, 6);
			for (int i = 0; i < 3; i++) {
				pass p;
				read_pass(d, MAX_NUMBERS, &p);
				assert_int_equal(p.status, CHOIR_END);
				assert_int_equal(p.n, 100);
				for (int64_t j = 0; j < 100; j++)
					assert_int_equal(p.number[j], j);
				assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
			}
			choir_dataset_free(d);
		}
}

TEST(failures_arrive_in_their_place)
{
	number_source s = { .n = 50, .fail_at = 21, .message = "torn" };
	choir_dataset *d = choir_dataset_prefetch(choir_dataset_batch(numbers_from(&s), 5), 30);
	pass p;
	read_pass(d, MAX_NUMBERS, &p);
	assert_int_equal(p.status, CHOIR_IO);
	assert_int_equal(p.n, 20);
	assert_failure(CHOIR_IO, "function dataset: example 21:");
	int64_t capacity[5];
	chi_element e = { .column = { capacity }, .capacity = 5 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_IO);
	assert_failure(CHOIR_IO, "torn");
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	s.fail_at = -1;
	read_pass(d, MAX_NUMBERS, &p);
	assert_int_equal(p.status, CHOIR_END);
	assert_int_equal(p.n, 50);
	choir_dataset_free(d);
}

TEST(what_came_before_a_failure_is_handed_out)
{
	for (int ahead = 1; ahead <= 100; ahead = 3 * ahead + 1) {
		number_source s = { .n = 60, .fail_at = 47, .message = "torn" };
		choir_dataset *d = choir_dataset_prefetch(numbers_from(&s), ahead);
		pass p;
		read_pass(d, MAX_NUMBERS, &p);
		assert_int_equal(p.n, 47);
		assert_failure(CHOIR_IO, "function dataset: example 47:");
		choir_dataset_free(d);
	}
	// The same elements as without, whatever the steps in between.
	for (int kind = 0; kind < 3; kind++) {
		pass found[2];
		for (int ahead = 0; ahead < 2; ahead++) {
			number_source s = { .n = 60, .fail_at = 47, .message = "torn" };
			choir_dataset *d = numbers_from(&s);
			if (kind == 1)
				d = choir_dataset_shuffle(d, 5, 1);
			if (kind == 2)
				d = choir_dataset_unbatch(choir_dataset_batch(d, 4));
			if (ahead)
				d = choir_dataset_prefetch(d, 100);
			read_pass(d, MAX_NUMBERS, &found[ahead]);
			assert_failure(CHOIR_IO, "torn");
			choir_dataset_free(d);
		}
		assert_int_equal(found[1].n, found[0].n);
		assert_true(found[0].n >= 42);
		assert_memory_equal(
				found[1].number, found[0].number, (size_t) found[0].n * sizeof(int64_t));
	}
}

// The program puts in an example only when it has seen the one before.
TEST(examples_that_are_there_are_not_held_back)
{
	alarm(100);
	choir_queue *q;
	choir_dataset *d = choir_queue_dataset_new(
			1, &number, CHOIR_OPTIONS(choir_queue_options, .timeout = CHOIR_FOREVER), &q);
	d = choir_dataset_prefetch(d, 8);
	for (int64_t i = 0; i < 20; i++) {
		pass p;
		assert_int_equal(choir_queue_put(q, 1, (const void *const[]){ &i }, 0), CHOIR_OK);
		read_pass(d, 1, &p);
		assert_int_equal(p.status, CHOIR_OK);
		assert_int_equal(p.number[0], i);
	}
	choir_dataset_free(d);
	choir_queue_free(q);
	alarm(0);
}

// A source that says how far it was read, and sees the thread that reads it.
typedef struct {
	chi_atomic32 read;
	chi_atomic32 signals; // that the reading thread would take
} watched;

static choir_status watch(int64_t position, void *const out[], void *user)
{
	watched *w = user;
	sigset_t mask;
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	if (!sigismember(&mask, SIGINT) || !sigismember(&mask, SIGTERM) ||
			!sigismember(&mask, SIGUSR1))
		chi_atomic32_add(&w->signals, 1);
	chi_atomic32_add(&w->read, 1);
	*(int64_t *) out[0] = position;
	return position < 1000 ? CHOIR_OK : CHOIR_END;
}

TEST(it_reads_so_far_ahead_and_no_farther)
{
	watched w = { .read = { 0 } };
	choir_dataset *d = choir_generator_dataset_new(1, &number, watch, &w);
	d = choir_dataset_prefetch(choir_dataset_batch(d, 4), 3);
	nap(20);
	assert_int_equal(chi_atomic32_load(&w.read), 0);
	pass p;
	read_pass(d, 4, &p);
	while (chi_atomic32_load(&w.read) < 16)
		nap(2);
	nap(20);
	assert_int_equal(chi_atomic32_load(&w.read), 16); // one element out, three waiting
	assert_int_equal(chi_atomic32_load(&w.signals), 0); // those are the host's
	choir_dataset_free(d);
}

TEST(it_may_be_left_at_any_moment)
{
	for (int64_t max = 0; max < 40; max++) {
		watched w = { .read = { 0 } };
		choir_dataset *d = choir_generator_dataset_new(1, &number, watch, &w);
		d = choir_dataset_prefetch(
				choir_dataset_batch(choir_dataset_repeat(d, CHOIR_FOREVER), 3), 2);
		pass p;
		read_pass(d, max, &p);
		if (max % 2) {
			assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
			read_pass(d, 1, &p);
			assert_int_equal(p.number[0], 0);
		}
		choir_dataset_free(d);
	}
}

// The second element is so far away that the thread never gets there, and is stopped on its way.
TEST(a_long_read_is_interrupted)
{
	alarm(100);
	choir_dataset *d = choir_dataset_repeat(numbers_as_stream(3), CHOIR_FOREVER);
	d = choir_dataset_concatenate(numbers_as_stream(1), choir_dataset_skip(d, INT64_MAX));
	d = choir_dataset_prefetch(choir_dataset_prefetch(d, 2), 2);
	for (int i = 0; i < 2; i++) {
		pass p;
		read_pass(d, 1, &p);
		assert_int_equal(p.status, CHOIR_OK);
		assert_int_equal(p.number[0], 0);
		nap(10);
		if (i == 0)
			assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
	alarm(0);
}

TEST(chains_of_prefetches_work)
{
	choir_dataset *d = choir_dataset_prefetch(numbers_as_stream(64), 8);
	d = choir_dataset_prefetch(choir_dataset_batch(choir_dataset_shuffle(d, 16, 4), 8), 2);
	pass first, p;
	for (int i = 0; i < 5; i++) {
		read_pass(d, i == 3 ? 24 : MAX_NUMBERS, i ? &p : &first);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	assert_int_equal(first.n, 64);
	assert_memory_not_equal(first.number, p.number, sizeof(int64_t) * 64);
	choir_dataset_free(d);
}

// In a child the thread is not there: it is said so, and freeing does not wait for it.
TEST(a_forked_child_is_told)
{
	choir_dataset *d = choir_dataset_prefetch(numbers_as_stream(64), 8);
	pass p;
	read_pass(d, 3, &p);
	pid_t child = fork();
	if (child == 0) {
		alarm(100);
		int64_t capacity;
		chi_element e = { .column = { &capacity }, .capacity = 1 };
		bool told = chi_dataset_next(d, &e) == CHOIR_STATE && text_holds(choir_error(), "fork");
		told = told && chi_dataset_rewind(d) == CHOIR_STATE;
		choir_dataset_free(d);
		_exit(told ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	read_pass(d, MAX_NUMBERS, &p);
	assert_int_equal(p.n, 64);
	choir_dataset_free(d);
}

TEST(wrong_counts_are_refused)
{
	assert_refused(choir_dataset_prefetch(numbers_in_memory(3), 0), CHOIR_INVALID,
			"prefetch:*0 elements*1");
	assert_refused(
			choir_dataset_prefetch(numbers_in_memory(3), -1), CHOIR_INVALID, "prefetch:*-1");
}
