// Queues: examples put in by one thread and read by another, passes, waits, and ends of each kind.
#include "data/elements.h"

#include "base/status.h"
#include "base/thread.h"
#include "test.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static const choir_column columns[] = {
	{ .name = "number", .dtype = CHOIR_I64 },
	{ .name = "pair", .dtype = CHOIR_F32, .shape = { 1, { 2 } } },
};

static choir_dataset *open_queue(int64_t capacity, double timeout, choir_queue **q)
{
	choir_dataset *d = choir_queue_dataset_new(2, columns,
			CHOIR_OPTIONS(choir_queue_options, .capacity = capacity, .timeout = timeout), q);
	if (!d)
		fail_msg("%s", choir_error());
	return d;
}

// Puts numbers first .. first + n - 1, with pairs that follow from them.
static choir_status put(choir_queue *q, int64_t first, int64_t n, double seconds)
{
	int64_t number[16];
	float pair[16][2];
	for (int64_t i = 0; i < n; i++) {
		number[i] = first + i;
		pair[i][0] = (float) number[i];
		pair[i][1] = -(float) number[i];
	}
	return choir_queue_put(q, n, (const void *const[]){ number, pair }, seconds);
}

static void assert_next(choir_dataset *d, int64_t expected)
{
	int64_t number;
	float pair[2];
	chi_element e = { .column = { &number, pair }, .capacity = 1 };
	if (chi_dataset_next(d, &e) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(number, expected);
	assert_true(pair[0] == (float) expected && pair[1] == -(float) expected);
}

static void assert_end(choir_dataset *d)
{
	chi_element e = { .capacity = 1 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

typedef struct {
	choir_queue *queue;
	int64_t n, passes;
	choir_status status;
} producer;

static void produce(void *arg)
{
	producer *p = arg;
	for (int64_t k = 0; k < p->passes && p->status == CHOIR_OK; k++) {
		for (int64_t i = 0; i < p->n && p->status == CHOIR_OK; i += 3)
			p->status = put(p->queue, 1000 * k + i, p->n - i < 3 ? p->n - i : 3, 60);
		if (p->status == CHOIR_OK)
			p->status = choir_queue_close(p->queue);
	}
}

TEST(what_a_thread_puts_in_comes_out_in_order)
{
	producer p = { .n = 500, .passes = 3 };
	choir_dataset *d = open_queue(7, 60, &p.queue); // 3 at once never end where it does
	assert_int_equal(choir_dataset_cardinality(d), CHOIR_UNKNOWN_CARDINALITY);
	d = choir_dataset_prefetch(d, 4);
	chi_thread thread = { .started = false };
	assert_int_equal(chi_thread_start(&thread, "producer", produce, &p), CHOIR_OK);
	for (int64_t k = 0; k < p.passes; k++) {
		for (int64_t i = 0; i < p.n; i++)
			assert_next(d, 1000 * k + i);
		assert_end(d);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	chi_thread_join(&thread);
	assert_int_equal(p.status, CHOIR_OK);
	choir_queue_free(p.queue);
	choir_dataset_free(d);
}

TEST(what_does_not_fit_waits_or_is_refused)
{
	choir_queue *q;
	choir_dataset *d = open_queue(4, 60, &q);
	assert_int_equal(put(q, 0, 3, 0), CHOIR_OK);
	assert_int_equal(put(q, 3, 2, 0), CHOIR_TIMEOUT);
	assert_failure(CHOIR_TIMEOUT, "queue:*3*4*2*after 0");
	assert_int_equal(put(q, 3, 5, 0), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "queue:*5*0*4");
	assert_int_equal(put(q, 3, 1, 0.01), CHOIR_OK);
	assert_int_equal(put(q, 0, 0, 0), CHOIR_OK);
	for (int64_t i = 0; i < 4; i++) // nothing of what was refused is there
		assert_next(d, i);
	assert_int_equal(choir_queue_close(q), CHOIR_OK);
	assert_int_equal(choir_queue_close(q), CHOIR_STATE);
	assert_failure(CHOIR_STATE, "already");
	assert_int_equal(put(q, 9, 1, 0), CHOIR_TIMEOUT);
	assert_failure(CHOIR_TIMEOUT, "queue:*closed");
	assert_end(d);
	choir_queue_free(q);
	choir_dataset_free(d);
}

TEST(a_reader_is_never_stuck)
{
	choir_queue *q;
	choir_dataset *d = open_queue(4, 0.05, &q);
	assert_next_fails(d, CHOIR_TIMEOUT, "queue dataset: no example after 0.05 seconds");
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_int_equal(put(q, 1, 1, 0), CHOIR_OK);
	choir_queue_free(q);
	assert_next(d, 1);
	assert_next_fails(d, CHOIR_STATE, "queue dataset: the queue was freed, but not closed");
	choir_dataset_free(d);

	// A prefetch that waits for examples which never come is stopped.
	d = choir_dataset_prefetch(open_queue(4, CHOIR_NONE, &q), 2);
	assert_int_equal(put(q, 1, 2, 0), CHOIR_OK);
	assert_next(d, 1);
	nap();
	choir_dataset_free(d);
	assert_int_equal(put(q, 3, 1, 1), CHOIR_CANCELLED);
	assert_failure(CHOIR_CANCELLED, "queue:*dataset");
	choir_queue_free(q);
}

static choir_dataset *the_queue(const choir_component in[], void *user)
{
	choir_dataset **d = user, *taken = *d;
	(void) in;
	*d = NULL;
	return taken;
}

// Also where the pass has ended and a step has begun the next one, and where the queue is the
// dataset that a step has open.
TEST(a_reader_behind_other_steps_is_stopped)
{
	alarm(100);
	for (int kind = 0; kind < 3; kind++) {
		choir_queue *q;
		choir_dataset *inner = open_queue(4, CHOIR_NONE, &q), *d;
		if (kind == 0)
			d = choir_dataset_repeat(inner, CHOIR_FOREVER);
		else
			d = choir_dataset_flat_map(choir_range_dataset_new("i", 0, 1, 1),
					CHOIR_OPTIONS(choir_interleave_options, .n = 2, .columns = columns,
							.read_ahead = kind == 2),
					the_queue, &inner);
		d = choir_dataset_prefetch(d, 2);
		assert_int_equal(put(q, 1, 2, 0), CHOIR_OK);
		assert_next(d, 1);
		assert_next(d, 2);
		if (kind == 0)
			assert_int_equal(choir_queue_close(q), CHOIR_OK);
		else
			nap();
		choir_dataset_free(d);
		choir_queue_free(q);
	}
	alarm(0);
}

static void put_one_more(void *arg)
{
	producer *p = arg;
	p->status = put(p->queue, 4, 1, 60);
}

TEST(whoever_waits_is_woken)
{
	producer p = { .n = 1 };
	choir_dataset *d = open_queue(4, 60, &p.queue);
	assert_int_equal(put(p.queue, 0, 4, 0), CHOIR_OK);
	chi_thread thread = { .started = false };
	assert_int_equal(chi_thread_start(&thread, "producer", put_one_more, &p), CHOIR_OK);
	nap();
	assert_next(d, 0);
	chi_thread_join(&thread);
	assert_int_equal(p.status, CHOIR_OK);
	assert_int_equal(chi_thread_start(&thread, "producer", put_one_more, &p), CHOIR_OK);
	nap();
	choir_dataset_free(d); // also a producer that waits
	chi_thread_join(&thread);
	assert_int_equal(p.status, CHOIR_CANCELLED);
	choir_queue_free(p.queue);
}

TEST(a_failure_comes_behind_what_was_put)
{
	choir_queue *q;
	choir_dataset *d = open_queue(4, 60, &q);
	assert_int_equal(put(q, 0, 2, 0), CHOIR_OK);
	choir_fail(CHOIR_CORRUPT, "an older failure");
	assert_int_equal(choir_queue_fail(q, CHOIR_IO, "sensor 2 is silent"), CHOIR_OK);
	assert_int_equal(choir_queue_fail(q, CHOIR_CORRUPT, "not the first"), CHOIR_OK);
	assert_failure(CHOIR_CORRUPT, "failure");
	assert_int_equal(put(q, 2, 1, 0), CHOIR_STATE);
	assert_failure(CHOIR_STATE, "queue:*choir_queue_fail");
	assert_next(d, 0);
	assert_next(d, 1);
	assert_next_fails(d, CHOIR_IO, "queue dataset: sensor 2 is silent");
	assert_int_equal(choir_queue_fail(q, CHOIR_END, NULL), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "choir_queue_close");
	choir_queue_free(q);
	choir_dataset_free(d);
	d = open_queue(4, 60, &q);
	assert_int_equal(choir_queue_fail(q, CHOIR_IO, NULL), CHOIR_OK);
	assert_next_fails(d, CHOIR_IO, "queue dataset: CHOIR_IO");
	choir_dataset_free(d);
	choir_queue_free(q);
}

TEST(passes_follow_each_other_and_none_is_repeated)
{
	choir_queue *q;
	choir_dataset *d = open_queue(8, 60, &q);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK); // nothing was read
	assert_int_equal(put(q, 0, 3, 0), CHOIR_OK);
	assert_next(d, 0);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_UNSUPPORTED);
	assert_failure(CHOIR_UNSUPPORTED, "rewound");
	choir_queue_free(q);
	choir_dataset_free(d);

	// A pass without examples is one too, whoever begins it; its end ends it.
	d = open_queue(8, 60, &q);
	assert_int_equal(choir_queue_close(q), CHOIR_OK);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_end(d);
	assert_int_equal(choir_queue_close(q), CHOIR_STATE);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_int_equal(choir_queue_close(q), CHOIR_OK);
	assert_end(d);
	choir_queue_free(q);
	choir_dataset_free(d);

	// Where an iterator is put back, the program puts the pass in again.
	d = open_queue(8, 60, &q);
	assert_int_equal(put(q, 0, 5, 0), CHOIR_OK);
	assert_int_equal(choir_queue_close(q), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(d, 2, 3), CHOIR_OK);
	assert_int_equal(chi_dataset_pass(d), 2);
	assert_next(d, 3);
	assert_next(d, 4);
	assert_end(d);
	choir_queue_free(q);
	choir_dataset_free(d);
}

TEST(wrong_use_is_refused)
{
	choir_queue *q;
	assert_refused(choir_queue_dataset_new(2, columns, NULL, NULL), CHOIR_INVALID, "queue");
	assert_refused(choir_queue_dataset_new(0, columns, NULL, &q), CHOIR_INVALID, "0 columns");
	assert_null(q);
	assert_refused(choir_queue_dataset_new(
						   2, columns, CHOIR_OPTIONS(choir_queue_options, .capacity = -1), &q),
			CHOIR_INVALID, "-1*capacity");
	assert_refused(choir_queue_dataset_new(
						   2, columns, CHOIR_OPTIONS(choir_queue_options, .timeout = -2), &q),
			CHOIR_INVALID, "-2*seconds");
	assert_refused(choir_queue_dataset_new(2, columns, &(choir_queue_options){ .size = 1 }, &q),
			CHOIR_INVALID, "CHOIR_OPTIONS");
	assert_int_equal(choir_queue_put(NULL, 0, NULL, 0), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "queue:*NULL");
	assert_int_equal(choir_queue_close(NULL), CHOIR_INVALID);
	assert_int_equal(choir_queue_fail(NULL, CHOIR_IO, NULL), CHOIR_INVALID);
	choir_queue_free(NULL);
	choir_dataset *d = choir_queue_dataset_new(2, columns, NULL, &q);
	int64_t number = 1;
	assert_int_equal(
			choir_queue_put(q, 1, (const void *const[]){ &number, NULL }, 0), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "queue:*column 1*NULL");
	assert_int_equal(choir_queue_put(q, 1, NULL, 0), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "queue:*NULL");
	choir_queue_free(q);
	choir_dataset_free(d);
}

static choir_status make_queue(void *user)
{
	choir_queue *q;
	(void) user;
	choir_dataset *d = choir_queue_dataset_new(2, columns, NULL, &q);
	const choir_status status = d ? CHOIR_OK : choir_error_status();
	assert_int_equal(d == NULL, q == NULL);
	choir_queue_free(q);
	choir_dataset_free(d);
	return status;
}

TEST(without_memory_there_is_no_queue)
{
	assert_every_allocation(make_queue, NULL);
}
