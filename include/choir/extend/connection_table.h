// The connection table carries bytes between processes that join a job, leave it and come back:
// coordinators, workers, parameter servers, supervisors. A cluster (transport_table.h) has a
// fixed set of workers, but connections come and go. libchoir-net has a table for Unix and TCP
// sockets.
//
// A connection is a stream of bytes in both directions. Bytes of one connection arrive in order,
// or the connection ends. A table never sends bytes again over another connection, and never
// hides that a connection has ended. Both ends of a connection prove that they have the job's
// key before the first byte arrives. A peer that does not prove it gets no byte.
//
// Slots never block, except wait. A slot that cannot continue at the moment succeeds with 0
// bytes, or with connection 0. A connection that fails once fails in all later calls, until the
// caller drops it.
//
// Threads: Choir makes one call at a time on each self, except slots marked (any). A slot must
// call no function of Choir but choir_fail.
#pragma once

#include "../status.h"

CHOIR_C_BEGIN

// A part of what is sent: parts are sent one after another.
typedef struct {
	const void *data;
	size_t bytes;
} choir_connection_part;

// What a caller waits for. Listeners are ready to receive if accept has a new connection.
typedef struct {
	uint64_t connection; // or a listener
	bool receive, send; // in: wait until the connection can receive, can send
	bool ready; // out: a call may have something to do, or fails
} choir_connection_wait;

// Missing slots: listen, accept, connect, send, receive fail with CHOIR_UNSUPPORTED. wait sleeps
// for at most a millisecond and says that all are ready. now is the system's monotonic clock.
// The others do nothing. Rules of all tables: extend.h.
typedef struct choir_connection_table {
	size_t size;
	uint32_t version;
	const char *name; // "sockets"
	size_t self_size;
	choir_status (*open)(void *self, const void *argument);
	void (*close)(void *self); // drops all connections and listeners
	// Listens at an address. bound: the address for connect, with the number of the port that
	// the system chose if address has port 0. CHOIR_STATE: the address is in use. CHOIR_INVALID:
	// the address has no valid form, or is not safe without a key.
	choir_status (*listen)(
			void *self, const char *address, uint64_t *listener, char *bound, size_t bound_size);
	// Takes the next new connection. *connection is 0 if there is none.
	choir_status (*accept)(void *self, uint64_t listener, uint64_t *connection);
	// Begins a connection. The connection may fail later: CHOIR_PEER_LOST in send and receive.
	// CHOIR_NOT_FOUND: nobody listens, or no such host.
	choir_status (*connect)(void *self, const char *address, uint64_t *connection);
	// Sends as many bytes of up to 64 parts as fit. *sent is their number.
	choir_status (*send)(void *self, uint64_t connection, const choir_connection_part parts[],
			int n, size_t *sent);
	// Receives up to capacity bytes. CHOIR_END: the peer has closed the connection, and all its
	// bytes have been received. CHOIR_PEER_LOST: the connection has failed. CHOIR_INVALID: the
	// peer has not proved the key.
	choir_status (*receive)(
			void *self, uint64_t connection, void *data, size_t capacity, size_t *received);
	// Writes one line about the connection's peer: "127.0.0.1:40112, TLS 1.3".
	void (*describe)(const void *self, uint64_t connection, char *text, size_t size);
	// Closes a connection or a listener. Bytes that were sent still arrive, if the peer lives.
	void (*drop)(void *self, uint64_t connection);
	// Waits until at least one of n is ready, until a wake, or until the time of now. A call
	// after a wake returns at once.
	choir_status (*wait)(void *self, choir_connection_wait waits[], int n, double until);
	void (*wake)(void *self); // (any) ends a wait
	double (*now)(void *self); // (any) seconds on the clock of time limits
} choir_connection_table;

CHOIR_C_END
