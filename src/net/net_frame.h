// A header of 32 bytes and a payload. Numbers are little-endian. In bytes: magic 2, protocol
// version 1, zero 1, kind 2, zero 2, stream 4, sequence 8, payload bytes 8, CRC-32C of the first
// 28 bytes 4.
#pragma once

#include "base/serialization.h"

#include <stddef.h>
#include <stdint.h>

enum {
	CHI_NET_HEADER = 32,
	CHI_NET_VERSION = 1,
	CHI_NET_HANDSHAKE_MAX = 4096 // payload bytes before the handshake has ended
};

typedef struct {
	uint16_t kind;
	uint32_t stream;
	uint64_t sequence; // from 0, per direction
	uint64_t bytes; // of the payload
} chi_net_frame;

// Rooms above number their kinds from CHI_NET_OWN on.
enum {
	CHI_NET_HELLO = 1,
	CHI_NET_WELCOME,
	CHI_NET_REFUSE,
	CHI_NET_BEAT,
	CHI_NET_BYE, // status and text; the sender ends the connection
	CHI_NET_OWN = 16
};

void chi_net_frame_pack(const chi_net_frame *f, unsigned char header[CHI_NET_HEADER]);
// CHOIR_CORRUPT: damaged, or a payload of more than max bytes.
choir_status chi_net_frame_unpack(
		const unsigned char header[CHI_NET_HEADER], uint64_t max, chi_net_frame *f);
