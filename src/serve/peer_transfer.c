// Transfers directly between servers: a stream's thread sends requests and waits for the answers.
#include "serve/peer_transfer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process_memory.h"

#include <string.h>

static const double LONGEST = 60; // seconds

static void open_request(chi_session *s, chi_served_request *r, uint32_t server, chi_pack *p)
{
	chi_mutex_lock(&s->lock);
	*r = (chi_served_request){ .next = s->requests, .token = ++s->tokens, .server = server };
	s->requests = r;
	chi_mutex_unlock(&s->lock);
	*p = (chi_pack){ 0 };
	chi_pack_u64(p, r->token);
}

static void post_request(chi_session *s, chi_served_request *r, uint16_t kind, chi_pack *p)
{
	chi_mutex_lock(&s->lock);
	if (chi_session_post(s, NULL, r->server, kind, p) != CHOIR_OK) {
		chi_error_save(&r->error);
		r->done = true;
	}
	chi_mutex_unlock(&s->lock);
}

static choir_status close_request(chi_session *s, chi_served_request *r)
{
	const double deadline = chi_clock_deadline(LONGEST);
	choir_status status = CHOIR_OK;
	chi_mutex_lock(&s->lock);
	while (status == CHOIR_OK && !r->done && !s->ending)
		if (!chi_cond_wait(&s->progress, &s->lock, deadline))
			status = choir_fail(CHOIR_TIMEOUT, "another server has not answered in %g s", LONGEST);
	if (status == CHOIR_OK && s->ending)
		status = choir_fail(CHOIR_PEER_LOST, "the program has ended");
	else if (status == CHOIR_OK && r->error.status != CHOIR_OK) {
		chi_error_restore(&r->error);
		status = r->error.status;
	}
	chi_served_request **at = &s->requests;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
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

// The address is that of the incarnation here.
static chi_served_reading reading_of(chi_session *s, uint32_t server)
{
	chi_served_reading found = { 0 };
	chi_mutex_lock(&s->lock);
	for (const chi_served_peer *p = s->others; p != NULL; p = p->next)
		if (p->number == server)
			found = (chi_served_reading){ p->pid, (uintptr_t) &p->incarnation, p->incarnation };
	chi_mutex_unlock(&s->lock);
	return found;
}

static void forget_pid(chi_session *s, uint32_t server)
{
	chi_mutex_lock(&s->lock);
	for (chi_served_peer *p = s->others; p != NULL; p = p->next)
		if (p->number == server)
			p->pid = 0;
	chi_mutex_unlock(&s->lock);
}

// False: use messages.
static bool transfer_directly(chi_session *s, void *here, uint64_t there, size_t bytes, bool push)
{
	const uint32_t server = chi_remote_server_of(there);
	chi_served_reading other = reading_of(s, server);
	chi_served_request r;
	chi_pack p;
	unsigned char found[16] = { 0 };
	if (other.pid == 0)
		return false;
	open_request(s, &r, server, &p);
	chi_pack_u64(&p, there);
	chi_pack_u64(&p, bytes);
	if (push) {
		chi_pack_u64(&p, (uintptr_t) here);
		chi_pack_u64(&p, other.address);
	}
	r.to = push ? NULL : found;
	r.bytes = push ? 0 : sizeof found;
	post_request(s, &r, push ? CHI_REMOTE_TAKE : CHI_REMOTE_LOCATE, &p);
	bool done = close_request(s, &r) == CHOIR_OK;
	other.address = chi_get_number(found + 8, 8);
	if (done && !push)
		done = chi_session_read_memory(&other, here, chi_get_number(found, 8), bytes);
	if (!done)
		forget_pid(s, server);
	return done;
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
	open_request(session, &piece->request, chi_remote_server_of(there), &p);
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

static choir_status transfer(
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
	if (host && transfer_directly(session, memory, there, bytes, push))
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

choir_status chi_session_push(chi_served_stream *s, uint64_t to, uint64_t from, size_t bytes)
{
	return transfer(s, from, to, bytes, true);
}

choir_status chi_session_pull(chi_served_stream *s, uint64_t to, uint64_t from, size_t bytes)
{
	return transfer(s, to, from, bytes, false);
}

choir_status chi_session_await(
		chi_served_stream *s, uint32_t server, uint32_t stream, uint64_t number)
{
	chi_served_request r;
	chi_pack p;
	open_request(s->session, &r, server, &p);
	chi_pack_u32(&p, stream);
	chi_pack_u64(&p, number);
	post_request(s->session, &r, CHI_REMOTE_AWAIT, &p);
	return close_request(s->session, &r);
}
