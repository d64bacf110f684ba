// All connections of one process: a hub listens, dials, shakes hands, sends heartbeats, and gives
// frames to its owner, in chi_hub_step. It has no thread. One thread uses it, except for
// chi_hub_wake.
#pragma once

#include "net/handshake.h"
#include "net/heartbeat.h"

#include "base/status.h"

// In the handshake at a time, and seconds that each has.
enum { CHI_HUB_STRANGERS = 16 };
#define CHI_HUB_HANDSHAKE_SECONDS 2.0

typedef struct chi_hub chi_hub;
typedef struct chi_peer chi_peer;

// The other end of a connection. The hub frees it after lost.
struct chi_peer {
	chi_peer *next;
	chi_hub *hub;
	chi_link link;
	chi_handshake handshake;
	chi_liveness liveness;
	double until; // of the handshake, or of the end
	bool joined; // the handshake has ended
	bool ending; // waits for the other end to close
	bool more; // may have frames that were received already
	bool gone;
	chi_error why; // gone
	char name[128]; // of its hello; until then "127.0.0.1:40112"
	void *user; // the owner's
};

typedef struct {
	void *user;
	// Listening end: whether the peer may join; may append to its welcome. A failure's text goes
	// to the peer, and lost is not called. NULL: all may.
	choir_status (*admit)(void *user, chi_peer *peer, chi_pack *welcome);
	void (*joined)(void *user, chi_peer *peer);
	// A failure ends the peer.
	choir_status (*frame)(
			void *user, chi_peer *peer, const chi_net_frame *frame, const void *payload);
	// A peer that has joined, or was dialled, has ended. The reason is this thread's last
	// failure: CHOIR_END with a text if it said goodbye, CHOIR_PEER_LOST, CHOIR_TIMEOUT (no
	// heartbeat), CHOIR_CORRUPT, or the status with which it refused.
	void (*lost)(void *user, chi_peer *peer, choir_status status);
} chi_hub_owner;

typedef struct {
	double heartbeat; // seconds; 0: 0.5
	double lost_after; // seconds; 0: 5
	uint64_t max; // payload bytes of a received frame; 0: 64 KiB
} chi_hub_options;

// connections and own must outlive the hub.
chi_hub *chi_hub_new(chi_connections *connections, const chi_hello *own,
		const chi_hub_owner *owner, const chi_hub_options *o);
void chi_hub_free(chi_hub *h); // closes all; calls lost for nobody
// bound: the address for chi_hub_dial.
choir_status chi_hub_listen(chi_hub *h, const char *address, char *bound, size_t size);
// NULL: an invalid address, or nobody listens. Later failures come by lost.
chi_peer *chi_hub_dial(chi_hub *h, const char *address, void *user);
// Waits until something happens, or the time, and does it.
choir_status chi_hub_step(chi_hub *h, double until);
void chi_hub_wake(chi_hub *h); // threads: any
// Ends as chi_peer_end, and waits until all have the news, at most 2 seconds.
void chi_hub_end(chi_hub *h, choir_status status, const char *why);
double chi_hub_now(chi_hub *h);
int chi_hub_open_connections(const chi_hub *h);

// A failure ends the peer in the next step (lost), and need not be handled.
choir_status chi_peer_send(
		chi_peer *p, uint16_t kind, uint32_t stream, const choir_connection_part parts[], int n);
choir_status chi_peer_send_pack(chi_peer *p, uint16_t kind, uint32_t stream, const chi_pack *pack);
// Says goodbye, and closes when the peer has closed, after 2 seconds at the latest. lost is not
// called.
void chi_peer_end(chi_peer *p, choir_status status, const char *why);
