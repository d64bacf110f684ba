// A cluster in one process: each worker is a thread with a choir_cluster of its own, and what
// lies between them is played. Messages take times drawn from a seed, so that those of different
// pairs and tags overtake each other; workers are killed and networks cut on request. Time is
// virtual: it moves on only when all workers wait, so neither delays nor deadlines cost any.
#pragma once

#include "choir/extend/transport_table.h"

typedef struct sim sim;

typedef struct {
	int workers;
	uint64_t seed;
	double slowest; // seconds that a message takes at most; 0: all come at once
	size_t eager; // messages up to so many bytes are sent before they are received
	// Workers with several threads in Choir: time to a deadline moves on only when so many real
	// seconds nothing has happened. 0: each worker has one thread.
	double quiet;
} sim_options;

sim *sim_new(const sim_options *o);
void sim_free(sim *s); // all its clusters are gone
// The cluster of one worker; on that worker's thread, since all meet here. o may be NULL.
choir_cluster *sim_cluster(sim *s, int worker, const choir_cluster_options *o);

// From the n-th message on (1: the next) that it begins to send or receive, the worker is dead:
// its calls fail, its messages on the way are lost. silent: nobody can know (as with MPI).
void sim_kill(sim *s, int worker, int n, bool silent);
// Nothing gets from workers of the mask to the others, or back; 0 mends it, and what was sent in
// between arrives.
void sim_cut(sim *s, uint64_t mask);
// The worker waits for something outside of the cluster, until it says that it does not.
void sim_rest(sim *s, int worker, bool rests);
double sim_now(sim *s); // virtual seconds
// How many messages were delivered.
uint64_t sim_messages(sim *s);
uint64_t sim_bytes(sim *s); // in them
