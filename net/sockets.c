// Connections by Unix and TCP sockets and poll. Unix sockets prove that both ends belong to one
// user, whom the system tells. TCP sockets begin with TLS (tls.c), for which a key is needed.
#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, PARTS = 64 };

typedef struct {
	int fd;
	bool listens, connecting, failed;
	tls *tls; // during the handshake, and later if the bytes are encrypted
	bool shaking;
	char peer[80], path[108]; // path: of a listening Unix socket
} channel;

typedef struct {
	choir_net_argument with;
	unsigned char key[256]; // a copy
	const tls_table *tls; // NULL: not in this build
	tls_context *context;
	channel **channels; // a connection is an index + 1
	size_t capacity;
	struct pollfd *polls;
	size_t poll_capacity;
	int wake, spare; // spare: a descriptor to give up where there are no more
} sockets;

static choir_status refused(sockets *s, choir_status status, const char *what, const char *address)
{
	char text[128];
	return s->with.fail(status, "%s: %s: %s", address, what, strerror_r(errno, text, sizeof text));
}

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static choir_status open_sockets(void *self, const void *argument)
{
	sockets *s = self;
	s->with = *(const choir_net_argument *) argument;
	if (s->with.key == NULL || s->with.key_bytes > sizeof s->key)
		s->with.key_bytes = 0;
	if (s->with.key_bytes > 0)
		memcpy(s->key, s->with.key, s->with.key_bytes);
	s->with.key = s->key;
	s->tls = tls_find();
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->spare = open_spare();
	return s->wake >= 0 && s->spare >= 0 ? CHOIR_OK : refused(s, CHOIR_IO, "eventfd", "sockets");
}

// Grows an array of elements of size bytes, doubling it.
static bool grow(sockets *s, void *pointer, size_t *capacity, size_t need, size_t size)
{
	void *old;
	memcpy(&old, pointer, sizeof old);
	if (need <= *capacity)
		return true;
	const size_t more = need < 2 * *capacity ? 2 * *capacity : need + 8;
	void *new = s->with.allocate(more * size);
	if (new == NULL)
		return false;
	if (old != NULL)
		memcpy(new, old, *capacity * size);
	s->with.release(old);
	memcpy(pointer, &new, sizeof new);
	*capacity = more;
	return true;
}

// Takes fd over, also after a failure. NULL: no memory.
static channel *add(sockets *s, int fd, uint64_t *number)
{
	size_t i = 0;
	while (i < s->capacity && s->channels[i] != NULL)
		i++;
	channel *c = s->with.allocate(sizeof *c);
	if (c == NULL || !grow(s, &s->channels, &s->capacity, i + 1, sizeof(channel *))) {
		s->with.release(c);
		close(fd);
		return NULL;
	}
	c->fd = fd;
	s->channels[i] = c;
	*number = i + 1;
	return c;
}

static channel *find(const sockets *s, uint64_t number)
{
	return s->channels[number - 1];
}

static void drop(void *self, uint64_t number)
{
	sockets *s = self;
	channel *c = find(s, number);
	if (c->tls != NULL)
		s->tls->end(c->tls);
	if (c->path[0] != '\0')
		unlink(c->path);
	close(c->fd);
	s->with.release(c);
	s->channels[number - 1] = NULL;
}

static void close_sockets(void *self)
{
	sockets *s = self;
	for (size_t i = 0; i < s->capacity; i++)
		if (s->channels[i] != NULL)
			drop(s, i + 1);
	if (s->context != NULL)
		s->tls->close(s->context);
	s->with.release(s->channels);
	s->with.release(s->polls);
	if (s->wake >= 0)
		close(s->wake);
	if (s->spare >= 0)
		close(s->spare);
	explicit_bzero(s->key, sizeof s->key);
}

// ---- Addresses

typedef union {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un unix_;
	struct sockaddr_storage storage;
} place;

