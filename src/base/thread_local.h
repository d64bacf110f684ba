// For caches without a lock. A value is freed when its thread ends, but the main thread's not at
// exit.
#pragma once

#include "base/atomic.h"
#include "base/lock.h"

typedef struct {
	chi_mutex lock;
	chi_atomic32 made; // key exists
	pthread_key_t key;
	void (*free)(void *value); // on the ending thread, never NULL
} chi_thread_local;

#define CHI_THREAD_LOCAL_STATIC(rank, name, free) \
	{ \
		CHI_MUTEX_STATIC(rank, name), { 0 }, 0, free \
	}

void *chi_thread_local_get(chi_thread_local *s);
// The previous value is not freed. False: out of memory, and value is not kept.
bool chi_thread_local_set(chi_thread_local *s, void *value);
