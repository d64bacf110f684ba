// Atomics and the futex of the gates between threads: the one place where Choir's own
// synchronisation meets the processor, so that tests can put a scheduler underneath.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CHI_LINE = 64 }; // bytes of a line of the cache, which is what processors hand over

#if defined(__SANITIZE_THREAD__)
#define CHI_NO_FENCES
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHI_NO_FENCES
#endif
#endif

typedef struct {
	_Atomic uint32_t value;
} chi_atomic32;

typedef struct {
	_Atomic uint64_t value;
} chi_atomic64;

static inline uint32_t chi_atomic32_load(const chi_atomic32 *a)
{
	return atomic_load_explicit(&a->value, memory_order_acquire);
}

// In the one order of all changes: who makes one and then looks cannot miss one made before.
static inline uint32_t chi_atomic32_load_seq_cst(const chi_atomic32 *a)
{
	return atomic_load_explicit(&a->value, memory_order_seq_cst);
}

static inline void chi_atomic32_store(chi_atomic32 *a, uint32_t value)
{
	atomic_store_explicit(&a->value, value, memory_order_release);
}

// A store that is in the one order of all changes, for who alone writes *a. Where others poll it
// this takes a fifth less time than a change, whose line they take away before it is made. (The
// thread sanitizer knows no fences.)
static inline void chi_atomic32_store_seq_cst(chi_atomic32 *a, uint32_t value)
{
#ifdef CHI_NO_FENCES
	atomic_exchange_explicit(&a->value, value, memory_order_seq_cst);
#else
	atomic_store_explicit(&a->value, value, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

// These give the value before. Changes are in one order that all threads see, as gates need.
static inline uint32_t chi_atomic32_add(chi_atomic32 *a, uint32_t by)
{
	return atomic_fetch_add_explicit(&a->value, by, memory_order_seq_cst);
}

static inline uint32_t chi_atomic32_exchange(chi_atomic32 *a, uint32_t value)
{
	return atomic_exchange_explicit(&a->value, value, memory_order_seq_cst);
}

// True if *a was expected and is now value.
static inline bool chi_atomic32_change(chi_atomic32 *a, uint32_t expected, uint32_t value)
{
	return atomic_compare_exchange_strong_explicit(
			&a->value, &expected, value, memory_order_seq_cst, memory_order_acquire);
}

static inline uint64_t chi_atomic64_load(const chi_atomic64 *a)
{
	return atomic_load_explicit(&a->value, memory_order_acquire);
}

static inline void chi_atomic64_store(chi_atomic64 *a, uint64_t value)
{
	atomic_store_explicit(&a->value, value, memory_order_release);
}

static inline uint64_t chi_atomic64_add(chi_atomic64 *a, uint64_t by)
{
	return atomic_fetch_add_explicit(&a->value, by, memory_order_acq_rel);
}

// Says to the processor that this thread only waits for memory to change.
static inline void chi_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

// Says to the processor that this thread is about to write where p points.
static inline void chi_fetch_to_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *) p));
#else
	__builtin_prefetch(p, 1);
#endif
}

// Sleeps while *a is expected, until woken or the deadline; may return at any time. False: the
// deadline (of chi_clock_deadline) has passed.
bool chi_futex_wait(chi_atomic32 *a, uint32_t expected, double deadline);
// Wakes at most so many of those that sleep on a. The system looks for them in one of its few
// queues, and stops when it has found so many.
void chi_futex_wake(chi_atomic32 *a, uint32_t max);

// Waits until *a is no longer old: spins for a while (not at all if spin is false), then sleeps on
// the futex. False: the deadline has passed and *a is still old. Who changes *a does it by add,
// exchange, change or tell (a store is not enough) and calls chi_gate_wake after it, which costs
// no system call when nobody sleeps: sleepers counts those.
typedef struct {
	chi_atomic32 word, sleepers;
} chi_gate;
bool chi_gate_wait(chi_gate *g, uint32_t old, bool spin, double deadline);
// Only spins, for who needs no deadline unless it will sleep. False: the word is still old.
bool chi_gate_spin(const chi_gate *g, uint32_t old);
void chi_gate_wake(chi_gate *g);
// The same where only one thread at a time waits at the gate: thousands of these cost no more each
// than a few.
void chi_gate_wake_one(chi_gate *g);
// Tells value and wakes; for who alone writes the word, or who writes what all others write.
void chi_gate_open(chi_gate *g, uint32_t value);
