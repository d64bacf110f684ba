// Commands are not trusted: addresses and sizes are compared with the program's memory, kernels'
// tensors with their sizes.
#include "serve/stream_command.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "op/kernel/kernel.h"
#include "op/kernel/remote_kernels.h"
#include "serve/peer_transfer.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_ATTRIBUTES = 256, OPERATION = 64 }; // bytes

static void *find(chi_session *s, uint64_t address, size_t bytes, choir_device **device)
{
	chi_mutex_lock(&s->lock);
	void *memory = chi_session_find(s, address, bytes, device);
	chi_mutex_unlock(&s->lock);
	return memory;
}

static choir_status send(chi_served_stream *s, chi_unpack *u)
{
	choir_device *device;
	const uint64_t address = chi_unpack_u64(u);
	const size_t bytes = u->failed ? 0 : u->bytes - u->at;
	const void *data = chi_unpack_raw(u, bytes);
	void *memory = find(s->session, address, bytes, &device);
	if (data == NULL || memory == NULL)
		return CHOIR_CORRUPT;
	return chi_stream_send(s->local, memory, data, bytes);
}

static choir_status take(chi_served_stream *s, chi_unpack *u)
{
	chi_session *session = s->session;
	choir_device *device;
	const uint64_t address = chi_unpack_u64(u), bytes = chi_unpack_u64(u);
	const uint64_t from = chi_unpack_u64(u);
	chi_mutex_lock(&session->lock);
	const chi_served_reading lender = session->lender;
	chi_mutex_unlock(&session->lock);
	if (u->failed || bytes > CHI_REMOTE_PIECE || lender.pid == 0)
		return choir_fail(CHOIR_CORRUPT, "a take of %" PRIu64 " bytes", bytes);
	void *memory = find(session, address, (size_t) bytes, &device);
	if (memory == NULL)
		return CHOIR_CORRUPT;
	void *staging = device->host_memory ? NULL : chi_alloc((size_t) bytes);
	if (staging == NULL && !device->host_memory)
		return CHOIR_NO_MEMORY;
	choir_status status = CHOIR_OK;
	if (!chi_session_read_memory(
				&lender, staging != NULL ? staging : memory, from, (size_t) bytes))
		status = choir_fail(CHOIR_PEER_LOST, "the program's memory cannot be read");
	else if (staging != NULL)
		status = chi_stream_send(s->local, memory, staging, (size_t) bytes);
	if (staging != NULL && status == CHOIR_OK)
		status = chi_stream_wait(s->local);
	chi_free(staging);
	return status;
}

static choir_status fetch(chi_served_stream *s, chi_unpack *u)
{
	choir_device *device;
	chi_pack p = { 0 };
	const uint64_t address = chi_unpack_u64(u), bytes = chi_unpack_u64(u);
	if (bytes > CHI_REMOTE_PIECE)
		return choir_fail(CHOIR_CORRUPT, "a fetch of %" PRIu64 " bytes", bytes);
	const void *memory = find(s->session, address, (size_t) bytes, &device);
	if (memory == NULL)
		return CHOIR_CORRUPT;
	chi_pack_u32(&p, s->number);
	chi_pack_u64(&p, s->finished + 1);
	const size_t at = p.bytes;
	if (p.failed || !chi_grow(&p.data, &p.capacity, at + (size_t) bytes, 1)) {
		chi_pack_free(&p);
		return CHOIR_NO_MEMORY;
	}
	p.bytes += (size_t) bytes;
	choir_status status = chi_stream_fetch(s->local, p.data + at, memory, (size_t) bytes);
	if (status != CHOIR_OK) {
		chi_pack_free(&p);
		return status;
	}
	chi_mutex_lock(&s->session->lock);
	status = chi_session_post(s->session, s->session->program, 0, CHI_REMOTE_DATA, &p);
	chi_mutex_unlock(&s->session->lock);
	return status;
}

static choir_status move(chi_served_stream *s, chi_unpack *u)
{
	choir_device *a, *b;
	const uint64_t to = chi_unpack_u64(u), from = chi_unpack_u64(u), bytes = chi_unpack_u64(u);
	if (chi_remote_server_of(to) != s->session->number)
		return chi_session_transfer(s, from, to, (size_t) bytes, true);
	if (chi_remote_server_of(from) != s->session->number)
		return chi_session_transfer(s, to, from, (size_t) bytes, false);
	void *target = find(s->session, to, (size_t) bytes, &a);
	const void *source = find(s->session, from, (size_t) bytes, &b);
	if (target == NULL || source == NULL)
		return CHOIR_CORRUPT;
	return chi_device_copy(s->local, a, target, b, source, (size_t) bytes);
}

static choir_status fill(chi_served_stream *s, chi_unpack *u)
{
	choir_device *device;
	const uint64_t address = chi_unpack_u64(u), bytes = chi_unpack_u64(u);
	const uint32_t byte = chi_unpack_u32(u);
	void *memory = find(s->session, address, (size_t) bytes, &device);
	return memory == NULL ? CHOIR_CORRUPT
						  : chi_stream_fill(s->local, memory, (int) byte, (size_t) bytes);
}

static choir_status take_buffer(chi_served_stream *s, chi_unpack *u, choir_buffer *b)
{
	uint64_t address;
	size_t bytes = 0;
	choir_device *device;
	CHOIR_TRY(chi_remote_unpack_buffer(u, &address, b));
	(void) chi_shape_bytes(&b->shape, b->dtype, &bytes);
	b->data = find(s->session, address, bytes, &device);
	return b->data == NULL ? CHOIR_CORRUPT : CHOIR_OK;
}

