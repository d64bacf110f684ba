// All synchronization uses these, so that tests can schedule it (tests/schedule).
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CHI_LINE = 64 };

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

// Sequentially consistent: a thread that changes a word and then loads sees all earlier changes.
static inline uint32_t chi_atomic32_load_seq_cst(const chi_atomic32 *a)
{
	return atomic_load_explicit(&a->value, memory_order_seq_cst);
}

static inline void chi_atomic32_store(chi_atomic32 *a, uint32_t value)
{
	atomic_store_explicit(&a->value, value, memory_order_release);
}

// Sequentially consistent, by the only writer of *a: faster than an exchange. ThreadSanitizer does
// not know fences.
static inline void chi_atomic32_store_seq_cst(chi_atomic32 *a, uint32_t value)
{
#ifdef CHI_NO_FENCES
	atomic_exchange_explicit(&a->value, value, memory_order_seq_cst);
#else
	atomic_store_explicit(&a->value, value, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

// Changes are sequentially consistent and return the previous value.
static inline uint32_t chi_atomic32_add(chi_atomic32 *a, uint32_t by)
{
	return atomic_fetch_add_explicit(&a->value, by, memory_order_seq_cst);
}

static inline uint32_t chi_atomic32_exchange(chi_atomic32 *a, uint32_t value)
{
	return atomic_exchange_explicit(&a->value, value, memory_order_seq_cst);
}

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

static inline void chi_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline void chi_fetch_to_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *) p));
#else
	__builtin_prefetch(p, 1);
#endif
}
