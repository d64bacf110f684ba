// TLS 1.3 with the job's key as pre-shared key, by OpenSSL. Both ends prove the key. Where both
// ends trust the network between them, the bytes after the handshake are not encrypted.
#pragma once

#include <choir/extend/net.h>

typedef struct tls_context tls_context;
typedef struct tls tls;

typedef struct {
	// NULL: no memory. with must outlive the context.
	tls_context *(*open)(const choir_net_argument *with);
	void (*close)(tls_context *c);
	// Begins a handshake on a socket, which stays the caller's. trusted: this end agrees to go
	// on without encryption.
	tls *(*begin)(tls_context *c, int socket, bool listens, bool trusted);
	void (*end)(tls *t);
	// Continues the handshake. *done: it has ended. CHOIR_INVALID: the peer has not proved the
	// key.
	choir_status (*shake)(tls *t, bool *done, bool *encrypts);
	choir_status (*send)(tls *t, const void *data, size_t bytes, size_t *sent);
	choir_status (*receive)(tls *t, void *data, size_t capacity, size_t *received);
	bool (*has_bytes)(const tls *t); // received and not yet read
	bool (*wants_send)(const tls *t); // the last call waits for room
} tls_table;

const tls_table *tls_find(void); // NULL: this build has no TLS
