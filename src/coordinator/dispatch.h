// The coordinator's side of the messages. A state machine on a hub, without threads: admit, frame
// and lost are the hub's owner's.
#pragma once

#include "coordinator/closure_queue.h"
#include "coordinator/protocol.h"

typedef struct chi_dispatch {
	chi_closures closures;
	int servers; // of the job
	chi_peer *server[CHI_SERVERS_MAX]; // NULL: has not joined
	chi_peer **worker; // by number; NULL: lost
	size_t worker_capacity;
	int workers; // there now
	chi_staleness staleness; // of all finished closures
	bool paused; // gives no closures
	bool adapts; // gives a worker more closures at a time while they are short
	bool failed; // a server is lost: error
	chi_error error;
	// Answers of servers that are awaited, and their states.
	int awaited;
	chi_pack state[CHI_SERVERS_MAX];
	chi_error answer; // the first failure; or CHOIR_OK
} chi_dispatch;

void chi_dispatch_init(chi_dispatch *d, int servers, int window, int attempts);
void chi_dispatch_free(chi_dispatch *d);
choir_status chi_dispatch_admit(void *dispatch, chi_peer *peer, chi_pack *welcome);
choir_status chi_dispatch_frame(
		void *dispatch, chi_peer *peer, const chi_net_frame *frame, const void *payload);
void chi_dispatch_lost(void *dispatch, chi_peer *peer, choir_status status);
bool chi_dispatch_ready(const chi_dispatch *d); // all servers have joined
// Calls a function on each worker. The caller has a reference to each closure.
choir_status chi_dispatch_call_all(
		chi_dispatch *d, int function, int capacity, chi_closure *closure[], int *n);
// Sends closures. Call it after each step of the hub.
void chi_dispatch_turn(chi_dispatch *d);
// Asks all servers for their states, or gives all the same one. Then awaited counts down to 0.
void chi_dispatch_snapshot(chi_dispatch *d);
void chi_dispatch_restore(chi_dispatch *d, const chi_pack *state);
