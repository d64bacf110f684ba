// A recursive lock with a deadline, for one writer or several readers. It may be held for long,
// and while the program's code runs.
#pragma once

#include "base/gate.h"

typedef struct {
	chi_gate gate; // word: readers, above two flags (recursive_lock.c)
	chi_atomic64 owner; // the thread's unique address; 0: none
	int depth;
} chi_recursive_lock;

// False: the deadline (chi_clock_deadline) has passed.
bool chi_recursive_lock_enter(chi_recursive_lock *g, double deadline);
// Readers exclude writers, but not each other. They do not nest, except within enter.
bool chi_recursive_lock_enter_to_read(chi_recursive_lock *g, double deadline);
void chi_recursive_lock_leave(chi_recursive_lock *g); // either
