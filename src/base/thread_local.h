// A value of its own for each thread, given back when the thread ends (not for the main thread at
// the program's end). For caches that must not be locked.
#pragma once

#include "base/atomic.h"
#include "base/lock.h"

typedef struct {
	chi_mutex lock;
	chi_atomic32 made; // key is
	pthread_key_t key;
	void (*free)(void *value); // on the thread that ends; never with NULL
} chi_thread_local;

#define CHI_THREAD_LOCAL_STATIC(rank, name, free) \
	{ \
		CHI_MUTEX_STATIC(rank, name), { 0 }, 0, free \
	}

void *chi_thread_local_get(chi_thread_local *s); // NULL: none was set by this thread
// False after CHOIR_NO_MEMORY was recorded: value is not kept. The value before is not freed.
bool chi_thread_local_set(chi_thread_local *s, void *value);
