// A receiver states which collective, size and order of calls it expects, and never gets the
// bytes of another one (docs/decisions/0028).
//
// A message is a frame (the fingerprint and up to CHI_FRAME_DATA bytes) and the remaining bytes,
// received into the caller's memory, which a failure leaves undefined. All known MPIs send a
// frame, and the parts of few remaining bytes in a collective, without waiting for the receiver
// (docs/decisions/0060).
#pragma once

#include "cluster/cluster.h"

enum { CHI_FINGERPRINT_TEXT = 96, CHI_FRAME_DATA = 3840, CHI_REST_PARTS = 4 };
enum { CHI_MESSAGE_CAPACITY = 4096 };
// Collectives have consecutive numbers (chi_cluster_next). Those that overlap with computation
// are numbered by their callers.
enum { CHI_TAG_COLLECTIVES, CHI_TAG_OVERLAP, CHI_TAGS };

// A hash of the tensors given to collectives so far: the upper 48 bits tell which, the lower 16
// also in which order. Two orders cross if only the upper bits agree.
typedef uint64_t chi_call_order;
static inline chi_call_order chi_call_order_add(chi_call_order order, uint64_t hash)
{
	enum { LOW = 0xffff };
	return (((order & ~(uint64_t) LOW) + (hash & ~(uint64_t) LOW))) |
			((order * 31 + (hash >> 7)) & LOW);
}
static inline bool chi_call_order_crosses(chi_call_order a, chi_call_order b)
{
	return a != b && a >> 16 == b >> 16 && a >> 16 != 0;
}
// Of a message with the text of a failure.
#define CHI_ORDER_FAILED UINT64_MAX

// Two collectives match if all else is equal and their orders do not cross.
typedef struct {
	uint64_t sequence;
	uint64_t hash;
	chi_call_order order; // of earlier calls, or 0
	char what[CHI_FINGERPRINT_TEXT]; // the beginning of "all_reduce sum f32 [10, 3] a/w:grad"
} chi_fingerprint;

// Sets order 0. fmt gives kind, operation, dtype, shape and name, all of them hashed.
void chi_fingerprint_set(chi_fingerprint *f, uint64_t sequence, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);

typedef struct {
	uint64_t magic, bytes;
	chi_fingerprint fingerprint;
	// Only CHI_FRAME_DATA bytes are sent.
	unsigned char data[CHI_MESSAGE_CAPACITY];
} chi_frame;

// Its memory can be used again.
typedef struct {
	choir_cluster *cluster;
	int peer, tag;
	bool sending, done;
	int requests, ended; // begun (first a frame); done, in order
	uint64_t request[1 + CHI_REST_PARTS];
	void *data;
	size_t bytes;
	chi_fingerprint expected;
	chi_frame frame;
} chi_message;

// Tags below CHI_TAGS belong to collectives, whose rests may use any other below
// CHOIR_TRANSPORT_TAGS. Only one receive per worker and tag may be active. After CHOIR_OK the
// message must be waited for, and data must not change until then. A receive of up to
// CHI_MESSAGE_CAPACITY bytes may pass NULL; the bytes are then in m->data. A failure ends the
// cluster.
choir_status chi_message_send(chi_message *m, choir_cluster *c, int to, int tag,
		const chi_fingerprint *f, const void *data, size_t bytes);
choir_status chi_message_receive(chi_message *m, choir_cluster *c, int from, int tag,
		const chi_fingerprint *f, void *data, size_t bytes);
// For all, until the deadline (chi_cluster_deadline). CHOIR_TIMEOUT names the worker. After a
// failure none is active. A wait of a quarter of the cluster's timeout is logged.
choir_status chi_message_wait(chi_message *const m[], int n, double deadline);
// One that is not waited for, before its memory is used again.
void chi_message_drop(chi_message *m);
