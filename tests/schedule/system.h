// Replaces the system under the library. It is included before every file that synchronises
// (CMakeLists.txt), and renames what src/base calls for locks, waits, threads, the clock and
// atomics. So the released source runs under scheduler.h without hooks of its own. Floating point,
// memory and files remain the system's.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int scheduled_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attributes);
int scheduled_mutex_destroy(pthread_mutex_t *m);
int scheduled_mutex_lock(pthread_mutex_t *m);
int scheduled_mutex_unlock(pthread_mutex_t *m);
int scheduled_cond_init(pthread_cond_t *c, const pthread_condattr_t *attributes);
int scheduled_cond_destroy(pthread_cond_t *c);
int scheduled_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int scheduled_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until);
int scheduled_cond_signal(pthread_cond_t *c);
int scheduled_cond_broadcast(pthread_cond_t *c);
int scheduled_create(
		pthread_t *id, const pthread_attr_t *attributes, void *(*fn)(void *arg), void *arg);
int scheduled_join(pthread_t id, void **result);
pthread_t scheduled_self(void);
int scheduled_setname(pthread_t id, const char *name);
int scheduled_clock(clockid_t clock, struct timespec *now);
// Supports only futexes.
long scheduled_syscall(long number, void *word, int operation, uint32_t value,
		const struct timespec *until, void *other, unsigned bits);
// Sets the number of processors that the library finds.
void scheduled_machine(int count);

// Called before a thread accesses shared memory, and when it spins.
void scheduled_point(void);
void scheduled_write(void);
void scheduled_spin(void);

#ifdef CHI_UNDER_A_SCHEDULER

#define pthread_mutex_init scheduled_mutex_init
#define pthread_mutex_destroy scheduled_mutex_destroy
#define pthread_mutex_lock scheduled_mutex_lock
#define pthread_mutex_unlock scheduled_mutex_unlock
#define pthread_cond_init scheduled_cond_init
#define pthread_cond_destroy scheduled_cond_destroy
#define pthread_cond_wait scheduled_cond_wait
#define pthread_cond_timedwait scheduled_cond_timedwait
#define pthread_cond_signal scheduled_cond_signal
#define pthread_cond_broadcast scheduled_cond_broadcast
#define pthread_create scheduled_create
#define pthread_join scheduled_join
#define pthread_self scheduled_self
#define pthread_setname_np scheduled_setname
#define clock_gettime scheduled_clock
#define syscall scheduled_syscall

// There is one system thread, so an access is atomic unless it calls the scheduler.
static inline uint32_t scheduled_add32(_Atomic uint32_t *p, uint32_t by)
{
	scheduled_write();
	const uint32_t before = *p;
	*p = before + by;
	return before;
}

static inline uint64_t scheduled_add64(_Atomic uint64_t *p, uint64_t by)
{
	scheduled_write();
	const uint64_t before = *p;
	*p = before + by;
	return before;
}

static inline uint32_t scheduled_exchange(_Atomic uint32_t *p, uint32_t to)
{
	scheduled_write();
	const uint32_t before = *p;
	*p = to;
	return before;
}

static inline bool scheduled_change(_Atomic uint32_t *p, uint32_t *expected, uint32_t to)
{
	scheduled_write();
	const uint32_t before = *p;
	const bool equal = before == *expected;
	if (equal)
		*p = to;
	*expected = before;
	return equal;
}

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(p, order) (scheduled_point(), *(p))
#define atomic_store_explicit(p, to, order) (scheduled_write(), (void) (*(p) = (to)))
#define atomic_fetch_add_explicit(p, by, order) \
	_Generic((p), _Atomic uint32_t *: scheduled_add32, _Atomic uint64_t *: scheduled_add64)(p, by)
#define atomic_fetch_add(p, by) scheduled_add32(p, by)
#define atomic_fetch_sub(p, by) scheduled_add32(p, 0u - (by))
#define atomic_exchange_explicit(p, to, order) scheduled_exchange(p, to)
#define atomic_compare_exchange_strong_explicit(p, expected, to, order, otherwise) \
	scheduled_change(p, expected, to)
#define __builtin_ia32_pause scheduled_spin

#endif
