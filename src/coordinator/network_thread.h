// A hub on a thread of its own, for a process whose main thread computes. One lock protects all
// that the owner's functions and the main thread share. The owner's functions are called with it.
#pragma once

#include "base/lock.h"
#include "base/thread.h"
#include "net/hub.h"

typedef struct chi_outgoing {
	struct chi_outgoing *next;
	chi_peer **to; // where the peer is kept; NULL there: the message is dropped
	uint16_t kind;
	chi_pack pack;
} chi_outgoing;

typedef struct {
	chi_mutex lock;
	chi_cond changed; // after each step
	chi_connections *connections;
	chi_hub *hub; // the thread's, after start
	chi_hub_owner owner;
	// Whether what the main thread waits for may have come; NULL: wake it after each step.
	bool (*wakes)(void *user); // with turn_user
	void (*turn)(void *user); // before each step, with turn_user; may be NULL
	void *turn_user;
	chi_thread thread;
	bool opened, started, stops;
	chi_error end; // what peers are told
	choir_status status; // the thread has ended with a failure
	chi_error error;
	chi_outgoing *first, **last; // to be sent by the thread
} chi_post;

// Makes a hub whose functions hold the lock. own must outlive it.
choir_status chi_post_open(chi_post *p, chi_connections *connections, const chi_hello *own,
		const chi_hub_owner *owner, void (*turn)(void *user), const chi_hub_options *o);
choir_status chi_post_start(chi_post *p, const char *name);
// Says goodbye to all peers. failed: why the job has failed; NULL: CHOIR_END.
void chi_post_close(chi_post *p, const chi_error *failed);
// With the lock. Takes pack.
choir_status chi_post_send(chi_post *p, chi_peer **to, uint16_t kind, chi_pack *pack);
// With the lock. False: the deadline (of chi_clock_deadline) has passed.
bool chi_post_wait(chi_post *p, double deadline);
