// A recursive lock on a gate.
#include "base/recursive_lock.h"

static _Thread_local char self;

bool chi_recursive_lock_enter(chi_recursive_lock *g, double deadline)
{
	const uint64_t me = (uint64_t) (uintptr_t) &self;
	if (chi_atomic64_load(&g->owner) == me) {
		g->depth++;
		return true;
	}
	while (!chi_atomic32_change(&g->gate.word, 0, 1))
		if (!chi_gate_wait(&g->gate, 1, true, deadline))
			return false;
	chi_atomic64_store(&g->owner, me);
	g->depth = 1;
	return true;
}

void chi_recursive_lock_leave(chi_recursive_lock *g)
{
	if (--g->depth > 0)
		return;
	chi_atomic64_store(&g->owner, 0);
	chi_atomic32_exchange(&g->gate.word, 0);
	chi_gate_wake(&g->gate);
}
