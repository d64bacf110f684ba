// Mutexes and conditions with ranks and deadlines. A thread takes mutexes in ascending rank only;
// debug builds check it and abort with both names, since that is a bug in Choir. No user code runs
// with one held, which debug builds check, too.
#pragma once

#include <pthread.h>
#include <stdbool.h>

// The order in which locks may be nested; the higher is taken last.
typedef enum {
	CHI_RANK_OPTIMIZER = 5, // what it has updated
	CHI_RANK_STRATEGY = 10, // who runs; the list of variables
	CHI_RANK_RUN = 20, // replicas, batons, merges of one run
	CHI_RANK_GRADIENTS = 25, // updates on their way, of an optimizer
	CHI_RANK_CROSS = 30,
	CHI_RANK_INPUT = 35,
	CHI_RANK_DATA = 40,
	CHI_RANK_OP = 50, // registry, caches of primitives
	CHI_RANK_POOL = 60, // buffers
	CHI_RANK_STREAM = 70, // queues of devices
	CHI_RANK_CLUSTER = 75, // calls of a transport between workers
	CHI_RANK_DEVICE = 80, // the list of devices
	CHI_RANK_TRACE = 85, // who records spans; spans begin wherever they do
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
// Stands before each call of the program's code. Debug builds abort if this thread holds a mutex
// of Choir's there, with its name.
#ifdef NDEBUG
static inline void chi_mutex_check_none_held(void) {}
#else
void chi_mutex_check_none_held(void);
#endif

void chi_cond_init(chi_cond *c);
void chi_cond_destroy(chi_cond *c);
// Waits with m held, as pthread_cond_timedwait; wake-ups may be spurious. False: the deadline
// (of chi_clock_deadline) has passed.
bool chi_cond_wait(chi_cond *c, chi_mutex *m, double deadline);
void chi_cond_signal(chi_cond *c);
void chi_cond_broadcast(chi_cond *c);