static choir_status find_unix(sockets *s, const char *path, place *p, socklen_t *bytes)
{
	p->unix_.sun_family = AF_UNIX;
	if (path[0] == '\0' || strlen(path) >= sizeof p->unix_.sun_path)
		return s->with.fail(CHOIR_INVALID, "unix:%s: a path of 1 to %zu bytes is needed", path,
				sizeof p->unix_.sun_path - 1);
	strcpy(p->unix_.sun_path, path);
	*bytes = (socklen_t) sizeof p->unix_;
	return CHOIR_OK;
}

// Splits HOST:PORT or [HOST]:PORT.
static choir_status split(
		sockets *s, const char *address, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(address, ':'), *begin = address;
	size_t length = colon == NULL ? 0 : (size_t) (colon - address);
	if (length >= 2 && address[0] == '[' && address[length - 1] == ']') {
		begin++;
		length -= 2;
	}
	if (length == 0 || length >= size || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
			colon[1] == '\0' || strlen(colon + 1) > 5 || strtol(colon + 1, NULL, 10) > UINT16_MAX)
		return s->with.fail(CHOIR_INVALID,
				"address \"%.80s\": HOST:PORT, [HOST]:PORT or unix:PATH is needed, with a port of "
				"up to %d",
				address, UINT16_MAX);
	memcpy(host, begin, length);
	host[length] = '\0';
	*port = colon + 1;
	return CHOIR_OK;
}

static bool is_loopback(const place *p)
{
	return p->any.sa_family == AF_INET
			? ntohl(p->v4.sin_addr.s_addr) >> 24 == 127
			: p->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&p->v6.sin6_addr);
}

static bool is_any(const place *p)
{
	return p->any.sa_family == AF_INET
			? p->v4.sin_addr.s_addr == htonl(INADDR_ANY)
			: p->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&p->v6.sin6_addr);
}

static bool is_name(const char *host, const char *name)
{
	const size_t length = strlen(name);
	return length > 0 && strncasecmp(host, name, length) == 0 &&
			(host[length] == '\0' || host[length] == '.');
}

// With or without its domain. A machine may be called localhost.
static bool is_own_name(const char *host)
{
	char own[256] = "";
	return gethostname(own, sizeof own - 1) == 0 && (is_name(host, own) || is_name(own, host)) &&
			!is_name(host, "localhost");
}

// On many machines the own name stands for a loopback address (Debian: 127.0.1.1 in /etc/hosts).
// Other hosts know another address by this name, and do not reach that one. Another name of a
// loopback address may be meant to keep other hosts away.
static void listen_everywhere(place *p)
{
	if (p->any.sa_family == AF_INET)
		p->v4.sin_addr.s_addr = htonl(INADDR_ANY);
	else
		p->v6.sin6_addr = in6addr_any;
}

static choir_status find_tcp(
		sockets *s, const char *address, bool listens, place *p, socklen_t *bytes)
{
	char host[256];
	const char *port = "";
	CHOIR_TRY(split(s, address, host, sizeof host, &port));
	if (s->with.key_bytes == 0)
		return s->with.fail(CHOIR_INVALID,
				"%s: a TCP address needs the job's key; choir key FILE makes one", address);
	if (s->tls == NULL)
		return s->with.fail(CHOIR_UNSUPPORTED,
				"%s: this build has no OpenSSL, which TCP needs; unix:PATH is possible", address);
	if (s->context == NULL && (s->context = s->tls->open(&s->with)) == NULL)
		return CHOIR_NO_MEMORY;
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = (listens ? AI_PASSIVE : 0) | AI_NUMERICSERV };
	struct addrinfo *found;
	const int error = getaddrinfo(host, port, &hints, &found);
	if (error != 0)
		return s->with.fail(CHOIR_NOT_FOUND, "%s: host \"%s\" is not found: %s", address, host,
				gai_strerror(error));
	const struct addrinfo *best = found;
	for (const struct addrinfo *a = found; a != NULL; a = a->ai_next)
		if (a->ai_family == AF_INET && best->ai_family != AF_INET)
			best = a;
	memcpy(p, best->ai_addr, best->ai_addrlen);
	*bytes = best->ai_addrlen;
	freeaddrinfo(found);
	if (listens && is_loopback(p) && is_own_name(host))
		listen_everywhere(p);
	return CHOIR_OK;
}

