// Frames: what a connection carries. A frame is a header of 32 bytes and a payload. Numbers are
// little-endian. The header is, in bytes: magic 2, protocol version 1, flags 1, kind 2, zero 2,
// stream 4, sequence 8, payload bytes 8, CRC-32C of the first 28 bytes 4.
//
// A payload consists of fields, written by chi_pack_* and read by chi_unpack_*. The peer's sizes
// are untrusted: a reader never reads beyond the payload, and after its first failure it gives
// zeros.
#pragma once

#include "choir/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
	CHI_FRAME_HEADER = 32,
	CHI_FRAME_VERSION = 1,
	CHI_FRAME_HANDSHAKE_MAX = 4096, // payload bytes before the handshake has ended
	CHI_FRAME_CONTROL_MAX = 65536
};

typedef struct {
	uint16_t kind;
	uint8_t flags;
	uint32_t stream;
	uint64_t sequence; // from 0, one more with each frame of a direction
	uint64_t bytes; // of the payload
} chi_frame;

// Kinds of all connections. Kinds from CHI_FRAME_OWN on belong to the rooms above.
enum {
	CHI_FRAME_HELLO = 1,
	CHI_FRAME_WELCOME,
	CHI_FRAME_REFUSE,
	CHI_FRAME_BEAT,
	CHI_FRAME_BYE, // the sender ends the connection: a status and a text
	CHI_FRAME_OWN = 16
};

void chi_frame_pack(const chi_frame *f, unsigned char header[CHI_FRAME_HEADER]);
// Reads a header. CHOIR_CORRUPT: not a frame, a damaged one, or a payload of more than max
// bytes.
choir_status chi_frame_unpack(
		const unsigned char header[CHI_FRAME_HEADER], uint64_t max, chi_frame *f);

// A payload being written; it grows. failed: out of memory.
typedef struct {
	unsigned char *data;
	size_t bytes, capacity;
	bool failed;
} chi_pack;
void chi_pack_free(chi_pack *p);
void chi_pack_u32(chi_pack *p, uint32_t value);
void chi_pack_u64(chi_pack *p, uint64_t value);
void chi_pack_f64(chi_pack *p, double value);
void chi_pack_text(chi_pack *p, const char *text); // NULL counts as ""
void chi_pack_bytes(chi_pack *p, const void *data, size_t bytes); // with their number
void chi_pack_raw(chi_pack *p, const void *data, size_t bytes); // without

// A payload being read. failed: it ended too early, or a text contains a zero byte.
typedef struct {
	const unsigned char *data;
	size_t bytes, at;
	bool failed;
} chi_unpack;
uint32_t chi_unpack_u32(chi_unpack *u);
uint64_t chi_unpack_u64(chi_unpack *u);
double chi_unpack_f64(chi_unpack *u);
// Copies a text of less than size bytes; longer ones fail.
void chi_unpack_text(chi_unpack *u, char *out, size_t size);
// Returns bytes of the payload itself and their number; NULL after a failure.
const void *chi_unpack_bytes(chi_unpack *u, size_t *bytes);
const void *chi_unpack_raw(chi_unpack *u, size_t bytes);
// CHOIR_CORRUPT, with the name of the message: it failed, or bytes are left.
choir_status chi_unpack_end(const chi_unpack *u, const char *what);
