// A thread takes mutexes in ascending rank, and holds none while the program's code runs. Debug
// builds abort at a violation.
#pragma once

#include <pthread.h>
#include <stdbool.h>

typedef enum {
	CHI_RANK_OPTIMIZER = 5, // updated variables
	CHI_RANK_STRATEGY = 10, // runs, list of variables
	CHI_RANK_RUN = 20, // replicas, batons, merge calls
	CHI_RANK_GRADIENTS = 25, // pending updates
	CHI_RANK_CROSS = 30,
	CHI_RANK_INPUT = 35,
	CHI_RANK_DATA = 40,
	CHI_RANK_VALUE = 45, // 16-bit copies of variables
	CHI_RANK_OP = 50, // registry, primitive caches
	CHI_RANK_POOL = 60, // buffers
	CHI_RANK_STREAM = 70, // device queues
	CHI_RANK_CLUSTER = 75, // transport calls
	CHI_RANK_DEVICE = 80, // list of devices
	CHI_RANK_TRACE = 85, // recording threads
	CHI_RANK_LOG = 90
} chi_rank;

typedef struct {
	pthread_mutex_t mutex;
	chi_rank rank;
	const char *name;
} chi_mutex;

typedef struct {
	pthread_cond_t cond; // on the monotonic clock
} chi_cond;

#define CHI_MUTEX_STATIC(rank, name) \
	{ \
		PTHREAD_MUTEX_INITIALIZER, rank, name \
	}

void chi_mutex_init(chi_mutex *m, chi_rank rank, const char *name);
void chi_mutex_destroy(chi_mutex *m);
void chi_mutex_lock(chi_mutex *m);
void chi_mutex_unlock(chi_mutex *m);
#ifdef NDEBUG
static inline void chi_mutex_check_none_held(void) {}
#else
void chi_mutex_check_none_held(void);
#endif

void chi_cond_init(chi_cond *c);
void chi_cond_destroy(chi_cond *c);
// May wake spuriously. False: the deadline has passed.
bool chi_cond_wait(chi_cond *c, chi_mutex *m, double deadline);
void chi_cond_signal(chi_cond *c);
void chi_cond_broadcast(chi_cond *c);
