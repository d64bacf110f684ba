// Connections to a program's other servers, and their requests. The network thread answers all but
// waits for streams at once.
#include "serve/peer_requests.h"

#include "serve/peer_transfer.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

// Connections are used on the network thread.

choir_status chi_session_add_peer(chi_session *s, chi_unpack *u)
{
	chi_served_peer *p = chi_alloc(sizeof *p);
	CHOIR_TRY(chi_made(p));
	p->number = chi_unpack_u32(u);
	p->incarnation = chi_unpack_u64(u);
	chi_unpack_text(u, p->address, sizeof p->address);
	p->last = &p->first;
	p->next = s->others;
	s->others = p;
	return chi_unpack_end(u, "PEER");
}

static void free_message(chi_served_message *m)
{
	chi_pack_free(&m->pack);
	chi_free(m);
}

// The thread's last failure ends all requests to a server.
static void fail_requests(chi_session *s, uint32_t server)
{
	chi_error why;
	chi_error_save(&why);
	if (why.status == CHOIR_END || why.status == CHOIR_OK)
		why.status = CHOIR_PEER_LOST;
	chi_mutex_lock(&s->lock);
	for (chi_served_request *r = s->requests; r != NULL; r = r->next)
		if (r->server == server && !r->done) {
			r->done = true;
			r->error = why;
			chi_cond_signal(r->changed);
		}
	chi_mutex_unlock(&s->lock);
}

// The program's incarnation follows the token, which the answer returns.
static void deliver(chi_served_peer *p, chi_served_message *m)
{
	unsigned char incarnation[8];
	chi_put_number(incarnation, p->incarnation, 8);
	const choir_connection_part parts[] = { { m->pack.data, 8 },
		{ incarnation, sizeof incarnation }, { m->pack.data + 8, m->pack.bytes - 8 } };
	(void) chi_peer_send(p->peer, m->kind, 0, parts, 3);
	free_message(m);
}

void chi_session_send_to(chi_session *s, chi_served_message *m)
{
	chi_served_peer *p = s->others;
	while (p != NULL && p->number != m->server)
		p = p->next;
	if (p != NULL && p->peer == NULL)
		p->peer = chi_hub_dial(s->hub, p->address, NULL);
	if (p == NULL || p->peer == NULL) {
		if (p == NULL)
			choir_fail(CHOIR_CORRUPT, "server %u is not known", m->server);
		else
			chi_error_prefix("this server cannot reach server %s", p->address);
		fail_requests(s, m->server);
		free_message(m);
	} else if (p->joined) {
		deliver(p, m);
	} else {
		*p->last = m;
		p->last = &m->next;
	}
}

static chi_served_peer *find_peer(chi_session *s, const chi_peer *peer)
{
	chi_served_peer *p = s == NULL ? NULL : s->others;
	while (p != NULL && p->peer != peer)
		p = p->next;
	return p;
}

void chi_session_peer_joined(chi_session *s, chi_peer *peer)
{
	chi_served_peer *p = find_peer(s, peer);
	if (p == NULL)
		return;
	p->joined = true;
	const chi_handshake *h = &peer->handshake;
	chi_mutex_lock(&s->lock);
	p->pid = strcmp(h->own->host, h->peer.host) == 0 ? h->peer.pid : 0;
	p->proof = 0;
	chi_mutex_unlock(&s->lock);
	for (chi_served_message *m = p->first, *next; m != NULL; m = next) {
		next = m->next;
		deliver(p, m);
	}
	p->first = NULL;
	p->last = &p->first;
}

static void drop_messages(chi_served_peer *p)
{
	for (chi_served_message *m = p->first, *next; m != NULL; m = next) {
		next = m->next;
		free_message(m);
	}
	p->first = NULL;
	p->last = &p->first;
}

static void forget_waiters(chi_served_waiter **at, const chi_peer *peer)
{
	while (*at != NULL) {
		chi_served_waiter *w = *at;
		if (w->peer != peer) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		chi_free(w);
	}
}

