// A stream's thread sends requests to other servers and waits for the answers.
#include "serve/peer_transfer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process_memory.h"
#include "base/thresholds.h"

#include <stddef.h>
#include <string.h>

static const double LONGEST = 60; // seconds
enum { PAUSES = 16 }; // between two looks, so that they need not all of a core's time
static chi_atomic64 requests;

uint64_t chi_session_requests(void)
{
	return chi_atomic64_load(&requests);
}

// With the lock, also in the next functions.
static void open_locked(
		chi_served_stream *stream, chi_served_request *r, uint32_t server, chi_pack *p)
{
	chi_session *s = stream->session;
	*r = (chi_served_request){
		.next = s->requests, .changed = &stream->changed, .token = ++s->tokens, .server = server
	};
	s->requests = r;
	*p = (chi_pack){ 0 };
	chi_pack_u64(p, r->token);
}

static void post_locked(chi_session *s, chi_served_request *r, uint16_t kind, chi_pack *p)
{
	chi_atomic64_add(&requests, 1);
	if (chi_session_post(s, NULL, r->server, kind, p) == CHOIR_OK)
		return;
	chi_error_save(&r->error);
	r->done = true;
}

static void unlink_request(chi_session *s, const chi_served_request *r)
{
	chi_served_request **at = &s->requests;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
}

chi_served_request *chi_session_ask(
		chi_served_stream *s, uint32_t server, uint32_t stream, uint64_t number)
{
	chi_pack p;
	chi_served_request *r = chi_alloc(sizeof *r);
	if (r == NULL)
		return NULL;
	open_locked(s, r, server, &p);
	r->to = r->proof;
	r->bytes = sizeof r->proof;
	chi_pack_u32(&p, stream);
	chi_pack_u64(&p, number);
	post_locked(s->session, r, CHI_REMOTE_AWAIT, &p);
	return r;
}

void chi_session_drop(chi_session *s, chi_served_request *r)
{
	if (r != NULL)
		unlink_request(s, r);
	chi_free(r);
}

static void open_request(chi_served_stream *s, chi_served_request *r, uint32_t server, chi_pack *p)
{
	chi_mutex_lock(&s->session->lock);
	open_locked(s, r, server, p);
	chi_mutex_unlock(&s->session->lock);
}

static void post_request(chi_session *s, chi_served_request *r, uint16_t kind, chi_pack *p)
{
	chi_mutex_lock(&s->lock);
	post_locked(s, r, kind, p);
	chi_mutex_unlock(&s->lock);
}

static choir_status wait_locked(chi_session *s, const chi_served_request *r)
{
	const double deadline = chi_clock_deadline(LONGEST);
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK && !r->done && !s->ending)
		if (!chi_cond_wait(r->changed, &s->lock, deadline))
			status = choir_fail(CHOIR_TIMEOUT, "another server has not answered in %g s", LONGEST);
	if (status == CHOIR_OK && s->ending)
		status = choir_fail(CHOIR_PEER_LOST, "the program has ended");
	else if (status == CHOIR_OK && r->error.status != CHOIR_OK)
		status = chi_error_restore(&r->error);
	return status;
}

static choir_status close_request(chi_session *s, chi_served_request *r)
{
	chi_mutex_lock(&s->lock);
	const choir_status status = wait_locked(s, r);
	unlink_request(s, r);
	chi_mutex_unlock(&s->lock);
	return status;
}

bool chi_session_read_memory(
		const chi_served_reading *from, void *to, uint64_t memory, size_t bytes)
{
	uint64_t incarnation = 0;
	const chi_process_memory_part part[] = { { to, memory, bytes },
		{ &incarnation, from->address, sizeof incarnation } };
	return from->pid != 0 && chi_process_memory_read(from->pid, part, 2) &&
			incarnation == from->incarnation;
}

static chi_served_peer *find_peer(const chi_session *s, uint32_t server)
{
	chi_served_peer *p = s->others;
	while (p != NULL && p->number != server)
		p = p->next;
	return p;
}

// The address is that of the incarnation here.
static chi_served_reading reading_of(chi_session *s, uint32_t server)
{
	chi_served_reading found = { 0 };
	chi_mutex_lock(&s->lock);
	const chi_served_peer *p = find_peer(s, server);
	if (p != NULL)
		found = (chi_served_reading){ p->pid, (uintptr_t) &p->incarnation, p->incarnation };
	chi_mutex_unlock(&s->lock);
	return found;
}

static void forget_pid(chi_session *s, uint32_t server)
{
	chi_mutex_lock(&s->lock);
	find_peer(s, server)->pid = 0;
	chi_mutex_unlock(&s->lock);
}

