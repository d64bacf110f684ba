// Streams, memory and messages of a session.
#include "serve/session.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process_memory.h"
#include "serve/stream_command.h"
#include "serve/peer_requests.h"
#include "serve/peer_transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const double IDLE = 3600; // seconds

// Memory. With the lock.

static size_t position(const chi_session *s, uint64_t address)
{
	size_t lo = 0, hi = s->memory_count;
	while (lo < hi) {
		const size_t middle = (lo + hi) / 2;
		if (s->memory[middle].address <= address)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

const chi_served_memory *chi_session_find_allocation(
		const chi_session *s, uint64_t address, size_t bytes)
{
	const size_t at = position(s, address);
	const chi_served_memory *m = at > 0 ? &s->memory[at - 1] : NULL;
	if (m != NULL && address - m->address < m->bytes &&
			bytes <= m->bytes - (size_t) (address - m->address))
		return m;
	choir_fail(CHOIR_CORRUPT, "%zu bytes at %" PRIx64 " are not memory of the program", bytes,
			address);
	return NULL;
}

void *chi_session_find(chi_session *s, uint64_t address, size_t bytes, choir_device **device)
{
	const chi_served_memory *m = chi_session_find_allocation(s, address, bytes);
	if (m == NULL)
		return NULL;
	*device = m->device;
	return (char *) m->memory + (address - m->address);
}

static choir_status allocate(chi_session *s, chi_unpack *u)
{
	const uint32_t device = chi_unpack_u32(u);
	const uint64_t address = chi_unpack_u64(u), bytes = chi_unpack_u64(u);
	const chi_served_memory *end = s->memory_count > 0 ? &s->memory[s->memory_count - 1] : NULL;
	if (u->failed || device >= (uint32_t) s->devices || !chi_remote_is_address(address) ||
			bytes == 0 || bytes >> 48 != 0 || chi_remote_server_of(address) != s->number ||
			(end != NULL && address < end->address + end->bytes))
		return choir_fail(
				CHOIR_CORRUPT, "an allocation of %" PRIu64 " bytes at %" PRIx64, bytes, address);
	if (!chi_grow(&s->memory, &s->memory_capacity, s->memory_count + 1, sizeof *s->memory))
		return CHOIR_NO_MEMORY;
	void *memory;
	CHOIR_TRY(chi_device_allocate(s->device[device], (size_t) bytes, &memory));
	s->memory[s->memory_count++] =
			(chi_served_memory){ address, (size_t) bytes, memory, s->device[device] };
	return CHOIR_OK;
}

static void free_memory(chi_session *s, uint64_t address)
{
	const size_t at = position(s, address);
	if (at == 0 || s->memory[at - 1].address != address)
		return;
	chi_served_memory *m = &s->memory[at - 1];
	chi_atomic64_add(&s->proof.releases, 1);
	chi_process_memory_fence();
	chi_device_release(m->device, m->memory, m->bytes);
	memmove(m, m + 1, (s->memory_count - at) * sizeof *m);
	s->memory_count--;
}

// Messages. With the lock.

choir_status chi_session_post(
		chi_session *s, chi_peer *peer, uint32_t server, uint16_t kind, chi_pack *pack)
{
	chi_served_message *m = pack->failed ? NULL : chi_alloc(sizeof *m);
	if (m == NULL) {
		chi_pack_free(pack);
		return CHOIR_NO_MEMORY;
	}
	*m = (chi_served_message){ .peer = peer, .server = server, .kind = kind, .pack = *pack };
	*pack = (chi_pack){ 0 };
	if (s->first == NULL && !s->serving)
		chi_hub_wake(s->hub);
	*s->last = m;
	s->last = &m->next;
	return CHOIR_OK;
}

// The program asks about the other streams next.
static void tell_reached(chi_session *s)
{
	chi_pack p = { 0 };
	for (chi_served_stream *stream = s->streams; stream != NULL; stream = stream->next) {
		if (stream->told == stream->finished)
			continue;
		stream->told = stream->finished;
		chi_pack_u32(&p, stream->number);
		chi_pack_u64(&p, stream->finished);
		chi_pack_u64(&p, stream->failed);
		chi_pack_u32(&p, (uint32_t) (stream->failed != 0 ? stream->failure.status : CHOIR_OK));
		chi_pack_text(&p, stream->failed != 0 ? stream->failure.text : "");
	}
	if (p.bytes == 0 && !p.failed) // the answer is on its way
		return;
	if (chi_session_post(s, s->program, 0, CHI_REMOTE_REACHED, &p) == CHOIR_OK)
		return;
	s->broken = true;
	chi_hub_wake(s->hub);
}

static void leave_frame(chi_session *s, chi_served_frame *f)
{
	if (--f->users > 0)
		return;
	s->credit += f->bytes;
	chi_free(f->data);
	chi_free(f);
	if (s->credit < CHI_REMOTE_CREDIT_STEP)
		return;
	chi_pack p = { 0 };
	chi_pack_u64(&p, s->credit);
	if (chi_session_post(s, s->program, 0, CHI_REMOTE_CREDIT, &p) == CHOIR_OK)
		s->credit = 0;
}

choir_status chi_session_send(chi_session *s)
{
	chi_mutex_lock(&s->lock);
	const bool broken = s->broken;
	chi_served_message *m = s->first;
	s->first = NULL;
	s->last = &s->first;
	chi_mutex_unlock(&s->lock);
	for (chi_served_message *next; m != NULL; m = next) {
		next = m->next;
		m->next = NULL;
		if (m->peer == NULL) {
			chi_session_send_to(s, m);
			continue;
		}
		(void) chi_peer_send_pack(m->peer, m->kind, 0, &m->pack);
		chi_pack_free(&m->pack);
		chi_free(m);
	}
	return broken ? choir_fail(CHOIR_NO_MEMORY, "out of memory: a message") : CHOIR_OK;
}

// With the lock, also in the next function.
static void show_progress(chi_served_stream *s)
{
	chi_session *session = s->session;
	if (s->failed == 0 && s->finished >> CHI_SERVED_COUNT == 0 &&
			s->number >> (64 - CHI_SERVED_COUNT) == 0)
		chi_atomic64_store(&session->proof.progress[s->number % CHI_SERVED_PROGRESS],
				(uint64_t) s->number << CHI_SERVED_COUNT | s->finished);
	for (chi_served_stream *f = session->streams; f != NULL; f = f->next)
		if (f->after == s->number && s->finished >= f->until)
			chi_cond_signal(&f->changed);
}

static void finish(chi_served_stream *s, chi_served_task *t, choir_status status)
{
	chi_session *session = s->session;
	if (t->frame == NULL) {
		if (--t->release->users == 0) {
			free_memory(session, t->release->address);
			chi_free(t->release);
		}
		chi_free(t);
		return;
	}
	s->finished++;
	if (t->command == CHI_COMMAND_CLEAR)
		s->failed = 0;
	if (status != CHOIR_OK) {
		chi_error_save(&s->failure);
		s->failure.status = status;
		s->failed = s->finished;
	}
	if (s->asked != 0 && s->finished >= s->asked) {
		s->asked = 0;
		tell_reached(session);
	}
	chi_session_answer_waiters(session, s, false);
	leave_frame(session, t->frame);
	chi_session_drop(session, t->request);
	chi_free(t);
	show_progress(s);
}

static void work(void *arg)
{
	chi_served_stream *s = arg;
	chi_session *session = s->session;
	chi_team_use(s->team);
	chi_mutex_lock(&session->lock);
	while (!session->ending) {
		chi_served_task *t = s->first;
		if (t == NULL && s->closing)
			break;
		if (t == NULL) {
			chi_cond_wait(&s->changed, &session->lock, chi_clock_deadline(IDLE));
			continue;
		}
		s->first = t->next;
		if (s->first == NULL)
			s->last = &s->first;
		choir_status status = CHOIR_OK;
		// A failed stream still follows others: those that it waits for may need its failure,
		// which the program clears after the wait.
		const bool runs = s->failed == 0 || t->command == CHI_COMMAND_FOLLOW;
		if (t->frame != NULL && t->command != CHI_COMMAND_CLEAR && runs) {
			chi_mutex_unlock(&session->lock);
			chi_error_clear();
			status = chi_served_run(s, t);
			if (status != CHOIR_OK && choir_error_status() != status)
				choir_fail(status, "a command failed (%s)", choir_status_name(status));
			chi_mutex_lock(&session->lock);
			status = s->failed == 0 ? status : CHOIR_OK;
		}
		finish(s, t, status);
	}
	s->done = true;
	chi_mutex_unlock(&session->lock);
	chi_team_use(NULL);
}

static void free_stream(chi_served_stream *s)
{
	chi_thread_join(&s->thread);
	for (chi_served_task *t = s->first, *next; t != NULL; t = next) {
		next = t->next;
		if (t->frame != NULL && --t->frame->users == 0) {
			chi_free(t->frame->data);
			chi_free(t->frame);
		} else if (t->frame == NULL && --t->release->users == 0) {
			chi_free(t->release); // the session frees the memory
		}
		chi_mutex_lock(&s->session->lock);
		chi_session_drop(s->session, t->request);
		chi_mutex_unlock(&s->session->lock);
		chi_free(t);
	}
	for (chi_served_waiter *w = s->waiters, *next; w != NULL; w = next) {
		next = w->next;
		chi_free(w);
	}
	chi_team_free(s->team);
	chi_stream_free(s->local);
	chi_cond_destroy(&s->changed);
	chi_free(s);
}

// Frees closed streams without commands, on the network thread.
static void reap(chi_session *s)
{
	for (chi_served_stream **at = &s->closed; *at != NULL;) {
		chi_served_stream *stream = *at;
		chi_mutex_lock(&s->lock);
		const bool done = stream->done;
		chi_mutex_unlock(&s->lock);
		if (!done) {
			at = &stream->next;
			continue;
		}
		*at = stream->next;
		free_stream(stream);
	}
}

static choir_status open_stream(chi_session *s, uint32_t number, chi_unpack *u)
{
	const uint32_t device = chi_unpack_u32(u);
	if (u->failed || device >= (uint32_t) s->devices)
		return choir_fail(CHOIR_CORRUPT, "a stream of device %u", device);
	chi_served_stream *stream = chi_alloc(sizeof *stream);
	CHOIR_TRY(chi_made(stream));
	stream->session = s;
	stream->number = number;
	stream->last = &stream->first;
	chi_cond_init(&stream->changed);
	char name[CHI_THREAD_NAME];
	snprintf(name, sizeof name, "%.14s", s->device[device]->name);
	stream->local = chi_stream_new(s->device[device]);
	choir_status status = chi_made(stream->local);
	if (status == CHOIR_OK && s->cores > 1) {
		stream->team = chi_team_new(&(chi_team_options){ .name = name, .threads = s->cores });
		status = stream->team == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	}
	if (status == CHOIR_OK)
		status = chi_thread_start(&stream->thread, name, work, stream);
	if (status != CHOIR_OK) {
		free_stream(stream);
		return status;
	}
	stream->next = s->streams;
	s->streams = stream;
	s->opened = number;
	chi_session_adopt_waiters(s, stream);
	return CHOIR_OK;
}

static chi_served_stream **find_stream(chi_session *s, uint32_t number)
{
	chi_served_stream **at = &s->streams;
	while (*at != NULL && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

// With the lock, here and below.
static void append(chi_served_stream *s, chi_served_task *t)
{
	if (s->first == NULL)
		chi_cond_signal(&s->changed);
	*s->last = t;
	s->last = &t->next;
}

static choir_status release(chi_session *s, chi_unpack *u)
{
	const uint64_t address = chi_unpack_u64(u);
	chi_served_release *r = chi_alloc(sizeof *r);
	CHOIR_TRY(chi_made(r));
	*r = (chi_served_release){ address, 1 };
	choir_status status = CHOIR_OK;
	for (chi_served_stream *stream = s->streams; stream != NULL; stream = stream->next) {
		chi_served_task *t = chi_alloc(sizeof *t);
		if (t == NULL) {
			status = CHOIR_NO_MEMORY;
			break;
		}
		t->release = r;
		r->users++;
		append(stream, t);
	}
	if (--r->users == 0) {
		free_memory(s, address);
		chi_free(r);
	}
	return status;
}

static choir_status queue(
		chi_served_stream *stream, uint32_t command, chi_served_frame *frame, const chi_unpack *u)
{
	chi_served_task *t = chi_alloc(sizeof *t);
	CHOIR_TRY(chi_made(t));
	*t = (chi_served_task){
		.frame = frame, .command = command, .body = u->data, .bytes = u->bytes
	};
	chi_served_ask(stream, t, true);
	frame->users++;
	stream->queued++;
	append(stream, t);
	return CHOIR_OK;
}

static choir_status sync(chi_session *s, chi_served_stream *stream, chi_unpack *u)
{
	const uint64_t number = chi_unpack_u64(u);
	if (number > stream->queued)
		return choir_fail(CHOIR_CORRUPT, "command %" PRIu64 " of %" PRIu64 " is asked about",
				number, stream->queued);
	if (stream->finished >= number)
		tell_reached(s);
	else if (stream->asked == 0 || number < stream->asked)
		stream->asked = number;
	return CHOIR_OK;
}

static void close_stream(chi_session *s, chi_served_stream **at)
{
	chi_served_stream *stream = *at;
	*at = stream->next;
	stream->next = s->closed;
	s->closed = stream;
	stream->closing = true;
	chi_cond_signal(&stream->changed);
}

// On another host the number is another process's.
static choir_status lend(chi_session *s, chi_unpack *u)
{
	const chi_handshake *h = &s->program->handshake;
	const chi_served_reading program = { h->peer.pid, chi_unpack_u64(u), s->incarnation };
	chi_pack p = { 0 };
	CHOIR_TRY(chi_unpack_end(u, "LEND"));
	if (strcmp(h->own->host, h->peer.host) != 0 || !chi_session_read_memory(&program, NULL, 0, 0))
		return CHOIR_OK;
	s->lender = program;
	return chi_session_post(s, s->program, 0, CHI_REMOTE_READS, &p);
}

static choir_status take(
		chi_session *s, uint32_t command, uint32_t number, chi_served_frame *frame, chi_unpack *u)
{
	chi_served_stream **at = find_stream(s, number);
	if (command == CHI_COMMAND_OPEN && *at == NULL && number > s->opened)
		return open_stream(s, number, u);
	if (command == CHI_COMMAND_ALLOCATE)
		return allocate(s, u);
	if (command == CHI_COMMAND_RELEASE)
		return release(s, u);
	if (command == CHI_COMMAND_PEER)
		return chi_session_add_peer(s, u);
	if (command == CHI_COMMAND_LEND)
		return lend(s, u);
	if (*at == NULL || command == 0 || command == CHI_COMMAND_OPEN || command >= CHI_COMMANDS)
		return choir_fail(CHOIR_CORRUPT, "command %u of stream %u", command, number);
	if (command == CHI_COMMAND_SYNC)
		return sync(s, *at, u);
	if (command != CHI_COMMAND_CLOSE)
		return queue(*at, command, frame, u);
	close_stream(s, at);
	return CHOIR_OK;
}

choir_status chi_session_take(chi_session *s, unsigned char *data, size_t bytes)
{
	chi_served_frame *frame = chi_alloc(sizeof *frame);
	if (frame == NULL) {
		chi_free(data);
		return CHOIR_NO_MEMORY;
	}
	*frame = (chi_served_frame){ data, bytes, 1 };
	choir_status status = CHOIR_OK;
	reap(s);
	chi_mutex_lock(&s->lock);
	s->serving = true;
	for (chi_unpack u = { .data = data, .bytes = bytes }; status == CHOIR_OK && u.at < bytes;) {
		const uint32_t command = chi_unpack_u32(&u), stream = chi_unpack_u32(&u);
		chi_unpack body = { .bytes = chi_unpack_u32(&u) };
		(void) chi_unpack_u32(&u);
		body.data = chi_unpack_raw(&u, body.bytes);
		status = u.failed ? choir_fail(CHOIR_CORRUPT, "a frame of commands is damaged")
						  : take(s, command, stream, frame, &body);
	}
	leave_frame(s, frame);
	s->serving = false;
	chi_mutex_unlock(&s->lock);
	return status;
}

chi_session *chi_session_new(
		chi_hub *hub, chi_peer *program, int devices, choir_device *const device[], int cores)
{
	chi_session *s = chi_alloc(sizeof *s);
	if (s == NULL)
		return NULL;
	s->hub = hub;
	s->program = program;
	s->incarnation = s->proof.incarnation = program->handshake.peer.incarnation;
	s->number = (uint32_t) program->handshake.peer.index;
	s->devices = devices;
	s->device = device;
	s->cores = cores;
	s->last = &s->first;
	chi_mutex_init(&s->lock, CHI_RANK_OP, "session");
	return s;
}

void chi_session_free(chi_session *s)
{
	if (s == NULL)
		return;
	chi_mutex_lock(&s->lock);
	s->ending = true;
	s->proof.incarnation = 0;
	chi_session_end_early_waiters(s);
	for (chi_served_stream *stream = s->streams; stream != NULL; stream = stream->next) {
		chi_session_answer_waiters(s, stream, true);
		chi_cond_signal(&stream->changed);
	}
	for (chi_served_stream *stream = s->closed; stream != NULL; stream = stream->next) {
		chi_session_answer_waiters(s, stream, true);
		chi_cond_signal(&stream->changed);
	}
	chi_mutex_unlock(&s->lock);
	for (chi_served_stream *stream = s->streams, *next; stream != NULL; stream = next) {
		next = stream->next;
		free_stream(stream);
	}
	for (chi_served_stream *stream = s->closed, *next; stream != NULL; stream = next) {
		next = stream->next;
		free_stream(stream);
	}
	while (s->memory_count > 0)
		free_memory(s, s->memory[s->memory_count - 1].address);
	(void) chi_session_send(s);
	chi_session_free_others(s);
	chi_free(s->memory);
	chi_mutex_destroy(&s->lock);
	chi_free(s);
}
