// OpenSSL under the sockets. Its own socket functions would raise SIGPIPE in the host's program,
// so it reads and writes by recv and send. It has its own library context: the host's use of
// OpenSSL and the system's openssl.cnf change nothing here.
#include "tls.h"

#ifdef CHOIR_NET_TLS

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct tls_context {
	const choir_net_argument *with;
	OSSL_LIB_CTX *library;
	SSL_CTX *ssl;
	BIO_METHOD *method;
};

struct tls {
	tls_context *context;
	int socket;
	SSL *ssl;
	bool trusted, wants_send, ended;
};

// What an end offers: the first only if it trusts the network. Each has its length in front.
static const unsigned char offers[] = "\013choir/plain\005choir";
static const unsigned char name[5] = { 'c', 'h', 'o', 'i', 'r' }; // of the key
enum { PLAIN_BYTES = 12, OFFER_BYTES = sizeof offers - 1 };

static int bio_write(BIO *b, const char *data, int bytes)
{
	const tls *t = BIO_get_data(b);
	const ssize_t sent = send(t->socket, data, (size_t) bytes, MSG_NOSIGNAL);
	BIO_clear_retry_flags(b);
	if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) // reading ends after what was said
		return bytes;
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(b);
	return (int) sent;
}

static int bio_read(BIO *b, char *data, int bytes)
{
	tls *t = BIO_get_data(b);
	const ssize_t received = recv(t->socket, data, (size_t) bytes, 0);
	BIO_clear_retry_flags(b);
	t->ended = received == 0;
	if (received < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	return (int) received;
}

static long bio_control(BIO *b, int command, long number, void *pointer)
{
	const tls *t = BIO_get_data(b);
	(void) number, (void) pointer;
	return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && t->ended);
}

static SSL_SESSION *make_session(SSL *ssl)
{
	static const unsigned char cipher[2] = { 0x13, 0x01 }; // TLS_AES_128_GCM_SHA256
	const tls *t = SSL_get_app_data(ssl);
	SSL_SESSION *s = SSL_SESSION_new();
	if (s != NULL &&
			SSL_SESSION_set1_master_key(s, t->context->with->key, t->context->with->key_bytes) &&
			SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, cipher)) &&
			SSL_SESSION_set1_id_context(s, name, sizeof name) &&
			SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

static int use_key(
		SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_bytes, SSL_SESSION **s)
{
	(void) md; // both ciphers have SHA-256
	*id = name;
	*id_bytes = sizeof name;
	*s = make_session(ssl);
	return *s != NULL;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **s)
{
	*s = id_bytes == sizeof name && memcmp(id, name, sizeof name) == 0 ? make_session(ssl) : NULL;
	return 1;
}

