// Threads have fpenv.h's floating-point environment, and block all signals but their own faults.
#pragma once

#include "choir/status.h"

#include <pthread.h>
#include <stdbool.h>

enum { CHI_THREAD_NAME = 16 };

typedef struct {
	pthread_t id;
	bool started;
	char name[CHI_THREAD_NAME];
	void (*fn)(void *arg);
	void *arg;
} chi_thread;

// *t must outlive it.
choir_status chi_thread_start(chi_thread *t, const char *name, void (*fn)(void *arg), void *arg);
void chi_thread_own_name(char out[CHI_THREAD_NAME]);
// On a thread that cannot be cancelled. Calls left if fn ended it by pthread_exit.
void chi_thread_call(void (*fn)(void *arg), void (*left)(void *arg), void *arg);
void chi_thread_join(chi_thread *t); // also if never started
void chi_thread_detach(chi_thread *t);

void chi_thread_yield(void);
void chi_thread_nap(double seconds);

// Without preempting others at wake-up, if possible.
void chi_thread_stand_back(void);

// The lowest priority, if possible.
void chi_thread_take_leftovers(void);

// Changes in a child of fork.
unsigned chi_fork_generation(void);
