// A link is a connection that carries frames. It never waits.
#pragma once

#include "net/net_loader.h"
#include "net/net_frame.h"

typedef struct {
	chi_connections *connections;
	uint64_t connection; // 0: none
	uint64_t max; // payload bytes of a received frame, else CHOIR_CORRUPT
	// Receiving.
	unsigned char header[CHI_NET_HEADER];
	size_t header_bytes;
	chi_net_frame frame;
	unsigned char *payload;
	size_t payload_bytes, payload_capacity;
	bool whole; // of a complete frame
	uint64_t received; // frames
	unsigned char *in; // received, not yet read
	size_t in_at, in_bytes;
	// Sending.
	unsigned char *out; // bytes that wait for room
	size_t out_at, out_bytes, out_capacity;
	uint64_t sent; // frames
} chi_link;

// Takes over connection, also on failure.
choir_status chi_link_open(chi_link *l, chi_connections *connections, uint64_t connection);
void chi_link_close(chi_link *l);
// Up to 8 parts. Copies unsent bytes for chi_link_flush.
choir_status chi_link_send(
		chi_link *l, uint16_t kind, uint32_t stream, const choir_connection_part parts[], int n);
choir_status chi_link_send_pack(chi_link *l, uint16_t kind, uint32_t stream, const chi_pack *p);
choir_status chi_link_flush(chi_link *l);
size_t chi_link_waiting(const chi_link *l); // bytes that wait for room
// Valid until the next call; NULL: no complete frame. CHOIR_END: the peer has closed between two
// frames. CHOIR_PEER_LOST: the connection failed, or ended within a frame. CHOIR_CORRUPT: damaged,
// too large, or out of sequence.
choir_status chi_link_receive(chi_link *l, const chi_net_frame **frame, const void **payload);
// The caller frees the last frame's payload with chi_free.
void *chi_link_take(chi_link *l);