static int choose(SSL *ssl, const unsigned char **out, unsigned char *bytes,
		const unsigned char *offered, unsigned offered_bytes, void *user)
{
	const tls *t = SSL_get_app_data(ssl);
	const unsigned skip = t->trusted ? 0 : PLAIN_BYTES;
	unsigned char *chosen;
	(void) user;
	if (SSL_select_next_proto(&chosen, bytes, offers + skip, OFFER_BYTES - skip, offered,
				offered_bytes) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static bool set_up(tls_context *c)
{
	c->library = OSSL_LIB_CTX_new();
	c->ssl = c->library == NULL ? NULL : SSL_CTX_new_ex(c->library, NULL, TLS_method());
	c->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "choir");
	if (c->ssl == NULL || c->method == NULL || !BIO_meth_set_write(c->method, bio_write) ||
			!BIO_meth_set_read(c->method, bio_read) || !BIO_meth_set_ctrl(c->method, bio_control))
		return false;
	SSL_CTX_set_options(c->ssl, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(c->ssl,
			SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_psk_use_session_callback(c->ssl, use_key);
	SSL_CTX_set_psk_find_session_callback(c->ssl, find_key);
	SSL_CTX_set_alpn_select_cb(c->ssl, choose, NULL);
	return SSL_CTX_set_min_proto_version(c->ssl, TLS1_3_VERSION) &&
			SSL_CTX_set_num_tickets(c->ssl, 0) &&
			SSL_CTX_set_session_id_context(c->ssl, name, sizeof name) &&
			SSL_CTX_set_ciphersuites(
					c->ssl, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256");
}

static void close_context(tls_context *c)
{
	if (c == NULL)
		return;
	SSL_CTX_free(c->ssl);
	BIO_meth_free(c->method);
	OSSL_LIB_CTX_free(c->library);
	c->with->release(c);
}

static tls_context *open_context(const choir_net_argument *with)
{
	tls_context *c = with->allocate(sizeof *c);
	if (c == NULL)
		return NULL;
	c->with = with;
	if (set_up(c))
		return c;
	with->fail(CHOIR_NO_MEMORY, "TLS: OpenSSL cannot start");
	close_context(c);
	return NULL;
}

static void end(tls *t)
{
	if (t == NULL)
		return;
	SSL_free(t->ssl);
	t->context->with->release(t);
}

static tls *begin(tls_context *c, int socket, bool listens, bool trusted)
{
	tls *t = c->with->allocate(sizeof *t);
	if (t == NULL)
		return NULL;
	*t = (tls){ .context = c, .socket = socket, .trusted = trusted, .ssl = SSL_new(c->ssl) };
	BIO *b = t->ssl == NULL ? NULL : BIO_new(c->method);
	const unsigned skip = trusted ? 0 : PLAIN_BYTES;
	if (b != NULL) {
		BIO_set_data(b, t);
		BIO_set_init(b, 1);
		SSL_set_bio(t->ssl, b, b);
	}
	if (b == NULL || !SSL_set_app_data(t->ssl, t) ||
			SSL_set_alpn_protos(t->ssl, offers + skip, OFFER_BYTES - skip) != 0) {
		c->with->fail(CHOIR_NO_MEMORY, "TLS: no memory for a connection");
		end(t);
		return NULL;
	}
	if (listens)
		SSL_set_accept_state(t->ssl);
	else
		SSL_set_connect_state(t->ssl);
	return t;
}

static choir_status shake(tls *t, bool *done, bool *encrypts)
{
	const unsigned char *chosen;
	unsigned bytes;
	ERR_clear_error();
	const int result = SSL_do_handshake(t->ssl);
	const int error = SSL_get_error(t->ssl, result);
	t->wants_send = error == SSL_ERROR_WANT_WRITE;
	*done = result == 1;
	// A session that was not resumed from the key was made without it.
	if (result == 1 && SSL_session_reused(t->ssl)) {
		SSL_get0_alpn_selected(t->ssl, &chosen, &bytes);
		*encrypts = bytes != PLAIN_BYTES - 1;
		return CHOIR_OK;
	}
	if (result != 1 && (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE))
		return CHOIR_OK;
	ERR_clear_error();
	if (error == SSL_ERROR_ZERO_RETURN || error == SSL_ERROR_SYSCALL)
		return t->context->with->fail(
				CHOIR_PEER_LOST, "the connection was closed before the key was proved");
	return t->context->with->fail(
			CHOIR_INVALID, "the peer has not proved the key; both ends need the same key");
}

static choir_status outcome(tls *t, int result, choir_status at_end)
{
	const int error = SSL_get_error(t->ssl, result);
	t->wants_send = error == SSL_ERROR_WANT_WRITE;
	ERR_clear_error();
	if (error == SSL_ERROR_NONE || error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return CHOIR_OK;
	if (error == SSL_ERROR_ZERO_RETURN && at_end == CHOIR_END)
		return CHOIR_END;
	return t->context->with->fail(CHOIR_PEER_LOST, "the connection has failed");
}

static choir_status send_bytes(tls *t, const void *data, size_t bytes, size_t *sent)
{
	*sent = 0;
	ERR_clear_error();
	return outcome(t, SSL_write_ex(t->ssl, data, bytes, sent), CHOIR_PEER_LOST);
}

static choir_status receive_bytes(tls *t, void *data, size_t capacity, size_t *received)
{
	*received = 0;
	ERR_clear_error();
	return outcome(t, SSL_read_ex(t->ssl, data, capacity, received), CHOIR_END);
}

static bool has_bytes(const tls *t)
{
	return SSL_has_pending(t->ssl);
}

static bool wants_send(const tls *t)
{
	return t->wants_send;
}

static const tls_table table = {
	.open = open_context,
	.close = close_context,
	.begin = begin,
	.end = end,
	.shake = shake,
	.send = send_bytes,
	.receive = receive_bytes,
	.has_bytes = has_bytes,
	.wants_send = wants_send,
};

const tls_table *tls_find(void)
{
	return &table;
}

#else

const tls_table *tls_find(void)
{
	return NULL;
}

#endif
