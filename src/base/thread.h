// Threads. Choir's threads have the floating-point environment of fpenv.h and block
// all signals, which are the host's, but those that a thread raises by its own fault (SIGSEGV and
// its like): a host's crash handler shall see them.
#pragma once

#include "choir/status.h"

#include <pthread.h>
#include <stdbool.h>

enum { CHI_THREAD_NAME = 16 }; // bytes that the system keeps, with the zero

typedef struct {
	pthread_t id;
	bool started;
	char name[CHI_THREAD_NAME];
	void (*fn)(void *arg);
	void *arg;
} chi_thread;

// *t must outlive the thread. name (at most 15 bytes) is what debuggers and top show.
choir_status chi_thread_start(chi_thread *t, const char *name, void (*fn)(void *arg), void *arg);
// The calling thread's, as debuggers show it.
void chi_thread_own_name(char out[CHI_THREAD_NAME]);
// Calls fn, and left after it if fn ended the thread (pthread_exit) instead of returning. Threads
// of Choir cannot be cancelled.
void chi_thread_call(void (*fn)(void *arg), void (*left)(void *arg), void *arg);
void chi_thread_join(chi_thread *t); // a thread that never started is fine

// Gives the processor to another thread that wants it, or sleeps so many seconds, for waits on
// what cannot wake anybody (messages of other processes).
void chi_thread_yield(void);
void chi_thread_nap(double seconds);

// The calling thread, when it is woken, waits for its turn and interrupts nobody who computes.
// Only a wish: where the system refuses, nothing changes.
void chi_thread_stand_back(void);

// The calling thread, for ever, gets what the others leave of the processors: of one that is
// always busy a sixtieth or so. Only a wish, too.
void chi_thread_take_leftovers(void);

// Counts this process's forks: a changed number means "in a child". Registered on first use.
unsigned chi_fork_generation(void);
