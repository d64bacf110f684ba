// Runs one function as every worker of a played cluster, each on a thread of its own.
#pragma once

#include "cluster/sim.h"

// Returns NULL or what is wrong. c is NULL if the cluster could not be made; choir_error says why.
typedef const char *worker_threads_fn(choir_cluster *c, int worker, void *user);

// Fails the test with the worker and its text if one found something wrong. o may be NULL.
void worker_threads_run(
		sim *s, int workers, const choir_cluster_options *o, worker_threads_fn *fn, void *user);
// Two workers with the n-th allocation of both together failing, for every n from 1 on, until none
// is left to fail.
void worker_threads_every_allocation(
		const choir_cluster_options *o, worker_threads_fn *fn, void *user);
