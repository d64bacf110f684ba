// Simulated connections between nodes, in one thread and with virtual time. Bytes travel in
// pieces that are cut anywhere, each with a delay drawn from a seed. Pieces of one direction of
// a connection keep their order, all others overtake each other. Tests kill and stop nodes and
// cut the network.
#pragma once

#include "net/net_loader.h"

enum { NET_SIM_NODES = 16 };

typedef struct net_sim net_sim;

typedef struct {
	uint64_t seed;
	double slowest; // seconds of a piece at most
	size_t piece; // bytes of a piece at most; 0: no limit
	size_t window; // bytes on their way in one direction; 0: 64 KiB
	// Every third connection to a node from 1 to this one is six times as slow. 0: none.
	int slow_nodes;
} net_sim_options;

net_sim *net_sim_new(const net_sim_options *o);
void net_sim_free(net_sim *s); // after the connections of all nodes
// The connections of a node. An address is any text. Free with chi_connections_free.
chi_connections *net_sim_connections(net_sim *s, int node);
double net_sim_now(const net_sim *s);
uint64_t net_sim_draw(net_sim *s, uint64_t below);

// Ends all connections of a node, as the system does for a process that was killed. What it has
// sent still arrives.
void net_sim_kill(net_sim *s, int node);
void net_sim_stop(net_sim *s, int node, bool stopped); // as SIGSTOP and SIGCONT
void net_sim_cut(
		net_sim *s, uint32_t mask); // between the nodes in mask and the others; 0: restores

// In this mode wait moves the time, for tests that use the ends one after another.
void net_sim_wait_moves_time(net_sim *s);
// Otherwise wait returns at once. This moves the time to the next moment at which a node that
// has waited has something to do, and returns the node; CHOIR_NONE: nobody until that time.
int net_sim_next(net_sim *s, double until);
void net_sim_expect(net_sim *s, int node, double until); // wakes a node at a time