// Drops answers for a lost server. With the lock.
static void forget(chi_session *s, const chi_peer *peer)
{
	forget_waiters(&s->early, peer);
	for (chi_served_stream *stream = s->streams; stream != NULL; stream = stream->next)
		forget_waiters(&stream->waiters, peer);
	for (chi_served_stream *stream = s->closed; stream != NULL; stream = stream->next)
		forget_waiters(&stream->waiters, peer);
	for (chi_served_message **at = &s->first; *at != NULL;) {
		chi_served_message *m = *at;
		if (m->peer != peer) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		free_message(m);
	}
	s->last = &s->first;
	while (*s->last != NULL)
		s->last = &(*s->last)->next;
}

void chi_session_peer_lost(chi_session *s, chi_peer *peer)
{
	chi_served_peer *p = find_peer(s, peer);
	if (s == NULL)
		return;
	if (p != NULL) {
		chi_error_prefix("server %s", p->address);
		p->peer = NULL;
		p->joined = false;
		drop_messages(p);
		fail_requests(s, p->number);
	}
	chi_mutex_lock(&s->lock);
	forget(s, peer);
	chi_mutex_unlock(&s->lock);
}

void chi_session_free_others(chi_session *s)
{
	for (chi_served_peer *p = s->others, *next; p != NULL; p = next) {
		next = p->next;
		if (p->peer != NULL)
			chi_peer_end(p->peer, CHOIR_END, "the program has ended");
		drop_messages(p);
		chi_free(p);
	}
	s->others = NULL;
}

static void begin_answer(chi_pack *p, uint64_t token, choir_status status)
{
	*p = (chi_pack){ 0 };
	chi_pack_u64(p, token);
	chi_pack_u32(p, (uint32_t) status);
	chi_pack_text(p, status == CHOIR_OK ? "" : choir_error());
}

static choir_status send_answer(chi_peer *peer, chi_pack *p)
{
	const choir_status sent = chi_peer_send_pack(peer, CHI_REMOTE_ANSWER, 0, p);
	chi_pack_free(p);
	return sent;
}

static choir_status answer(chi_peer *peer, uint64_t token, choir_status status)
{
	chi_pack p;
	begin_answer(&p, token, status);
	return send_answer(peer, &p);
}

static void begin_await_answer(chi_session *s, chi_pack *p, uint64_t token, choir_status status)
{
	begin_answer(p, token, status);
	if (status == CHOIR_OK)
		chi_pack_u64(p, (uintptr_t) &s->proof);
}

static void answer_later(chi_session *s, const chi_served_waiter *w, choir_status status)
{
	chi_pack p;
	begin_await_answer(s, &p, w->token, status);
	(void) chi_session_post(s, w->peer, 0, CHI_REMOTE_ANSWER, &p);
}

void chi_session_adopt_waiters(chi_session *s, chi_served_stream *stream)
{
	for (chi_served_waiter **at = &s->early; *at != NULL;) {
		chi_served_waiter *w = *at;
		if (w->stream != stream->number) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = stream->waiters;
		stream->waiters = w;
	}
}

void chi_session_end_early_waiters(chi_session *s)
{
	for (chi_served_waiter *w = s->early, *next; w != NULL; w = next) {
		next = w->next;
		answer_later(s, w, choir_fail(CHOIR_PEER_LOST, "the program has ended"));
		chi_free(w);
	}
	s->early = NULL;
}

// Answers waits for commands that the stream has reached; all: the session ends.
void chi_session_answer_waiters(chi_session *s, chi_served_stream *stream, bool all)
{
	for (chi_served_waiter **at = &stream->waiters; *at != NULL;) {
		chi_served_waiter *w = *at;
		if (!all && w->number > stream->finished) {
			at = &w->next;
			continue;
		}
		choir_status status = CHOIR_OK;
		if (w->number > stream->finished) {
			status = choir_fail(CHOIR_PEER_LOST, "the program has ended");
		} else if (stream->failed != 0 && stream->failed <= w->number) {
			status = chi_error_restore(&stream->failure);
		}
		answer_later(s, w, status);
		*at = w->next;
		chi_free(w);
	}
}

