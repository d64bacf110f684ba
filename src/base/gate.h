// The kernel's futex, and gates above it. Tests schedule both (tests/schedule).
#pragma once

#include "base/atomic.h"

// May return early. False: the deadline has passed.
bool chi_futex_wait(chi_atomic32 *a, uint32_t expected, double deadline);
void chi_futex_wake(chi_atomic32 *a, uint32_t max);

// chi_gate_wait returns when word is not old, or false after the deadline. A thread changes word
// by chi_atomic32_add, _exchange, _change or _store_seq_cst (no plain store), then calls
// chi_gate_wake.
typedef struct {
	chi_atomic32 word, sleepers;
} chi_gate;
bool chi_gate_wait(chi_gate *g, uint32_t old, bool spin, double deadline);
bool chi_gate_spin(const chi_gate *g, uint32_t old);
void chi_gate_wake(chi_gate *g);
// For the only waiter: cheaper with thousands of gates.
void chi_gate_wake_one(chi_gate *g);
// Stores and wakes. The word has one writer, or all store the same value.
void chi_gate_open(chi_gate *g, uint32_t value);
