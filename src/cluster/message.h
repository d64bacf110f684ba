// Messages with a fingerprint. What a message is for travels in front of its bytes, and whoever
// receives one says what it expects: bytes of another collective, of another size, or of an order
// that differs are never handed out as if they were the right ones (docs/decisions/0028). The
// first part of a message, its frame, has room for the fingerprint and CHI_FRAME_DATA bytes; the
// rest, if there is one, goes straight from and to the caller's memory, and is only received once
// the fingerprint was found to be right.
#pragma once

#include "cluster/cluster.h"

enum { CHI_FINGERPRINT_TEXT = 96, CHI_FRAME_DATA = 3968 };

// What a collective is. Two are the same if all of it is.
typedef struct {
	uint64_t sequence; // which one, as each worker counts them
	uint64_t hash; // of the whole text
	char what[CHI_FINGERPRINT_TEXT]; // "all_reduce sum f32 [10, 3] a/w:grad", cut if it is long
} chi_fingerprint;

// fmt says kind, operation, dtype, shape and name; what does not fit counts too.
void chi_fingerprint_set(chi_fingerprint *f, uint64_t sequence, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);

typedef struct {
	uint64_t magic, bytes;
	chi_fingerprint fingerprint;
	unsigned char data[CHI_FRAME_DATA];
} chi_frame;

// One message on its way. The caller's memory, kept from message to message.
typedef struct {
	choir_cluster *cluster;
	int peer, tag;
	bool sending, done;
	int tickets; // how many of ticket are there still
	uint64_t ticket[2];
	void *data; // of a receive
	size_t bytes;
	bool framed; // a receive whose frame has come
	chi_fingerprint expected;
	chi_frame frame;
} chi_message;

// Begin. Tags are 0 to CHOIR_CLUSTER_TAGS - 1; 0 is that of collectives (chi_cluster_next). Of
// messages from one worker with one tag only one may be being received at a time. After CHOIR_OK
// the message must be waited for; data stay as they are until then. A failure ends the cluster.
choir_status chi_message_send(chi_message *m, choir_cluster *c, int to, int tag,
		const chi_fingerprint *f, const void *data, size_t bytes);
choir_status chi_message_receive(chi_message *m, choir_cluster *c, int from, int tag,
		const chi_fingerprint *f, void *data, size_t bytes);
// Moves a message on; never blocks. m->done says whether it has come or gone.
choir_status chi_message_progress(chi_message *m);
// Until all n are done, at the latest at the deadline (of chi_cluster_deadline). CHOIR_TIMEOUT
// names the worker. After a failure none of them is on its way any more.
choir_status chi_message_wait(chi_message *const m[], int n, double deadline);
