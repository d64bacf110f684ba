// A readers-writer lock on a gate. New readers wait behind a waiting writer, so overlapping
// readers do not keep it out.
#include "base/recursive_lock.h"

enum { WRITES = 1, WAITS = 2, READER = 4 }; // of the word

static _Thread_local char self;

// Only the owner stores its address.
static bool is_mine(chi_recursive_lock *g)
{
	return chi_atomic64_load(&g->owner) == (uint64_t) (uintptr_t) &self;
}

// Other waiting writers set the flag again.
static void stop_waiting(chi_recursive_lock *g)
{
	for (;;) {
		const uint32_t now = chi_atomic32_load(&g->gate.word);
		if (chi_atomic32_change(&g->gate.word, now, now & ~(uint32_t) WAITS))
			break;
	}
	chi_gate_wake(&g->gate);
}

bool chi_recursive_lock_enter(chi_recursive_lock *g, double deadline)
{
	if (is_mine(g)) {
		g->depth++;
		return true;
	}
	for (;;) {
		const uint32_t now = chi_atomic32_load(&g->gate.word);
		if ((now & ~(uint32_t) WAITS) == 0) {
			if (chi_atomic32_change(&g->gate.word, now, WRITES))
				break;
		} else if ((now & WAITS) == 0 && !chi_atomic32_change(&g->gate.word, now, now | WAITS)) {
			continue;
		} else if (!chi_gate_wait(&g->gate, now | WAITS, true, deadline)) {
			stop_waiting(g);
			return false;
		}
	}
	chi_atomic64_store(&g->owner, (uint64_t) (uintptr_t) &self);
	g->depth = 1;
	return true;
}

bool chi_recursive_lock_enter_to_read(chi_recursive_lock *g, double deadline)
{
	if (is_mine(g))
		return chi_recursive_lock_enter(g, deadline);
	for (;;) {
		const uint32_t now = chi_atomic32_load(&g->gate.word);
		if ((now & (WRITES | WAITS)) != 0) {
			if (!chi_gate_wait(&g->gate, now, true, deadline))
				return false;
		} else if (chi_atomic32_change(&g->gate.word, now, now + READER)) {
			return true;
		}
	}
}

void chi_recursive_lock_leave(chi_recursive_lock *g)
{
	if (!is_mine(g)) {
		chi_atomic32_add(&g->gate.word, -(uint32_t) READER);
	} else {
		if (--g->depth > 0)
			return;
		chi_atomic64_store(&g->owner, 0);
		chi_atomic32_exchange(&g->gate.word, 0);
	}
	chi_gate_wake(&g->gate);
}
