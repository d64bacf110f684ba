// A hub on a thread of its own, for a process whose main thread computes. One lock protects what
// both share; the owner's functions are called with it held.
#pragma once

#include "base/lock.h"
#include "base/thread.h"
#include "net/hub.h"

typedef struct chi_outgoing {
	struct chi_outgoing *next;
	chi_peer **to; // *to NULL: the message is dropped
	uint16_t kind;
	chi_pack pack;
} chi_outgoing;

typedef struct {
	chi_mutex lock;
	chi_cond changed; // after each step
	chi_connections *connections;
	chi_hub *hub; // the thread's, after start
	chi_hub_owner owner;
	// Whether the main thread's wait may be over; NULL: after each step.
	bool (*wakes)(void *user); // with turn_user
	void (*turn)(void *user); // before each step, with turn_user; may be NULL
	void *turn_user;
	chi_thread thread;
	bool opened, started, stops;
	chi_error end; // for the peers
	choir_status status; // the thread's failure, which ended it
	chi_error error;
	chi_outgoing *first, **last;
} chi_network_thread;

// own must outlive t.
choir_status chi_network_thread_open(chi_network_thread *t, chi_connections *connections,
		const chi_hello *own, const chi_hub_owner *owner, void (*turn)(void *user),
		const chi_hub_options *o);
choir_status chi_network_thread_start(chi_network_thread *t, const char *name);
// failed: the job's failure, for the peers; NULL: CHOIR_END.
void chi_network_thread_close(chi_network_thread *t, const chi_error *failed);
// With the lock. Takes pack.
choir_status chi_network_thread_send(
		chi_network_thread *t, chi_peer **to, uint16_t kind, chi_pack *pack);
// With the lock. False: the deadline has passed.
bool chi_network_thread_wait(chi_network_thread *t, double deadline);
