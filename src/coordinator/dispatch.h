// The coordinator's side of the messages: a state machine on a hub. admit, frame and lost are for
// the hub's owner.
#pragma once

#include "coordinator/closure_queue.h"
#include "coordinator/protocol.h"

typedef struct chi_dispatch {
	chi_closures closures;
	int servers; // of the job
	chi_peer *server[CHI_SERVERS_MAX]; // NULL: not joined
	chi_peer **worker; // by number; NULL: lost
	size_t worker_capacity;
	int workers;
	chi_staleness staleness; // of finished closures
	bool paused; // gives no closures
	bool adapts; // more closures per worker while they are short
	bool failed; // a server is lost, as error says
	chi_error error;
	// Awaited answers, and servers' states.
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
bool chi_dispatch_ready(const chi_dispatch *d);
// On each worker. The caller gets a reference to each closure.
choir_status chi_dispatch_call_all(
		chi_dispatch *d, int function, int capacity, chi_closure *closure[], int *n);
void chi_dispatch_turn(chi_dispatch *d);
// Afterwards awaited counts down to 0. Every server gets the same state.
void chi_dispatch_snapshot(chi_dispatch *d);
void chi_dispatch_restore(chi_dispatch *d, const chi_pack *state);
