// The transport table says who the workers are, and moves bytes between them. Rules of all tables:
// extend.h.
//
// Messages with the same sender, receiver and tag arrive in the order of sending, others in any
// order. A receive takes the next message of its sender and tag, of at most capacity bytes. send
// and receive begin a request. test makes progress, and tells whether the request is done. Until
// then, Choir does not write to the memory of a send, and does not access that of a receive.
//
// If a worker is lost, the others' calls fail with CHOIR_PEER_LOST; after an abort, with
// CHOIR_CANCELLED. The text names the worker.
//
// Threads: Choir calls slots marked (any) from any thread, also during other calls. A lock makes
// all other calls come one at a time, from any thread. A slot may call only choir_fail of Choir.
#pragma once

#include "../cluster.h"

CHOIR_C_BEGIN

// Tags are 0 to CHOIR_TRANSPORT_TAGS - 1.
#define CHOIR_TRANSPORT_TAGS 16384

// Slots may be NULL. Then send, receive and test fail with CHOIR_UNSUPPORTED; workers gives 1;
// worker gives 0; takes_memory_of gives false; now reads the system's monotonic clock; pause first
// spins, then yields, then sleeps. The others do nothing.
typedef struct choir_transport_table {
	size_t size;
	uint32_t version;
	const char *name; // for choir_cluster_options.transport
	size_t self_size;
	// .argument of choir_cluster_options.
	choir_status (*open)(void *self, const void *argument);
	// Tells the others that this worker leaves. Waits for what the transports must do together, at
	// most this number of seconds (negative: no limit).
	void (*close)(void *self, double seconds);
	int (*worker)(const void *self); // (any) 0 to workers - 1
	int (*workers)(const void *self); // (any) at least 1
	// (any) Writes one line: "Open MPI 4.1.4, MPI_THREAD_MULTIPLE".
	void (*describe)(const void *self, char *text, size_t size);
	// bytes may be 0.
	choir_status (*send)(
			void *self, int to, int tag, const void *data, size_t bytes, uint64_t *request);
	choir_status (*receive)(
			void *self, int from, int tag, void *data, size_t capacity, uint64_t *request);
	// Never blocks. If *done is true, the request ends, and *bytes is the size of the message. A
	// failure does not change the request.
	choir_status (*test)(void *self, uint64_t request, bool *done, size_t *bytes);
	// Gives up a request whose message will not come. Then only a receiver that is reading its
	// memory uses it.
	void (*drop)(void *self, uint64_t request);
	// Tells all workers that this worker stops, and why, as far as possible without waiting. The
	// others' tests then fail.
	void (*abort)(void *self, const char *why);
	double (*now)(void *self); // (any) seconds on the clock of time limits
	// (any) A waiting thread calls this after each call of test; turn counts them from 0. Returns
	// when a request may have changed, or when now(self) is at least until.
	void (*pause)(void *self, int turn, double until);
	// The most bytes of a message that needs no help of the receiver; Choir may split larger ones.
	// 0: unknown.
	size_t eager;
	// (any) Whether data of send and receive may be memory of devices of this kind ("gpu"). Choir
	// has waited for the device before it calls send, and does not use the device until test.
	bool (*takes_memory_of)(const void *self, const char *kind);
} choir_transport_table;

// Registers a table for .transport of clusters.
CHOIR_MUST_CHECK choir_status choir_register_transport(const choir_transport_table *table);

CHOIR_C_END