// With the lock, here and below.

// A closed stream runs its remaining commands.
static chi_served_stream *find_closed(const chi_session *s, uint32_t number, uint64_t command)
{
	chi_served_stream *stream = s->closed;
	while (stream != NULL && stream->number != number)
		stream = stream->next;
	return stream != NULL && command <= stream->queued ? stream : NULL;
}

static choir_status take_await(chi_session *s, chi_peer *peer, uint64_t token, chi_unpack *u)
{
	const uint32_t number = chi_unpack_u32(u);
	const uint64_t command = chi_unpack_u64(u);
	chi_served_stream *stream = s->streams;
	while (stream != NULL && stream->number != number)
		stream = stream->next;
	if (stream == NULL)
		stream = find_closed(s, number, command);
	if (stream == NULL && number <= s->opened) { // all its commands are done
		chi_pack p;
		begin_await_answer(s, &p, token, CHOIR_OK);
		return send_answer(peer, &p);
	}
	chi_served_waiter *w = chi_alloc(sizeof *w);
	if (w == NULL)
		return answer(peer, token, CHOIR_NO_MEMORY);
	chi_served_waiter **first = stream == NULL ? &s->early : &stream->waiters;
	*w = (chi_served_waiter){ *first, peer, token, command, number };
	*first = w;
	if (stream != NULL)
		chi_session_answer_waiters(s, stream, false);
	return CHOIR_OK;
}

static choir_status take_write(chi_session *s, chi_peer *peer, uint64_t token, chi_unpack *u)
{
	choir_device *device;
	const uint64_t address = chi_unpack_u64(u);
	const size_t bytes = u->failed ? 0 : u->bytes - u->at;
	const void *data = chi_unpack_raw(u, bytes);
	void *memory = chi_session_find(s, address, bytes, &device);
	if (data == NULL || memory == NULL)
		return answer(peer, token, CHOIR_CORRUPT);
	if (device->host_memory) {
		memcpy(memory, data, bytes);
		return answer(peer, token, CHOIR_OK);
	}
	chi_stream *visitor = chi_stream_new(device);
	choir_status status = chi_made(visitor);
	if (status == CHOIR_OK)
		status = chi_stream_send(visitor, memory, data, bytes);
	chi_stream_free(visitor);
	return answer(peer, token, status);
}

static choir_status take_read(chi_session *s, chi_peer *peer, uint64_t token, chi_unpack *u)
{
	choir_device *device;
	const uint64_t address = chi_unpack_u64(u), bytes = chi_unpack_u64(u);
	if (bytes > CHI_REMOTE_PIECE)
		return answer(
				peer, token, choir_fail(CHOIR_CORRUPT, "a read of %" PRIu64 " bytes", bytes));
	const void *memory = chi_session_find(s, address, (size_t) bytes, &device);
	if (memory == NULL)
		return answer(peer, token, CHOIR_CORRUPT);
	chi_pack p;
	begin_answer(&p, token, CHOIR_OK);
	const size_t at = p.bytes;
	p.failed |= !chi_grow(&p.data, &p.capacity, at + (size_t) bytes, 1);
	choir_status status = p.failed ? CHOIR_NO_MEMORY : CHOIR_OK;
	if (status == CHOIR_OK && device->host_memory) {
		memcpy(p.data + at, memory, (size_t) bytes);
	} else if (status == CHOIR_OK) {
		chi_stream *visitor = chi_stream_new(device);
		status = chi_made(visitor);
		if (status == CHOIR_OK)
			status = chi_stream_fetch(visitor, p.data + at, memory, (size_t) bytes);
		chi_stream_free(visitor);
	}
	p.bytes += (size_t) bytes;
	if (status == CHOIR_OK)
		return send_answer(peer, &p);
	chi_pack_free(&p);
	return answer(peer, token, status);
}

