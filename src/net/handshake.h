// The dialling end sends HELLO. The listening end answers WELCOME, or REFUSE with a reason. Both
// compare protocol, job and facts. Before, frames have at most 4 KiB.
#pragma once

#include "net/link.h"

enum { CHI_FACTS = 8, CHI_FACT_NAME = 24, CHI_FACT_VALUE = 128, CHI_ROLE = 16, CHI_HOST = 64 };
enum { CHI_WELCOME_MAX = 1024 };

// Must be equal on both ends.
typedef struct {
	char name[CHI_FACT_NAME], value[CHI_FACT_VALUE];
} chi_fact;

// An end's description of itself.
typedef struct {
	char role[CHI_ROLE]; // "coordinator", "worker", "ps", "supervisor"
	int index; // CHOIR_NONE (-1): the next free one
	uint64_t job, incarnation; // incarnation: different for each start of a process
	int64_t pid;
	char host[CHI_HOST];
	char address[128]; // on which this process listens, or ""
	int facts;
	chi_fact fact[CHI_FACTS];
} chi_hello;

// All but address. Facts: "libchoir" (the library's file) and "program" (NULL: the program's
// file).
choir_status chi_hello_make(
		chi_hello *h, const char *role, int index, uint64_t job, const char *program);
choir_status chi_hello_add(chi_hello *h, const char *name, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
void chi_hello_pack(const chi_hello *h, chi_pack *p);
choir_status chi_hello_unpack(chi_unpack *u, chi_hello *h);
// CHOIR_INVALID: another job. CHOIR_STATE names the peer, the fact and both values.
choir_status chi_hello_check(const chi_hello *own, const chi_hello *peer);
// "worker 2 (node3, pid 4711)".
const char *chi_hello_name(const chi_hello *h, char *out, size_t size);

typedef enum {
	CHI_HANDSHAKE_OPEN, // waits for the peer
	CHI_HANDSHAKE_ASKED, // listening end: the owner welcomes or refuses
	CHI_HANDSHAKE_DONE,
	CHI_HANDSHAKE_FAILED
} chi_handshake_state;

typedef struct {
	chi_handshake_state state;
	bool dialled;
	const chi_hello *own; // must outlive the handshake
	chi_hello peer;
	int index; // of the dialling end, by the listening end
	unsigned char welcome[CHI_WELCOME_MAX]; // dialling end: from the other owner
	size_t welcome_bytes;
} chi_handshake;

choir_status chi_handshake_begin(
		chi_handshake *h, chi_link *l, const chi_hello *own, bool dialled);
// A refusal's text is the peer's reason.
choir_status chi_handshake_take(
		chi_handshake *h, chi_link *l, const chi_net_frame *frame, const void *payload);
// Listening end: accepts the peer.
choir_status chi_handshake_welcome(chi_handshake *h, chi_link *l, const chi_pack *welcome);
// The reason is this thread's last failure.
void chi_handshake_refuse(chi_handshake *h, chi_link *l);

// Of REFUSE and BYE. chi_reason_take makes them this thread's last failure. CHOIR_CORRUPT:
// damaged.
choir_status chi_reason_send(chi_link *l, uint16_t kind, choir_status status, const char *text);
choir_status chi_reason_take(const void *payload, uint64_t bytes, const char *what);
