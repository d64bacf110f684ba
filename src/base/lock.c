// Debug builds keep a stack of the mutexes that a thread holds.
#include "base/lock.h"
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>

#ifndef NDEBUG

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HELD = 16 };
static _Thread_local const chi_mutex *held[MAX_HELD];
static _Thread_local int held_count;

static _Noreturn void bug(const char *what, const chi_mutex *m, const chi_mutex *other)
{
	fprintf(stderr, "choir: a bug: mutex %s (rank %d) %s %s (rank %d)\n", m->name, (int) m->rank,
			what, other ? other->name : "nothing", other ? (int) other->rank : 0);
	abort();
}

static void check_before_lock(const chi_mutex *m)
{
	for (int i = 0; i < held_count; i++)
		if (held[i]->rank >= m->rank)
			bug("is taken after", m, held[i]);
	if (held_count == MAX_HELD)
		bug("exceeds the number of mutexes that one thread may hold; the last one is", m,
				held[held_count - 1]);
}

static void note_locked(const chi_mutex *m)
{
	held[held_count++] = m;
}

static void note_unlocked(const chi_mutex *m)
{
	int i = held_count - 1;
	while (i >= 0 && held[i] != m)
		i--;
	if (i < 0)
		bug("is released but not held; the last one held is", m,
				held_count ? held[held_count - 1] : NULL);
	held_count--;
	memmove(held + i, held + i + 1, (size_t) (held_count - i) * sizeof(held[0]));
}

// The wait takes m again.
static void check_before_wait(const chi_mutex *m)
{
	const chi_mutex *top = held_count ? held[held_count - 1] : NULL;
	if (top != m)
		bug("is used to wait but was not taken last; that one is", m, top);
}

void chi_mutex_check_none_held(void)
{
	if (held_count == 0)
		return;
	const chi_mutex *m = held[held_count - 1];
	fprintf(stderr,
			"choir: a bug: mutex %s (rank %d) is held where the program's code is called\n",
			m->name, (int) m->rank);
	abort();
}

#else

static void check_before_lock(const chi_mutex *m)
{
	(void) m;
}

static void note_locked(const chi_mutex *m)
{
	(void) m;
}

static void note_unlocked(const chi_mutex *m)
{
	(void) m;
}

static void check_before_wait(const chi_mutex *m)
{
	(void) m;
}

#endif

void chi_mutex_init(chi_mutex *m, chi_rank rank, const char *name)
{
	// Locks are held for less time than a sleep takes.
	pthread_mutexattr_t spins;
	pthread_mutexattr_init(&spins);
	pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&m->mutex, &spins);
	pthread_mutexattr_destroy(&spins);
	m->rank = rank;
	m->name = name;
}

void chi_mutex_destroy(chi_mutex *m)
{
	pthread_mutex_destroy(&m->mutex);
}

void chi_mutex_lock(chi_mutex *m)
{
	check_before_lock(m);
	pthread_mutex_lock(&m->mutex);
	note_locked(m);
}

void chi_mutex_unlock(chi_mutex *m)
{
	note_unlocked(m);
	pthread_mutex_unlock(&m->mutex);
}

void chi_cond_init(chi_cond *c)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&c->cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

void chi_cond_destroy(chi_cond *c)
{
	pthread_cond_destroy(&c->cond);
}

bool chi_cond_wait(chi_cond *c, chi_mutex *m, double deadline)
{
	check_before_wait(m);
	struct timespec until;
	if (chi_clock_timespec(deadline, &until))
		return pthread_cond_timedwait(&c->cond, &m->mutex, &until) != ETIMEDOUT;
	pthread_cond_wait(&c->cond, &m->mutex);
	return true;
}

void chi_cond_signal(chi_cond *c)
{
	pthread_cond_signal(&c->cond);
}

void chi_cond_broadcast(chi_cond *c)
{
	pthread_cond_broadcast(&c->cond);
}
