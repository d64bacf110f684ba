// A waiter spins for about the time of a sleep and wake-up, then sleeps. No wake-up is lost:
// sequentially consistent, a waiter increments the sleepers before the kernel reads the word, a
// waker stores the word before it reads them.
#include "base/gate.h"

#include "base/clock.h"
#include "base/thresholds.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS_PER_CHECK = 32 };

_Static_assert(sizeof(chi_atomic32) == 4, "the kernel wants a futex of four bytes");

bool chi_futex_wait(chi_atomic32 *a, uint32_t expected, double deadline)
{
	struct timespec until;
	bool bounded = chi_clock_timespec(deadline, &until);
	// FUTEX_WAIT_BITSET takes an absolute time.
	long result = syscall(SYS_futex, &a->value, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
			bounded ? &until : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
	return !(result < 0 && errno == ETIMEDOUT);
}

void chi_futex_wake(chi_atomic32 *a, uint32_t max)
{
	syscall(SYS_futex, &a->value, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, max, NULL, NULL, 0);
}

// Reading the clock takes as long as passing a cache line between cores.
bool chi_gate_spin(const chi_gate *g, uint32_t old)
{
	double end = 0;
	do {
		for (int i = 0; i < SPINS_PER_CHECK; i++) {
			if (chi_atomic32_load(&g->word) != old)
				return true;
			chi_spin_pause();
		}
		if (end == 0)
			end = chi_clock_now() + CHI_GATE_SPIN_US * 1e-6;
	} while (chi_clock_now() < end);
	return false;
}

bool chi_gate_wait(chi_gate *g, uint32_t old, bool spin, double deadline)
{
	if (spin && chi_gate_spin(g, old))
		return true;
	bool in_time = true;
	while (in_time && chi_atomic32_load(&g->word) == old) {
		atomic_fetch_add(&g->sleepers.value, 1);
		in_time = chi_futex_wait(&g->word, old, deadline);
		atomic_fetch_sub(&g->sleepers.value, 1);
	}
	return in_time || chi_atomic32_load(&g->word) != old;
}

static void wake(chi_gate *g, uint32_t max)
{
	// Only loads, because others poll this line.
	if (chi_atomic32_load_seq_cst(&g->sleepers) != 0)
		chi_futex_wake(&g->word, max);
}

void chi_gate_wake(chi_gate *g)
{
	wake(g, INT_MAX);
}

void chi_gate_wake_one(chi_gate *g)
{
	wake(g, 1);
}

void chi_gate_open(chi_gate *g, uint32_t value)
{
	chi_atomic32_store_seq_cst(&g->word, value);
	chi_gate_wake(g);
}