choir_status chi_session_await(chi_session *s, const chi_served_request *r)
{
	chi_mutex_lock(&s->lock);
	const choir_status status = wait_locked(s, r);
	chi_served_peer *p = find_peer(s, r->server);
	if (status == CHOIR_OK && p != NULL)
		p->proof = chi_get_number(r->proof, sizeof r->proof);
	chi_mutex_unlock(&s->lock);
	return status;
}

bool chi_session_shows(const chi_session *s, uint32_t server)
{
	const chi_served_peer *p = find_peer(s, server);
	return p != NULL && p->pid != 0 && p->proof != 0;
}

bool chi_session_sees(chi_session *s, uint32_t server, uint32_t stream, uint64_t command)
{
	chi_served_reading other = { 0 };
	chi_mutex_lock(&s->lock);
	const chi_served_peer *p = find_peer(s, server);
	if (chi_session_shows(s, server))
		other = (chi_served_reading){ p->pid, p->proof, p->incarnation };
	chi_mutex_unlock(&s->lock);
	const uint64_t word = other.address + offsetof(chi_served_proof, progress) +
			stream % CHI_SERVED_PROGRESS * sizeof(chi_atomic64);
	const double until = chi_clock_deadline(CHI_PROGRESS_SPIN_US * 1e-6);
	while (other.pid != 0) {
		uint64_t shown = 0;
		if (!chi_session_read_memory(&other, &shown, word, sizeof shown)) {
			forget_pid(s, server);
			return false;
		}
		if (shown >> CHI_SERVED_COUNT == stream &&
				(shown & (((uint64_t) 1 << CHI_SERVED_COUNT) - 1)) >= command)
			return true;
		if (chi_clock_now() >= until)
			return false;
		for (int i = 0; i < PAUSES; i++)
			chi_spin_pause();
	}
	return false;
}

// False: use messages.
static bool push_directly(
		chi_served_stream *stream, const void *here, uint64_t there, size_t bytes)
{
	chi_session *s = stream->session;
	const uint32_t server = chi_remote_server_of(there);
	const chi_served_reading own = reading_of(s, server);
	chi_served_request r;
	chi_pack p;
	if (own.pid == 0)
		return false;
	open_request(stream, &r, server, &p);
	chi_pack_u64(&p, there);
	chi_pack_u64(&p, bytes);
	chi_pack_u64(&p, (uintptr_t) here);
	chi_pack_u64(&p, own.address);
	post_request(s, &r, CHI_REMOTE_TAKE, &p);
	const bool done = close_request(s, &r) == CHOIR_OK;
	if (!done)
		forget_pid(s, server);
	return done;
}

// The program uses an address for one allocation only.
static bool remember(
		chi_session *s, uint32_t server, uint64_t there, size_t bytes, chi_served_location *found)
{
	*found = (chi_served_location){ 0 };
	chi_mutex_lock(&s->lock);
	const chi_served_peer *p = find_peer(s, server);
	for (int i = 0; i < CHI_SERVED_LOCATIONS; i++) {
		const chi_served_location *l = &p->location[i];
		if (there - l->address < l->bytes && bytes <= l->bytes - (there - l->address))
			*found = *l;
	}
	chi_mutex_unlock(&s->lock);
	return found->bytes > 0;
}

static void keep_location(chi_session *s, uint32_t server, const chi_served_location *l)
{
	chi_mutex_lock(&s->lock);
	chi_served_peer *p = find_peer(s, server);
	for (int i = 0; i < CHI_SERVED_LOCATIONS; i++)
		if (p->location[i].releases != l->releases)
			p->location[i].bytes = 0;
	p->location[p->located++ % CHI_SERVED_LOCATIONS] = *l;
	chi_mutex_unlock(&s->lock);
}

static bool locate(
		chi_served_stream *stream, uint64_t there, size_t bytes, chi_served_location *found)
{
	chi_session *s = stream->session;
	const uint32_t server = chi_remote_server_of(there);
	unsigned char answer[40];
	chi_served_request r;
	chi_pack p;
	open_request(stream, &r, server, &p);
	chi_pack_u64(&p, there);
	chi_pack_u64(&p, bytes);
	r.to = answer;
	r.bytes = sizeof answer;
	post_request(s, &r, CHI_REMOTE_LOCATE, &p);
	if (close_request(s, &r) != CHOIR_OK)
		return false;
	*found = (chi_served_location){ chi_get_number(answer, 8), chi_get_number(answer + 8, 8),
		chi_get_number(answer + 16, 8), chi_get_number(answer + 24, 8),
		chi_get_number(answer + 32, 8) };
	if (there - found->address >= found->bytes || bytes > found->bytes - (there - found->address))
		return false;
	keep_location(s, server, found);
	return true;
}

