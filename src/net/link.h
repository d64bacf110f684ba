// A link is a connection that carries frames. It joins small frames in one buffer, and receives
// frames that arrive in pieces. It has no thread and never waits.
#pragma once

#include "net/net_loader.h"
#include "net/net_frame.h"

typedef struct {
	chi_connections *connections;
	uint64_t connection; // 0: none
	uint64_t max; // payload bytes of a received frame; more is CHOIR_CORRUPT
	// Receiving.
	unsigned char header[CHI_NET_HEADER];
	size_t header_bytes;
	chi_net_frame frame;
	unsigned char *payload;
	size_t payload_bytes, payload_capacity;
	bool whole; // frame and payload are the last received frame
	uint64_t received; // frames
	unsigned char *in; // bytes that have been received and not yet read
	size_t in_at, in_bytes;
	// Sending.
	unsigned char *out; // bytes that wait for room
	size_t out_at, out_bytes, out_capacity;
	uint64_t sent; // frames
} chi_link;

// connection belongs to the link from here on, also after a failure.
choir_status chi_link_open(chi_link *l, chi_connections *connections, uint64_t connection);
void chi_link_close(chi_link *l);
// Sends a frame of up to 8 parts. What does not fit at once is copied, for chi_link_flush.
choir_status chi_link_send(
		chi_link *l, uint16_t kind, uint32_t stream, const choir_connection_part parts[], int n);
choir_status chi_link_send_pack(chi_link *l, uint16_t kind, uint32_t stream, const chi_pack *p);
choir_status chi_link_flush(chi_link *l);
size_t chi_link_waiting(const chi_link *l); // bytes that wait for room
// *frame: NULL if no whole frame has come; valid until the next call, as *payload. CHOIR_END: the
// peer has closed between two frames. CHOIR_PEER_LOST: the connection failed, or ended within a
// frame. CHOIR_CORRUPT: not a frame, too large, or out of sequence.
choir_status chi_link_receive(chi_link *l, const chi_net_frame **frame, const void **payload);
// Gives the payload of the last frame away, to be freed by chi_free.
void *chi_link_take(chi_link *l);
