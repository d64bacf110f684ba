// A lock that may be held for long, also while user code runs, and so is no mutex: who waits for
// it has a deadline, and the thread that has it may take it again.
#pragma once

#include "base/atomic.h"

typedef struct {
	chi_gate gate; // its word is 1 while somebody has it
	chi_atomic64 owner; // who: an address that is the thread's own; 0: nobody
	int depth; // how often; the owner's alone
} chi_recursive_lock;

// False: the deadline (of chi_clock_deadline) has passed and somebody else still has it.
bool chi_recursive_lock_enter(chi_recursive_lock *g, double deadline);
void chi_recursive_lock_leave(chi_recursive_lock *g);
