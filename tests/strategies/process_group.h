// Strategies over several workers of a simulated cluster, each a thread of this process.
#pragma once

#include <choir/choir.h>
#include "cluster/sim.h"

// The workers and the devices of a strategy.
typedef struct {
	int workers;
	const char *devices; // of each worker; "A;B;C": of the first, the second, and all others
} peers_place;

// One worker's function. s is NULL if its strategy could not be made; choir_error says why.
// Returns NULL or the error found, as a text such as choir_error.
typedef const char *peers_fn(choir_strategy *s, int worker, void *user);

typedef struct {
	int replicas; // of all workers
	peers_place place;
	uint64_t seed; // of the network's delays
	peers_fn *fn;
	void *user;
	// Changes a worker's options before its strategy is made; may be NULL.
	void (*options)(choir_strategy_options *o, int worker, void *user);
	uint64_t *bytes; // becomes the bytes sent between workers; may be NULL
	// This allocation fails, counted over all workers from worker 0's strategy on; 0: none.
	uint64_t lacks;
} peers_job;

// Runs the job; fails the test with the first error found.
void peers_run(const peers_job *job);
// Runs the job again and again with allocation n failing, until none fails; n grows by n / apart +
// 1.
void peers_every_allocation(peers_job job, uint64_t apart);

// Returns NULL if the thread's last failure has this status and the facts of both (second may be
// NULL), else a text.
const char *peers_last_failure(choir_status status, const char *first, const char *second);
// The same for an error that a worker finds itself or hears from another one.
const char *peers_last_or_heard(choir_status status, const char *first, const char *second);
