// A process's connections: chi_hub_step listens, dials, shakes hands, sends heartbeats, and gives
// frames to the owner. One thread uses it, except for chi_hub_wake.
#pragma once

#include "net/handshake.h"
#include "net/heartbeat.h"

#include "base/status.h"

// Concurrent handshakes, and the limit of each.
enum { CHI_HUB_STRANGERS = 16 };
#define CHI_HUB_HANDSHAKE_SECONDS 2.0

typedef struct chi_hub chi_hub;
typedef struct chi_peer chi_peer;

// The hub frees it after lost.
struct chi_peer {
	chi_peer *next;
	chi_hub *hub;
	chi_link link;
	chi_handshake handshake;
	chi_heartbeat heartbeat;
	double until; // of the handshake, or of the end
	bool joined;
	bool ending; // waits for the other end to close
	bool more; // received frames may be left
	bool gone;
	chi_error why; // gone
	char name[128]; // from the hello; until then "127.0.0.1:40112"
	void *user; // the owner's
};

typedef struct {
	void *user;
	// Listening end; may append to the welcome. A failure refuses the peer, without lost. NULL:
	// all may join.
	choir_status (*admit)(void *user, chi_peer *peer, chi_pack *welcome);
	void (*joined)(void *user, chi_peer *peer);
	// A failure ends the peer.
	choir_status (*frame)(
			void *user, chi_peer *peer, const chi_net_frame *frame, const void *payload);
	// A peer that has joined or was dialled ends. This thread's last failure is the reason:
	// CHOIR_END with a text after a goodbye, CHOIR_PEER_LOST, CHOIR_TIMEOUT (no heartbeat),
	// CHOIR_CORRUPT, or a refusal's status.
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
void chi_hub_free(chi_hub *h); // does not call lost
// bound: the address for chi_hub_dial.
choir_status chi_hub_listen(chi_hub *h, const char *address, char *bound, size_t size);
// NULL: an invalid address, or no listener. lost reports later failures.
chi_peer *chi_hub_dial(chi_hub *h, const char *address, void *user);
// Waits for events until then.
choir_status chi_hub_step(chi_hub *h, double until);
void chi_hub_wake(chi_hub *h); // threads: any
// As chi_peer_end for all peers; waits at most 2 seconds for delivery.
void chi_hub_end(chi_hub *h, choir_status status, const char *why);
double chi_hub_now(chi_hub *h);
int chi_hub_open_connections(const chi_hub *h);

// Callers may ignore failures: the next step ends the peer (lost).
choir_status chi_peer_send(
		chi_peer *p, uint16_t kind, uint32_t stream, const choir_connection_part parts[], int n);
choir_status chi_peer_send_pack(chi_peer *p, uint16_t kind, uint32_t stream, const chi_pack *pack);
// Says goodbye; closes when the peer has closed, after at most 2 seconds. lost is not called.
void chi_peer_end(chi_peer *p, choir_status status, const char *why);