// An update's gate is the program's memory, too.
static choir_status take_gate(chi_served_stream *s, choir_update_attributes *a)
{
	choir_device *device;
	if (a->gate == NULL)
		return CHOIR_OK;
	a->gate = find(s->session, (uint64_t) (uintptr_t) a->gate, 2 * sizeof *a->gate, &device);
	return a->gate == NULL ? CHOIR_CORRUPT : CHOIR_OK;
}

static choir_status run_kernel(chi_served_stream *s, chi_unpack *u)
{
	char operation[OPERATION];
	choir_buffer in[CHI_MAX_INPUTS], out;
	union {
		unsigned char bytes[MAX_ATTRIBUTES];
		choir_update_attributes update;
	} attributes;
	size_t bytes;
	chi_unpack_text(u, operation, sizeof operation);
	const void *given = chi_unpack_bytes(u, &bytes);
	const uint32_t n = chi_unpack_u32(u);
	if (u->failed || n > CHI_MAX_INPUTS || bytes > sizeof attributes)
		return choir_fail(CHOIR_CORRUPT, "a kernel with %u inputs and %zu bytes of attributes", n,
				u->failed ? 0 : bytes);
	const size_t needed = choir_kernel_attribute_bytes(operation);
	if (bytes != 0 && bytes != needed)
		return choir_fail(CHOIR_CORRUPT, "%s: %zu bytes of attributes; %zu are needed", operation,
				bytes, needed);
	if (bytes > 0)
		memcpy(attributes.bytes, given, bytes);
	if (bytes > 0 && chi_kernel_is_update(operation))
		CHOIR_TRY(take_gate(s, &attributes.update));
	for (uint32_t i = 0; i < n; i++)
		CHOIR_TRY(take_buffer(s, u, &in[i]));
	CHOIR_TRY(take_buffer(s, u, &out));
	CHOIR_TRY(chi_unpack_end(u, "KERNEL"));
	return chi_kernel_run(s->local, operation, n, in, &out, bytes > 0 ? &attributes : NULL);
}

// Of this server. Fails as that stream did.
static choir_status follow_here(chi_served_stream *s, uint32_t number, uint64_t command)
{
	chi_session *session = s->session;
	choir_status status = CHOIR_OK;
	chi_mutex_lock(&session->lock);
	s->after = number;
	s->until = command;
	for (;;) {
		const chi_served_stream *other = session->streams;
		while (other != NULL && other->number != number)
			other = other->next;
		if (other == NULL || session->ending)
			break; // closed: all its commands are done
		if (other->finished >= command) {
			if (other->failed != 0 && other->failed <= command)
				status = chi_error_restore(&other->failure);
			break;
		}
		chi_cond_wait(&s->changed, &session->lock, chi_clock_deadline(1));
	}
	s->after = 0;
	chi_mutex_unlock(&session->lock);
	return status;
}

typedef struct {
	uint32_t server, stream;
	uint64_t command;
} followed;

static bool unpack_followed(const chi_served_task *t, followed *f)
{
	chi_unpack u = { .data = t->body, .bytes = t->bytes };
	if (t->command != CHI_COMMAND_FOLLOW)
		return false;
	f->server = chi_unpack_u32(&u);
	f->stream = chi_unpack_u32(&u);
	f->command = chi_unpack_u64(&u);
	return chi_unpack_end(&u, "FOLLOW") == CHOIR_OK;
}

void chi_served_ask(chi_served_stream *s, chi_served_task *t, bool early)
{
	followed f;
	if (t->request == NULL && unpack_followed(t, &f) && f.server != s->session->number &&
			!(early && chi_session_shows(s->session, f.server)))
		t->request = chi_session_ask(s, f.server, f.stream, f.command);
}

// Questions one by one would wait for each answer.
static void ask_all(chi_served_stream *s, chi_served_task *t)
{
	chi_mutex_lock(&s->session->lock);
	chi_served_ask(s, t, false);
	for (t = s->first; t != NULL; t = t->next)
		chi_served_ask(s, t, false);
	chi_mutex_unlock(&s->session->lock);
}

static choir_status follow(chi_served_stream *s, chi_served_task *t)
{
	followed f;
	if (!unpack_followed(t, &f))
		return CHOIR_CORRUPT;
	if (f.server == s->session->number)
		return follow_here(s, f.stream, f.command);
	if (t->request == NULL && chi_session_sees(s->session, f.server, f.stream, f.command))
		return CHOIR_OK;
	ask_all(s, t);
	return t->request != NULL ? chi_session_await(s->session, t->request)
							  : choir_fail(CHOIR_NO_MEMORY, "a question to another server");
}

choir_status chi_served_run(chi_served_stream *s, chi_served_task *t)
{
	chi_unpack u = { .data = t->body, .bytes = t->bytes };
	choir_status status;
	switch (t->command) {
	case CHI_COMMAND_SEND:
		status = send(s, &u);
		break;
	case CHI_COMMAND_TAKE:
		status = take(s, &u);
		break;
	case CHI_COMMAND_FETCH:
		status = fetch(s, &u);
		break;
	case CHI_COMMAND_MOVE:
		status = move(s, &u);
		break;
	case CHI_COMMAND_FILL:
		status = fill(s, &u);
		break;
	case CHI_COMMAND_KERNEL:
		status = run_kernel(s, &u);
		break;
	default:
		status = follow(s, t);
		u.at = u.bytes;
	}
	if (status == CHOIR_OK)
		status = chi_unpack_end(&u, "of a stream");
	if (status == CHOIR_OK && !s->local->device->table->immediate)
		status = chi_stream_wait(s->local);
	return status;
}
