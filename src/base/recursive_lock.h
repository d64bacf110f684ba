// A lock that may be held for long, and while the program's code runs.
#pragma once

#include "base/atomic.h"

typedef struct {
	chi_gate gate; // word: 1 while held
	chi_atomic64 owner; // the thread's unique address; 0: free
	int depth;
} chi_recursive_lock;

// False: the deadline has passed.
bool chi_recursive_lock_enter(chi_recursive_lock *g, double deadline);
void chi_recursive_lock_leave(chi_recursive_lock *g);
