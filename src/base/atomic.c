// The futex and the gate. A gate's waiter spins for about as long as a sleep and a wake-up would
// take, then sleeps; who opens the gate makes a system call only if somebody sleeps. What keeps a
// wake-up from being lost is one order of all changes, fences and looks, in which each side
// writes its word before it looks at the other's: a waiter adds itself to the sleepers and then
// (in the kernel, behind a barrier) looks at the word; a waker stores the word, passes a fence,
// and then looks at the sleepers. If the waker's look comes before the waiter's change, so does
// its fence, and the waiter sees the new word; else the waker sees a sleeper. Under
// ThreadSanitizer, which does not understand fences, the store and the fence are one exchange
// (atomic.h).
#include "base/atomic.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static const double spin_seconds = 40e-6;
enum { SPINS_PER_CHECK = 32 }; // between two looks at the clock

_Static_assert(sizeof(chi_atomic32) == 4, "the kernel wants a futex of four bytes");

bool chi_futex_wait(chi_atomic32 *a, uint32_t expected, double deadline)
{
	struct timespec until;
	bool bounded = chi_clock_timespec(deadline, &until);
	// Unlike FUTEX_WAIT, this one takes the time as absolute (and monotonic).
	long result = syscall(SYS_futex, &a->value, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
			bounded ? &until : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
	return !(result < 0 && errno == ETIMEDOUT);
}

void chi_futex_wake(chi_atomic32 *a, uint32_t max)
{
	syscall(SYS_futex, &a->value, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, max, NULL, NULL, 0);
}

// The clock is not read before the word has been looked at for a while: reading it takes as long
// as a hand-over between two processors.
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
			end = chi_clock_now() + spin_seconds;
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
	// The word was changed in the one order that all threads see, and a sleeper counts itself in
	// that order before it looks at the word for the last time. Only read: others poll this line.
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