// The proof is read after the bytes. changed: the server has freed memory since.
static bool read_at(const chi_served_reading *from, const chi_served_location *l, void *to,
		uint64_t there, size_t bytes, bool *changed)
{
	uint64_t proof[2] = { 0 };
	const chi_process_memory_part part[] = { { to, l->memory + (there - l->address), bytes },
		{ proof, l->proof, sizeof proof } };
	const bool done = chi_process_memory_read(from->pid, part, 2);
	*changed = proof[1] != l->releases;
	return done && proof[0] == from->incarnation;
}

// False: use messages. What a stale location has given is not kept.
static bool pull_directly(chi_served_stream *stream, void *here, uint64_t there, size_t bytes)
{
	chi_session *s = stream->session;
	const uint32_t server = chi_remote_server_of(there);
	const chi_served_reading other = reading_of(s, server);
	chi_served_location l;
	bool changed;
	if (other.pid == 0)
		return false;
	if (remember(s, server, there, bytes, &l)) {
		if (read_at(&other, &l, here, there, bytes, &changed) && !changed)
			return true;
		memset(here, 0, bytes);
	}
	if (locate(stream, there, bytes, &l) && read_at(&other, &l, here, there, bytes, &changed))
		return true;
	forget_pid(s, server);
	return false;
}

enum { PIECES = 8 }; // at a time

typedef struct {
	chi_served_request request;
	void *memory;
	unsigned char *staging; // NULL: host memory
	size_t bytes;
} served_piece;

static choir_status begin_piece(
		chi_served_stream *s, served_piece *piece, uint64_t there, bool push)
{
	chi_session *session = s->session;
	chi_pack p;
	void *host = piece->staging != NULL ? piece->staging : piece->memory;
	if (piece->staging != NULL && push)
		CHOIR_TRY(chi_stream_fetch(s->local, host, piece->memory, piece->bytes));
	open_request(s, &piece->request, chi_remote_server_of(there), &p);
	chi_pack_u64(&p, there);
	if (push)
		chi_pack_raw(&p, host, piece->bytes);
	else
		chi_pack_u64(&p, piece->bytes);
	piece->request.to = push ? NULL : host;
	piece->request.bytes = push ? 0 : piece->bytes;
	post_request(session, &piece->request, push ? CHI_REMOTE_WRITE : CHI_REMOTE_READ, &p);
	return CHOIR_OK;
}

static choir_status end_piece(chi_served_stream *s, served_piece *piece, bool push)
{
	CHOIR_TRY(close_request(s->session, &piece->request));
	if (piece->staging == NULL || push)
		return CHOIR_OK;
	return chi_stream_send(s->local, piece->memory, piece->staging, piece->bytes);
}

static choir_status transfer_pieces(chi_served_stream *s, void *here, uint64_t there, size_t bytes,
		unsigned char *staging, bool push)
{
	served_piece pieces[PIECES];
	size_t begun = 0, ended = 0;
	choir_status status = CHOIR_OK;
	for (size_t at = 0; at < bytes && status == CHOIR_OK; at += CHI_REMOTE_PIECE) {
		if (begun - ended == PIECES)
			status = end_piece(s, &pieces[ended++ % PIECES], push);
		served_piece *piece = &pieces[begun % PIECES];
		piece->memory = (char *) here + at;
		piece->staging =
				staging == NULL ? NULL : staging + begun % PIECES * (size_t) CHI_REMOTE_PIECE;
		piece->bytes = bytes - at < CHI_REMOTE_PIECE ? bytes - at : CHI_REMOTE_PIECE;
		if (status == CHOIR_OK)
			status = begin_piece(s, piece, there + at, push);
		begun += status == CHOIR_OK;
	}
	while (ended < begun) {
		const choir_status last = end_piece(s, &pieces[ended++ % PIECES], push);
		status = status == CHOIR_OK ? last : status;
	}
	return status;
}

choir_status chi_session_transfer(
		chi_served_stream *s, uint64_t here, uint64_t there, size_t bytes, bool push)
{
	chi_session *session = s->session;
	const bool host = s->local->device->host_memory;
	choir_device *device;
	chi_mutex_lock(&session->lock);
	void *memory = chi_session_find(session, here, bytes, &device);
	chi_mutex_unlock(&session->lock);
	if (memory == NULL)
		return CHOIR_CORRUPT;
	if (host &&
			(push ? push_directly(s, memory, there, bytes)
				  : pull_directly(s, memory, there, bytes)))
		return CHOIR_OK;
	const size_t pieces = bytes / CHI_REMOTE_PIECE + 1;
	unsigned char *staging = host
			? NULL
			: chi_alloc_aligned((pieces < PIECES ? pieces : PIECES) * (size_t) CHI_REMOTE_PIECE);
	if (!host && staging == NULL)
		return CHOIR_NO_MEMORY;
	const choir_status status = transfer_pieces(s, memory, there, bytes, staging, push);
	chi_free(staging);
	return status;
}
