// A simulated cluster in one process: each worker is a thread with its own choir_cluster. The time
// of a message is drawn from a seed, so messages of different pairs and tags overtake each other.
// Tests can kill workers and cut the network. Time is virtual and advances only when all workers
// wait, so delays and deadlines cost no real time.
#pragma once

#include "choir/extend/transport_table.h"

typedef struct sim sim;

typedef struct {
	int workers;
	uint64_t seed;
	double slowest; // maximum seconds of a message; 0: no delay
	size_t eager; // messages of up to this many bytes are sent before they are received
	// For workers with several threads: time advances to a deadline only after this many real
	// seconds without an event. 0: each worker has one thread.
	double quiet;
	// Messages may be memory of devices of this kind (NULL: none), which copy reads and writes.
	// False: it refuses the memory, and the message fails.
	const char *kind;
	bool (*copy)(void *to, const void *from, size_t bytes);
} sim_options;

// Makes a simulation of o->workers workers.
sim *sim_new(const sim_options *o);
void sim_free(sim *s); // after all its clusters are freed
// The simulation as a transport, with the argument that a worker opens it with, for its suite.
extern const choir_transport_table sim_table;
typedef struct {
	sim *s;
	int worker;
} sim_argument;
// Makes the cluster of a worker, on that worker's thread, and waits for all others. o may be NULL.
choir_cluster *sim_cluster(sim *s, int worker, const choir_cluster_options *o);

// Kills the worker when it begins to send or receive its n-th message from here on (1: the next):
// its calls fail and its messages in transit are lost. silent: the others are not told (as with
// MPI).
void sim_kill(sim *s, int worker, int n, bool silent);
// Cuts the network between the workers in the mask and the others. 0 restores it; messages sent
// meanwhile then arrive.
void sim_cut(sim *s, uint64_t mask);
// Says whether the worker waits for something outside of the cluster.
void sim_rest(sim *s, int worker, bool rests);
double sim_now(sim *s); // virtual seconds
// Returns the number of messages delivered.
uint64_t sim_messages(sim *s);
uint64_t sim_bytes(sim *s); // in delivered messages