static choir_status find_place(
		sockets *s, const char *address, bool listens, place *p, socklen_t *bytes)
{
	memset(p, 0, sizeof *p);
	return strncmp(address, "unix:", 5) == 0 ? find_unix(s, address + 5, p, bytes)
											 : find_tcp(s, address, listens, p, bytes);
}

// ---- Listening

// A socket's file stays where its process was killed. If nobody listens there, it is replaced.
static bool remove_stale(const place *p, socklen_t bytes)
{
	struct stat st;
	if (p->any.sa_family != AF_UNIX || lstat(p->unix_.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return false;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const bool stale = fd >= 0 && connect(fd, &p->any, bytes) != 0 && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return stale && unlink(p->unix_.sun_path) == 0;
}

static bool bind_to(int fd, const place *p, socklen_t bytes)
{
	return bind(fd, &p->any, bytes) == 0 ||
			(errno == EADDRINUSE && remove_stale(p, bytes) && bind(fd, &p->any, bytes) == 0);
}

static choir_status listen_at(
		void *self, const char *address, uint64_t *number, char *bound, size_t size)
{
	sockets *s = self;
	place p;
	socklen_t bytes;
	const int on = 1;
	CHOIR_TRY(find_place(s, address, true, &p, &bytes));
	const int fd = socket(p.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refused(s, CHOIR_IO, "socket", address);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	const bool done = bind_to(fd, &p, bytes);
	if (!done || listen(fd, BACKLOG) != 0) {
		const choir_status status = refused(s, errno == EADDRINUSE ? CHOIR_STATE : CHOIR_IO,
				"nobody can listen there", address);
		close(fd);
		return status;
	}
	channel *c = add(s, fd, number);
	if (c == NULL)
		return CHOIR_NO_MEMORY;
	c->listens = true;
	if (is_any(&p))
		snprintf(c->peer, sizeof c->peer, "all addresses of this machine");
	snprintf(bound, size, "%s", address);
	if (p.any.sa_family == AF_UNIX) {
		memcpy(c->path, p.unix_.sun_path, sizeof c->path);
	} else if (getsockname(fd, &p.any, &bytes) == 0) { // the same bytes of the port in both
		const int host = (int) (strrchr(address, ':') - address);
		snprintf(bound, size, "%.*s:%d", host, address, ntohs(p.v4.sin_port));
	}
	return CHOIR_OK;
}

// False: a Unix socket of another user.
static bool name_peer(channel *c, const place *p)
{
	struct ucred who;
	socklen_t bytes = sizeof who;
	char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
	if (p->any.sa_family == AF_UNIX) {
		const bool known = getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0;
		snprintf(c->peer, sizeof c->peer, "unix, pid %ld", known ? (long) who.pid : 0L);
		return known && who.uid == geteuid();
	}
	getnameinfo(&p->any, sizeof *p, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(c->peer, sizeof c->peer, "%.60s:%.8s", host, port);
	return true;
}

// Makes a connection of a socket: a Unix socket checks the user, a TCP socket begins TLS.
static choir_status begin(sockets *s, int fd, const place *p, bool listens, uint64_t *number)
{
	const int on = 1;
	channel *c = add(s, fd, number);
	if (c == NULL)
		return CHOIR_NO_MEMORY;
	if (!name_peer(c, p)) {
		s->with.fail(CHOIR_INVALID, "%s belongs to another user", c->peer);
	} else if (p->any.sa_family == AF_UNIX) {
		return CHOIR_OK;
	} else {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		c->shaking = true;
		c->tls = s->tls->begin(s->context, fd, listens, s->with.plain || is_loopback(p));
		if (c->tls != NULL)
			return CHOIR_OK;
	}
	drop(s, *number);
	*number = 0;
	return CHOIR_INVALID;
}

// Takes and closes a connection, so that the listener is not ready for ever.
static choir_status out_of_descriptors(sockets *s, int listener)
{
	close(s->spare);
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	s->spare = open_spare();
	return s->with.fail(CHOIR_IO, "a connection is refused: no more file descriptors");
}

static choir_status accept_next(void *self, uint64_t listener, uint64_t *number)
{
	sockets *s = self;
	place p = { 0 };
	socklen_t bytes = sizeof p;
	const int from = find(s, listener)->fd;
	*number = 0;
	const int fd = accept4(from, &p.any, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		return begin(s, fd, &p, true, number);
	if (errno == EMFILE || errno == ENFILE)
		return out_of_descriptors(s, from);
	return CHOIR_OK; // nobody, or one who has left again
}

// ---- Connections

static choir_status connect_to(void *self, const char *address, uint64_t *number)
{
	sockets *s = self;
	place p;
	socklen_t bytes;
	*number = 0;
	CHOIR_TRY(find_place(s, address, false, &p, &bytes));
	const int fd = socket(p.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refused(s, CHOIR_IO, "socket", address);
	const bool connected = connect(fd, &p.any, bytes) == 0;
	if (!connected && errno != EINPROGRESS) {
		const choir_status status = refused(s, CHOIR_NOT_FOUND, "nobody listens there", address);
		close(fd);
		return status;
	}
	CHOIR_TRY(begin(s, fd, &p, false, number));
	find(s, *number)->connecting = !connected;
	return CHOIR_OK;
}

static choir_status failed(channel *c, choir_status status)
{
	c->failed = c->failed || (status != CHOIR_OK && status != CHOIR_END);
	return status;
}

static choir_status lost(sockets *s, channel *c)
{
	return failed(c, refused(s, CHOIR_PEER_LOST, "the connection has failed", c->peer));
}

// Continues connecting and the handshake. *open: bytes can be sent.
static choir_status proceed(sockets *s, channel *c, bool *open)
{
	*open = false;
	if (c->failed)
		return s->with.fail(CHOIR_PEER_LOST, "%s: the connection has failed", c->peer);
	if (c->connecting) {
		struct pollfd ready = { .fd = c->fd, .events = POLLOUT };
		socklen_t bytes = sizeof errno;
		if (poll(&ready, 1, 0) <= 0)
			return CHOIR_OK;
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &errno, &bytes) != 0 || errno != 0)
			return lost(s, c);
		c->connecting = false;
	}
	if (c->shaking) {
		bool done, encrypts;
		CHOIR_TRY(failed(c, s->tls->shake(c->tls, &done, &encrypts)));
		if (!done)
			return CHOIR_OK;
		c->shaking = false;
		if (!encrypts) {
			s->tls->end(c->tls);
			c->tls = NULL;
		}
	}
	*open = true;
	return CHOIR_OK;
}

static choir_status send_encrypted(
		sockets *s, channel *c, const choir_connection_part parts[], int n, size_t *sent)
{
	for (int i = 0; i < n; i++)
		for (size_t at = 0, once; at < parts[i].bytes; at += once, *sent += once) {
			CHOIR_TRY(failed(c,
					s->tls->send(c->tls, (const char *) parts[i].data + at, parts[i].bytes - at,
							&once)));
			if (once == 0)
				return CHOIR_OK;
		}
	return CHOIR_OK;
}

static choir_status send_parts(
		void *self, uint64_t number, const choir_connection_part parts[], int n, size_t *sent)
{
	sockets *s = self;
	channel *c = find(s, number);
	struct iovec to[PARTS];
	bool open;
	*sent = 0;
	CHOIR_TRY(proceed(s, c, &open));
	if (!open)
		return CHOIR_OK;
	if (c->tls != NULL)
		return send_encrypted(s, c, parts, n, sent);
	for (int i = 0; i < n; i++) {
		memcpy(&to[i].iov_base, &parts[i].data, sizeof to[i].iov_base); // it is not written
		to[i].iov_len = parts[i].bytes;
	}
	const struct msghdr message = { .msg_iov = to, .msg_iovlen = (size_t) n };
	const ssize_t once = sendmsg(c->fd, &message, MSG_NOSIGNAL);
	const bool closed = once < 0 && (errno == EPIPE || errno == ECONNRESET); // receiving says it
	if (once < 0 && !closed && errno != EAGAIN && errno != EINTR)
		return lost(s, c);
	*sent = once < 0 ? 0 : (size_t) once;
	for (int i = 0; closed && i < n; i++)
		*sent += parts[i].bytes;
	return CHOIR_OK;
}

static choir_status receive_some(
		void *self, uint64_t number, void *data, size_t capacity, size_t *received)
{
	sockets *s = self;
	channel *c = find(s, number);
	bool open;
	*received = 0;
	CHOIR_TRY(proceed(s, c, &open));
	if (!open || capacity == 0)
		return CHOIR_OK;
	if (c->tls != NULL)
		return failed(c, s->tls->receive(c->tls, data, capacity, received));
	const ssize_t once = recv(c->fd, data, capacity, 0);
	if (once == 0)
		return CHOIR_END;
	if (once < 0 && errno != EAGAIN && errno != EINTR)
		return lost(s, c);
	*received = once < 0 ? 0 : (size_t) once;
	return CHOIR_OK;
}

static void describe(const void *self, uint64_t number, char *text, size_t size)
{
	snprintf(text, size, "%s", find(self, number)->peer);
}

// ---- Waiting

static short events_of(const sockets *s, const channel *c, const choir_connection_wait *w)
{
	const bool sends = c->connecting || (c->tls != NULL && s->tls->wants_send(c->tls)) ||
			(w->send && !c->shaking);
	return (short) ((w->receive ? POLLIN : 0) | (sends ? POLLOUT : 0));
}

static choir_status wait_for(void *self, choir_connection_wait waits[], int n, double until)
{
	sockets *s = self;
	bool now = false;
	if (!grow(s, &s->polls, &s->poll_capacity, (size_t) n + 1, sizeof *s->polls))
		return CHOIR_NO_MEMORY;
	for (int i = 0; i < n; i++) {
		const channel *c = find(s, waits[i].connection);
		const short events = events_of(s, c, &waits[i]);
		waits[i].ready = c->tls != NULL && !c->shaking && s->tls->has_bytes(c->tls);
		now |= waits[i].ready;
		s->polls[i] = (struct pollfd){ .fd = events == 0 ? -1 : c->fd, .events = events };
	}
	s->polls[n] = (struct pollfd){ .fd = s->wake, .events = POLLIN };
	const double left = fmin(now ? 0 : fmax(until - s->with.now(), 0), 3600);
	const struct timespec time = { .tv_sec = (time_t) left,
		.tv_nsec = (long) ((left - floor(left)) * 1e9) };
	const int ready = ppoll(s->polls, (nfds_t) n + 1, &time, NULL);
	if (ready < 0 && errno != EINTR)
		return refused(s, CHOIR_IO, "poll", "sockets");
	for (int i = 0; i < n && ready > 0; i++)
		waits[i].ready |= s->polls[i].revents != 0;
	uint64_t count;
	if (ready > 0 && s->polls[n].revents != 0 && read(s->wake, &count, sizeof count) < 0)
		return refused(s, CHOIR_IO, "eventfd", "sockets");
	return CHOIR_OK;
}

static void wake(void *self)
{
	const uint64_t one = 1;
	// A full counter wakes, too.
	if (write(((sockets *) self)->wake, &one, sizeof one) < 0)
		return;
}

static double now(void *self)
{
	return ((sockets *) self)->with.now();
}

static const choir_connection_table table = {
	.size = sizeof table,
	.version = CHOIR_TABLE_VERSION,
	.name = "sockets",
	.self_size = sizeof(sockets),
	.open = open_sockets,
	.close = close_sockets,
	.listen = listen_at,
	.accept = accept_next,
	.connect = connect_to,
	.send = send_parts,
	.receive = receive_some,
	.describe = describe,
	.drop = drop,
	.wait = wait_for,
	.wake = wake,
	.now = now,
};

extern const choir_net_plugin choir_net_plugin_data;
__attribute__((visibility("default"))) const choir_net_plugin choir_net_plugin_data = {
	.version = CHOIR_NET_PLUGIN_VERSION,
	.table = &table,
};
