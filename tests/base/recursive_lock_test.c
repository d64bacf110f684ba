// Readers are together, a writer is alone and may enter again, and a waiting writer comes before
// new readers until it gives up.
#include "base/recursive_lock.h"
#include "base/clock.h"
#include "base/thread.h"
#include "test.h"

#include <sched.h>

enum { THREADS = 4, ROUNDS = 2000 };

typedef struct {
	chi_recursive_lock lock;
	double seconds; // until a writer's deadline
	bool entered;
	int a, b; // equal, except while somebody writes
	chi_atomic32 wrong;
} shared;

static void read_and_write(void *arg)
{
	shared *s = arg;
	for (int i = 0; i < ROUNDS; i++) {
		const bool writes = i % 4 == 0;
		if (!(writes ? chi_recursive_lock_enter : chi_recursive_lock_enter_to_read)(
					&s->lock, chi_clock_deadline(60)))
			break;
		if (s->a != s->b)
			chi_atomic32_store(&s->wrong, 1);
		if (writes) {
			s->a++;
			s->b++;
		}
		chi_recursive_lock_leave(&s->lock);
	}
}

TEST(writers_are_alone)
{
	shared s = { 0 };
	chi_thread threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(chi_thread_start(&threads[i], "both", read_and_write, &s), CHOIR_OK);
	for (int i = 0; i < THREADS; i++)
		chi_thread_join(&threads[i]);
	assert_int_equal(s.a, THREADS * ROUNDS / 4);
	assert_int_equal(chi_atomic32_load(&s.wrong), 0);
	assert_int_equal(chi_atomic32_load(&s.lock.gate.word), 0);
}

static void write_once(void *arg)
{
	shared *s = arg;
	s->entered = chi_recursive_lock_enter(&s->lock, chi_clock_deadline(s->seconds));
	if (s->entered)
		chi_recursive_lock_leave(&s->lock);
}

static bool can_read(shared *s)
{
	const bool entered = chi_recursive_lock_enter_to_read(&s->lock, chi_clock_deadline(0.01));
	if (entered)
		chi_recursive_lock_leave(&s->lock);
	return entered;
}

// The lock is held by a reader while another thread wants to write.
static void wait_beside_a_reader(shared *s, chi_thread *writer)
{
	assert_true(chi_recursive_lock_enter_to_read(&s->lock, chi_clock_deadline(60)));
	assert_true(can_read(s)); // as another thread would
	const uint32_t before = chi_atomic32_load(&s->lock.gate.word);
	assert_int_equal(chi_thread_start(writer, "write", write_once, s), CHOIR_OK);
	if (s->seconds > 1)
		while (chi_atomic32_load(&s->lock.gate.word) == before)
			sched_yield();
}

TEST(a_waiting_writer_comes_before_new_readers)
{
	shared s = { .seconds = 60 };
	chi_thread writer;
	wait_beside_a_reader(&s, &writer);
	assert_false(can_read(&s));
	chi_recursive_lock_leave(&s.lock);
	chi_thread_join(&writer);
	assert_true(s.entered);
	assert_true(can_read(&s));
}

TEST(a_writer_that_gives_up_lets_readers_in)
{
	shared s = { .seconds = 0.01 };
	chi_thread writer;
	wait_beside_a_reader(&s, &writer);
	chi_thread_join(&writer);
	assert_false(s.entered);
	assert_true(can_read(&s));
	chi_recursive_lock_leave(&s.lock);
	assert_int_equal(chi_atomic32_load(&s.lock.gate.word), 0);
}

static void try_to_read(void *arg)
{
	shared *s = arg;
	s->entered = can_read(s);
}

TEST(a_writer_enters_again_to_read_and_to_write)
{
	shared s = { 0 };
	chi_thread other;
	assert_true(chi_recursive_lock_enter(&s.lock, chi_clock_deadline(60)));
	assert_true(chi_recursive_lock_enter_to_read(&s.lock, chi_clock_deadline(60)));
	assert_true(chi_recursive_lock_enter(&s.lock, chi_clock_deadline(60)));
	for (int held = 3; held > 0; held--) {
		assert_int_equal(chi_thread_start(&other, "read", try_to_read, &s), CHOIR_OK);
		chi_thread_join(&other);
		assert_false(s.entered);
		chi_recursive_lock_leave(&s.lock);
	}
	assert_true(can_read(&s));
}