static choir_status take_locate(chi_session *s, chi_peer *peer, uint64_t token, chi_unpack *u)
{
	chi_pack p;
	const uint64_t address = chi_unpack_u64(u), bytes = chi_unpack_u64(u);
	const chi_served_memory *m = chi_session_find_allocation(s, address, (size_t) bytes);
	if (m == NULL || !m->device->host_memory)
		return answer(peer, token, CHOIR_UNSUPPORTED);
	begin_answer(&p, token, CHOIR_OK);
	chi_pack_u64(&p, m->address);
	chi_pack_u64(&p, m->bytes);
	chi_pack_u64(&p, (uintptr_t) m->memory);
	chi_pack_u64(&p, (uintptr_t) &s->proof);
	chi_pack_u64(&p, chi_atomic64_load(&s->proof.releases));
	return send_answer(peer, &p);
}

static choir_status take_bytes(chi_session *s, chi_peer *peer, uint64_t token, chi_unpack *u)
{
	choir_device *device;
	const uint64_t address = chi_unpack_u64(u), bytes = chi_unpack_u64(u);
	const uint64_t from = chi_unpack_u64(u);
	const chi_served_reading other = { peer->handshake.peer.pid, chi_unpack_u64(u),
		s->incarnation };
	void *memory = chi_session_find(s, address, (size_t) bytes, &device);
	const bool done = memory != NULL && device->host_memory && !u->failed &&
			chi_session_read_memory(&other, memory, from, (size_t) bytes);
	return answer(peer, token, done ? CHOIR_OK : CHOIR_UNSUPPORTED);
}

static choir_status take_answer(chi_session *s, uint64_t token, chi_unpack *u)
{
	chi_error e;
	e.status = (choir_status) chi_unpack_u32(u);
	chi_unpack_text(u, e.text, sizeof e.text);
	const size_t bytes = u->failed ? 0 : u->bytes - u->at;
	const void *data = chi_unpack_raw(u, bytes);
	chi_served_request *r = s->requests;
	while (r != NULL && r->token != token)
		r = r->next;
	if (r == NULL || u->failed || (unsigned) e.status > CHOIR_INTERNAL)
		return chi_unpack_end(u, "ANSWER");
	if (e.status == CHOIR_OK && bytes != r->bytes)
		return choir_fail(CHOIR_CORRUPT, "ANSWER: %zu bytes; %zu are needed", bytes, r->bytes);
	if (e.status == CHOIR_OK && bytes > 0)
		memcpy(r->to, data, bytes);
	r->error = e;
	r->done = true;
	chi_cond_signal(r->changed);
	return CHOIR_OK;
}

static choir_status take_request(
		chi_session *s, chi_peer *peer, uint16_t kind, uint64_t token, chi_unpack *u)
{
	if (kind == CHI_REMOTE_AWAIT)
		return take_await(s, peer, token, u);
	if (kind == CHI_REMOTE_WRITE)
		return take_write(s, peer, token, u);
	if (kind == CHI_REMOTE_READ)
		return take_read(s, peer, token, u);
	if (kind == CHI_REMOTE_LOCATE)
		return take_locate(s, peer, token, u);
	if (kind == CHI_REMOTE_TAKE)
		return take_bytes(s, peer, token, u);
	return choir_fail(CHOIR_CORRUPT, "a message of kind %d from a server", kind);
}

choir_status chi_session_peer_frame(
		chi_session *s, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	chi_unpack u = { .data = payload, .bytes = (size_t) f->bytes };
	const uint64_t token = chi_unpack_u64(&u);
	if (f->kind == CHI_REMOTE_ANSWER && s == NULL)
		return CHOIR_OK;
	const uint64_t incarnation = f->kind == CHI_REMOTE_ANSWER ? 0 : chi_unpack_u64(&u);
	if (f->kind != CHI_REMOTE_ANSWER && (s == NULL || s->incarnation != incarnation))
		return answer(peer, token,
				choir_fail(CHOIR_PEER_LOST, "that server does not work for this program"));
	chi_mutex_lock(&s->lock);
	s->serving = true;
	const choir_status status = f->kind == CHI_REMOTE_ANSWER
			? take_answer(s, token, &u)
			: take_request(s, peer, f->kind, token, &u);
	s->serving = false;
	chi_mutex_unlock(&s->lock);
	return status;
}
