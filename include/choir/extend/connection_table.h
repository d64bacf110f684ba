// The connection table: streams of bytes between processes that may join and leave a job at any
// time, unlike a cluster's workers (transport_table.h). libchoir-net has a table for Unix and TCP
// sockets.
//
// A connection is a stream in both directions, in order. If a byte is lost, it ends, as later
// calls report. Both ends prove that they have the job's key before the first byte arrives.
//
// Only the slot wait may block. A slot that cannot continue at the moment succeeds with 0 bytes,
// or with connection 0. All calls on a failed connection fail until the caller drops it.
//
// Threads: Choir calls slots marked (any) from any thread, also during other calls. It makes the
// other calls on a self one at a time. A slot may call only choir_fail of Choir.
#pragma once

#include "../status.h"

CHOIR_C_BEGIN

// Bytes for send.
typedef struct {
	const void *data;
	size_t bytes;
} choir_connection_part;

// What wait waits for. A listener is ready to receive if accept has a new connection.
typedef struct {
	uint64_t connection; // or a listener
	bool receive, send; // in: wait until it can receive, or can send
	bool ready; // out: receive, send or accept may progress or report a failure
} choir_connection_wait;

// Rules of all tables: extend.h. Choir refuses a table with a NULL slot (CHOIR_INVALID).
typedef struct choir_connection_table {
	size_t size;
	uint32_t version;
	const char *name; // "sockets"
	size_t self_size;
	choir_status (*open)(void *self, const void *argument);
	void (*close)(void *self); // drops all connections and listeners
	// bound gets the address for connect, with the port that the system chose for port 0.
	// CHOIR_STATE: the address is in use. CHOIR_INVALID: a wrong form, or not safe without a key.
	choir_status (*listen)(
			void *self, const char *address, uint64_t *listener, char *bound, size_t bound_size);
	// *connection is 0 if there is no new connection.
	choir_status (*accept)(void *self, uint64_t listener, uint64_t *connection);
	// The connection may fail later: CHOIR_PEER_LOST in send and receive. CHOIR_NOT_FOUND: no
	// process listens there, or the host is unknown.
	choir_status (*connect)(void *self, const char *address, uint64_t *connection);
	// Sends up to 64 parts, one after another, as far as they fit. *sent is the number of bytes.
	// What the peer sent before it closed can be received after a send, too: parts for a closed
	// peer may be dropped with CHOIR_OK.
	choir_status (*send)(void *self, uint64_t connection, const choir_connection_part parts[],
			int n, size_t *sent);
	// CHOIR_END: the peer has closed the connection, and all its bytes have been received; after
	// dropped parts, also a failed connection.
	// CHOIR_PEER_LOST: the connection has failed. CHOIR_INVALID: the peer has not proved the key.
	choir_status (*receive)(
			void *self, uint64_t connection, void *data, size_t capacity, size_t *received);
	// Writes one line: "127.0.0.1:40112, TLS 1.3". Of a listener: what bound does not say, or "".
	void (*describe)(const void *self, uint64_t connection, char *text, size_t size);
	// Closes a connection or listener. Bytes sent before still arrive if the peer is alive.
	void (*drop)(void *self, uint64_t connection);
	// Blocks until an element of waits is ready, wake(self) is called, or now reaches until.
	choir_status (*wait)(void *self, choir_connection_wait waits[], int n, double until);
	void (*wake)(void *self); // (any) ends the present wait; without one, the next
	double (*now)(void *self); // (any) seconds on the monotonic clock that time limits use
} choir_connection_table;

CHOIR_C_END
