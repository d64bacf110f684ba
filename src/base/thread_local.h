// Values are freed when their thread ends, the main thread's not at exit.
#pragma once

#include "base/atomic.h"
#include "base/lock.h"

typedef struct {
	chi_mutex lock;
	chi_atomic32 made;
	pthread_key_t key;
	void (*free)(void *value); // on the ending thread, never NULL
} chi_thread_local;

#define CHI_THREAD_LOCAL_STATIC(rank, name, free) \
	{ \
		CHI_MUTEX_STATIC(rank, name), { 0 }, 0, free \
	}

void *chi_thread_local_get(chi_thread_local *s);
// Does not free the previous value. False: out of memory.
bool chi_thread_local_set(chi_thread_local *s, void *value);
