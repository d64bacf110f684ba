// Runs one function as every worker of a simulated cluster, each on its own thread.
#pragma once

#include "cluster/sim.h"

// Returns NULL or the error found. c is NULL if the cluster could not be made; choir_error says
// why.
typedef const char *worker_threads_fn(choir_cluster *c, int worker, void *user);

// Runs fn on all workers; fails the test with the first error found. o may be NULL.
void worker_threads_run(
		sim *s, int workers, const choir_cluster_options *o, worker_threads_fn *fn, void *user);
// Runs fn on two workers again and again; in run n, the n-th allocation fails. Stops when none
// fails.
void worker_threads_every_allocation(
		const choir_cluster_options *o, worker_threads_fn *fn, void *user);
