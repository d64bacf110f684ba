// Strategies over several workers, each a thread of this process, in a played cluster.
#pragma once

#include <choir/choir.h>
#include "cluster/sim.h"

// How the replicas of a strategy are carried: by so many workers, each on devices of its own.
typedef struct {
	int workers;
	const char *devices; // of each worker; "A;B;C": of the first, the second, and all others
} peers_place;

// One worker's part; s is NULL if its strategy could not be made, and choir_error says why.
// NULL, or what is wrong (a text of the thread's, such as choir_error).
typedef const char *peers_fn(choir_strategy *s, int worker, void *user);

typedef struct {
	int replicas; // of all
	peers_place place;
	uint64_t seed; // of the network's delays
	peers_fn *fn;
	void *user;
	// Changes worker's options before its strategy is made; may be NULL.
	void (*options)(choir_strategy_options *o, int worker, void *user);
	uint64_t *bytes; // becomes what went between workers; may be NULL
	uint64_t lacks; // this allocation of all workers, from worker 0's strategy on, fails; 0: none
} peers_job;

// Fails the test with the worker and its text if one found something wrong.
void peers_run(const peers_job *job);
// With the n-th allocation failing, until none is left to fail; n grows by n / apart and 1.
void peers_every_allocation(peers_job job, uint64_t apart);

// NULL if this thread's last failure has this status and all of the words; else a text of the
// thread's.
const char *peers_last_failure(choir_status status, const char *first, const char *second);
// The same of what one worker finds and all others may find by themselves, or hear of it.
const char *peers_last_or_heard(choir_status status, const char *first, const char *second);
