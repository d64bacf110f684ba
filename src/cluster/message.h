// Messages with a fingerprint. What a message is for travels in front of its bytes, and whoever
// receives one says what it expects: bytes of another collective, of another size, or of an order
// that differs are never handed out as if they were the right ones (docs/decisions/0028). The
// first part of a message, its frame, has room for the fingerprint and CHI_FRAME_DATA bytes; the
// rest, if there is one, goes straight from and to the caller's memory, where a receive that fails
// may leave anything. A frame is small enough that no MPI known asks its receiver before it sends
// one, and so are the parts of a collective's rest that is not large (docs/decisions/0060).
#pragma once

#include "cluster/cluster.h"

enum { CHI_FINGERPRINT_TEXT = 96, CHI_FRAME_DATA = 3840, CHI_REST_PARTS = 4 };
enum { CHI_MESSAGE_CAPACITY = 4096 }; // bytes that a message has memory for itself
// The tags of collectives: those that follow one another everywhere (chi_cluster_next), and those
// that go on beside them and are counted by who makes them.
enum { CHI_TAG_COLLECTIVES, CHI_TAG_OVERLAP, CHI_TAGS };

// Tensors that were given to collectives so far: the upper 48 bits say which, the lower 16 also in
// which order. Two that agree above and differ below gave the same ones in another order.
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
// The order of an exchange by which a worker says that it has failed; its bytes are the text.
#define CHI_ORDER_FAILED UINT64_MAX

// What a collective is. Two are the same if all of it is, and their orders do not cross.
typedef struct {
	uint64_t sequence; // which one, as each worker counts them
	uint64_t hash; // of the whole text
	chi_call_order order; // of what was given before; 0: nothing
	char what[CHI_FINGERPRINT_TEXT]; // "all_reduce sum f32 [10, 3] a/w:grad", cut if it is long
} chi_fingerprint;

// fmt says kind, operation, dtype, shape and name; what does not fit counts too. Its order is 0.
void chi_fingerprint_set(chi_fingerprint *f, uint64_t sequence, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);

typedef struct {
	uint64_t magic, bytes;
	chi_fingerprint fingerprint;
	unsigned char data[CHI_MESSAGE_CAPACITY]; // the first CHI_FRAME_DATA of them travel here
} chi_frame;

// One message on its way. The caller's memory, kept from message to message.
typedef struct {
	choir_cluster *cluster;
	int peer, tag;
	bool sending, done;
	int requests, ended; // parts begun, of a receive the frame first; parts done, in order
	uint64_t request[1 + CHI_REST_PARTS];
	void *data; // of a receive: where its bytes are, when it is done
	size_t bytes;
	chi_fingerprint expected;
	chi_frame frame;
} chi_message;

// Begin. Tags are 0 to CHOIR_TRANSPORT_TAGS - 1; those below CHI_TAGS are collectives', and parts
// of the rests of their messages may have any other. Of messages from one worker with one tag only
// one may be being received at a time. After CHOIR_OK the message must be waited for; data stay as
// they are until then. A receive of at most CHI_MESSAGE_CAPACITY bytes may have no memory (NULL):
// it is m->data then. A failure ends the cluster.
choir_status chi_message_send(chi_message *m, choir_cluster *c, int to, int tag,
		const chi_fingerprint *f, const void *data, size_t bytes);
choir_status chi_message_receive(chi_message *m, choir_cluster *c, int from, int tag,
		const chi_fingerprint *f, void *data, size_t bytes);
// Until all n are done, at the latest at the deadline (of chi_cluster_deadline). CHOIR_TIMEOUT
// names the worker. After a failure none of them is on its way any more. One that takes a quarter
// of the cluster's time-out is logged, with the worker.
choir_status chi_message_wait(chi_message *const m[], int n, double deadline);
// Lets go of one that was begun and that nobody will wait for, before its memory is used again.
void chi_message_drop(chi_message *m);
