// The futex and the gate. A lost wake-up would show as a deadline that passes.
#include "base/gate.h"
#include "base/clock.h"
#include "base/thread.h"
#include "test.h"

#include <math.h>

static const double long_wait = 30; // seconds; only a failing test waits so long

TEST(test_futex_deadline)
{
	chi_atomic32 word = { 5 };
	double start = chi_clock_now();
	assert_false(chi_futex_wait(&word, 5, chi_clock_deadline(0.02)));
	assert_true(chi_clock_now() - start >= 0.019);
	assert_false(chi_futex_wait(&word, 5, 0)); // long ago
	assert_false(chi_futex_wait(&word, 5, -1));
	assert_true(chi_futex_wait(&word, 6, chi_clock_deadline(long_wait))); // not what is expected
	chi_futex_wake(&word, 1); // nobody sleeps
}

TEST(test_gate_deadline)
{
	chi_gate gate = { { 1 }, { 0 } };
	for (int spin = 0; spin < 2; spin++) {
		double start = chi_clock_now();
		assert_false(chi_gate_wait(&gate, 1, spin, chi_clock_deadline(0.02)));
		assert_true(chi_clock_now() - start >= 0.019);
		assert_true(chi_gate_wait(&gate, 0, spin, 0)); // open already: the deadline is no matter
	}
	assert_int_equal(chi_atomic32_load(&gate.sleepers), 0);
}

typedef struct {
	chi_gate there, back;
	int payload; // passed to and fro by the gates alone
	bool spin, failed;
	uint32_t rounds;
} ping_pong;

static void pong(void *arg)
{
	ping_pong *p = arg;
	for (uint32_t i = 0; i < p->rounds; i++) {
		if (!chi_gate_wait(&p->there, i, p->spin, chi_clock_deadline(long_wait))) {
			p->failed = true;
			return;
		}
		p->payload++;
		chi_gate_open(&p->back, i + 1);
	}
}

static void play(bool spin, uint32_t rounds)
{
	ping_pong p = { .spin = spin, .rounds = rounds };
	chi_thread thread;
	assert_int_equal(chi_thread_start(&thread, "pong", pong, &p), CHOIR_OK);
	bool in_time = true;
	for (uint32_t i = 0; i < rounds && in_time; i++) {
		p.payload++;
		chi_atomic32_add(&p.there.word, 1); // the other way of opening
		chi_gate_wake(&p.there);
		in_time = chi_gate_wait(&p.back, i, spin, chi_clock_deadline(long_wait));
	}
	chi_thread_join(&thread);
	assert_true(in_time);
	assert_false(p.failed);
	assert_int_equal(p.payload, 2 * rounds);
	assert_int_equal(chi_atomic32_load(&p.there.sleepers), 0);
	assert_int_equal(chi_atomic32_load(&p.back.sleepers), 0);
}

TEST(test_gate_asleep)
{
	play(false, 5000);
}

TEST(test_gate_spinning)
{
	play(true, 5000);
}

enum { WAITERS = 4 };
typedef struct {
	chi_gate gate;
	chi_atomic32 passed;
} door;

static void pass(void *arg)
{
	door *d = arg;
	if (chi_gate_wait(&d->gate, 0, false, HUGE_VAL))
		chi_atomic32_add(&d->passed, 1);
}

TEST(test_gate_wakes_all)
{
	door d = { 0 };
	chi_thread threads[WAITERS];
	for (int i = 0; i < WAITERS; i++)
		assert_int_equal(chi_thread_start(&threads[i], "pass", pass, &d), CHOIR_OK);
	double deadline = chi_clock_deadline(long_wait);
	while (chi_atomic32_load(&d.gate.sleepers) < WAITERS && chi_clock_now() < deadline)
		;
	assert_int_equal(chi_atomic32_load(&d.passed), 0);
	chi_gate_open(&d.gate, 1);
	for (int i = 0; i < WAITERS; i++)
		chi_thread_join(&threads[i]);
	assert_int_equal(chi_atomic32_load(&d.passed), WAITERS);
}

TEST(test_values)
{
	chi_atomic32 a = { 1 };
	assert_int_equal(chi_atomic32_add(&a, 2), 1);
	assert_int_equal(chi_atomic32_exchange(&a, 7), 3);
	assert_false(chi_atomic32_change(&a, 6, 8));
	assert_true(chi_atomic32_change(&a, 7, 8));
	assert_int_equal(chi_atomic32_load(&a), 8);
	chi_atomic64 b = { UINT32_MAX };
	assert_true(chi_atomic64_add(&b, 1) == UINT32_MAX);
	assert_true(chi_atomic64_load(&b) == (uint64_t) UINT32_MAX + 1);
}
