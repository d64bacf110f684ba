// A receiver states the expected collective, size and order of calls, and never gets another one's
// bytes (docs/decisions/0028). A message is a frame (the fingerprint and up to CHI_FRAME_DATA
// bytes) and a rest, received into the caller's memory. All known MPIs send eagerly a frame and,
// in a collective, the parts of a short rest (docs/decisions/0060).
#pragma once

#include "cluster/cluster.h"

enum { CHI_FINGERPRINT_TEXT = 96, CHI_FRAME_DATA = 3840, CHI_REST_PARTS = 4 };
enum { CHI_MESSAGE_CAPACITY = 4096 };
// chi_cluster_next numbers collectives; callers number those that overlap.
enum { CHI_TAG_COLLECTIVES, CHI_TAG_OVERLAP, CHI_TAGS };

// A hash of the tensors given to collectives so far: the upper 48 bits of the set, the lower 16
// also of the order. Orders cross if only the upper bits agree.
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
// The text is a failure's.
#define CHI_ORDER_FAILED UINT64_MAX

// Two match if all else is equal and the orders do not cross.
typedef struct {
	uint64_t sequence;
	uint64_t hash;
	chi_call_order order; // of earlier calls, or 0
	char what[CHI_FINGERPRINT_TEXT]; // such as "all_reduce sum f32 [10, 3] a/w:grad"
} chi_fingerprint;

// order is 0; the hash covers the whole text.
void chi_fingerprint_set(chi_fingerprint *f, uint64_t sequence, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);

typedef struct {
	uint64_t magic, bytes;
	chi_fingerprint fingerprint;
	unsigned char data[CHI_MESSAGE_CAPACITY];
} chi_frame;

// Its memory can be reused.
typedef struct {
	choir_cluster *cluster;
	int peer, tag;
	bool sending, done;
	bool bare_frame; // set by the caller: the frame has no data, which may be a device's
	int requests, ended; // begun, the frame first; done
	uint64_t request[1 + CHI_REST_PARTS];
	void *data;
	size_t bytes;
	chi_fingerprint expected;
	chi_frame frame;
} chi_message;

// Collectives have tags below CHI_TAGS, rests those up to CHOIR_TRANSPORT_TAGS. One receive per
// worker and tag may be active. data must not change until the wait. NULL, for up to
// CHI_MESSAGE_CAPACITY bytes: m->data gets them. A failure ends the cluster.
choir_status chi_message_send(chi_message *m, choir_cluster *c, int to, int tag,
		const chi_fingerprint *f, const void *data, size_t bytes);
choir_status chi_message_receive(chi_message *m, choir_cluster *c, int from, int tag,
		const chi_fingerprint *f, void *data, size_t bytes);
// CHOIR_TIMEOUT names the worker. After a failure no message is active. Logs a wait of a quarter
// of the timeout.
choir_status chi_message_wait(chi_message *const m[], int n, double deadline);
// Call it before reusing a message without a wait.
void chi_message_drop(chi_message *m);
