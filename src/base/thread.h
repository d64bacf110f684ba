// Threads with the floating-point environment of fpenv.h. They block all signals except those of
// their own faults (SIGSEGV and the like), which a host's crash handler should see.
#pragma once

#include "choir/status.h"

#include <pthread.h>
#include <stdbool.h>

enum { CHI_THREAD_NAME = 16 }; // the system's limit

typedef struct {
	pthread_t id;
	bool started;
	char name[CHI_THREAD_NAME];
	void (*fn)(void *arg);
	void *arg;
} chi_thread;

// Starts a thread; *t must outlive it. Debuggers show name, of up to 15 bytes.
choir_status chi_thread_start(chi_thread *t, const char *name, void (*fn)(void *arg), void *arg);
void chi_thread_own_name(char out[CHI_THREAD_NAME]);
// Calls fn on a thread, and then left if fn ended the thread by pthread_exit. Choir's threads
// cannot be cancelled.
void chi_thread_call(void (*fn)(void *arg), void (*left)(void *arg), void *arg);
void chi_thread_join(chi_thread *t); // also if never started

// A thread's yield or sleep, in waits that cannot be woken, as for other processes.
void chi_thread_yield(void);
void chi_thread_nap(double seconds);

// Prevents the calling thread from preempting others when it wakes, if the system allows that.
void chi_thread_stand_back(void);

// Gives the calling thread the lowest priority for ever, about a sixtieth of a busy processor, if
// the system allows that.
void chi_thread_take_leftovers(void);

// Counts this process's forks, from the first call on. A changed number means "in a child".
unsigned chi_fork_generation(void);
