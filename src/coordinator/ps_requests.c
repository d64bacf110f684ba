// Requests of workers and the coordinator: changes made once, fences, values by version.
#include "coordinator/ps_requests.h"

#include "base/process_memory.h"

#include <string.h>

void chi_server_init(chi_server *s, const chi_server_model *model)
{
	*s = (chi_server){ .model = *model, .version = 1 };
}

void chi_server_free(chi_server *s)
{
	for (int i = 0; i < s->n; i++)
		chi_pack_free(&s->workers[i].rows);
	chi_exactly_once_free(&s->once);
	chi_pack_free(&s->values);
	chi_pack_free(&s->asked);
	chi_free(s->offered.memory);
}

static bool is_coordinator(const chi_peer *p)
{
	return strcmp(p->handshake.peer.role, "coordinator") == 0;
}

choir_status chi_server_admit(void *server, chi_peer *peer, chi_pack *welcome)
{
	const chi_server *s = server;
	if (strcmp(peer->handshake.peer.role, "worker") != 0)
		return choir_fail(CHOIR_INVALID, "%s: a worker is needed", peer->handshake.peer.role);
	if (chi_exactly_once_fenced(&s->once, peer->handshake.peer.incarnation))
		return choir_fail(CHOIR_PEER_LOST, "this worker was given up by the coordinator");
	if (s->n == (int) (sizeof s->workers / sizeof s->workers[0]))
		return choir_fail(CHOIR_STATE, "%d workers are connected; no more are possible", s->n);
	chi_pack_u64(welcome, s->model.locate == NULL ? 0 : (uintptr_t) &s->open);
	return CHOIR_OK;
}

void chi_server_joined(void *server, chi_peer *peer)
{
	chi_server *s = server;
	if (!is_coordinator(peer))
		s->workers[s->n++] = (chi_server_worker){ .peer = peer };
}

static void leave(chi_server *s, int i)
{
	chi_pack_free(&s->workers[i].rows);
	s->workers[i] = s->workers[--s->n];
}

void chi_server_lost(void *server, chi_peer *peer, choir_status status)
{
	chi_server *s = server;
	if (is_coordinator(peer) || !peer->joined) { // this server dials only the coordinator
		s->ended = true;
		chi_error_save(&s->end);
		s->end.status = status;
		return;
	}
	for (int i = s->n; i-- > 0;)
		if (s->workers[i].peer == peer)
			leave(s, i);
}

static choir_status fence(chi_server *s, uint64_t incarnation)
{
	CHOIR_TRY(chi_exactly_once_fence(&s->once, incarnation));
	for (int i = s->n; i-- > 0;)
		if (s->workers[i].peer->handshake.peer.incarnation == incarnation) {
			chi_peer_end(s->workers[i].peer, CHOIR_PEER_LOST,
					"this worker was given up by the coordinator");
			leave(s, i);
		}
	return CHOIR_OK;
}

static choir_status answer(chi_peer *p, choir_status status, uint64_t staleness)
{
	chi_pack pack = { 0 };
	chi_pack_u32(&pack, (uint32_t) status);
	chi_pack_text(&pack, status == CHOIR_OK ? "" : choir_error());
	chi_pack_u64(&pack, staleness);
	const choir_status sent = chi_peer_send_pack(p, CHI_MESSAGE_ANSWER, 0, &pack);
	chi_pack_free(&pack);
	return sent;
}

// Other processes take values only if open.changes is the same even number before and after.
static void begin_change(chi_server *s)
{
	chi_atomic64_add(&s->open.changes, 1);
	chi_process_memory_fence();
}

static void end_change(chi_server *s)
{
	s->open.version = ++s->version;
	if (s->model.locate != NULL)
		s->model.locate(s->model.user);
	chi_atomic64_add(&s->open.changes, 1);
}

// A failed change has changed nothing, and is not remembered.
static choir_status change(chi_server *s, chi_peer *p, uint16_t kind, chi_unpack *u)
{
	const uint64_t closure = chi_unpack_u64(u), ordinal = chi_unpack_u64(u);
	const uint64_t pulled = chi_unpack_u64(u);
	if (u->failed || closure == 0)
		return choir_fail(CHOIR_CORRUPT, "a change without a closure");
	if (chi_exactly_once_have(&s->once, closure, ordinal)) {
		s->repeats++;
		return answer(p, CHOIR_OK, CHI_NO_STALENESS);
	}
	CHOIR_TRY(chi_exactly_once_add(&s->once, closure, ordinal));
	const uint64_t staleness = kind == CHI_MESSAGE_PUSH && pulled != 0 && pulled <= s->version
			? s->version - pulled
			: CHI_NO_STALENESS;
	begin_change(s);
	const choir_status status = s->model.change(s->model.user, kind, u);
	end_change(s);
	s->changes += status == CHOIR_OK;
	if (status != CHOIR_OK)
		chi_exactly_once_remove(&s->once, closure, ordinal);
	return answer(p, status, staleness);
}

// The token proves that the worker kept the message while it was read.
static choir_status take_offer(chi_server *s, chi_peer *p, chi_unpack *u)
{
	const int64_t pid = p->handshake.peer.pid;
	const uint64_t token = chi_unpack_u64(u), address = chi_unpack_u64(u);
	uint64_t found = 0;
	size_t bytes;
	choir_status status = chi_large_message_fetch(u, pid, s->max, &s->offered, &bytes);
	const chi_process_memory_part part = { &found, address, sizeof found };
	if (status == CHOIR_OK && (!chi_process_memory_read(pid, &part, 1) || found != token))
		status = CHOIR_PEER_LOST;
	if (status == CHOIR_PEER_LOST)
		return chi_peer_send(p, CHI_MESSAGE_DECLINED, 0, NULL, 0);
	CHOIR_TRY(status);
	return change(s, p, CHI_MESSAGE_PUSH,
			&(chi_unpack){ .data = (const void *) s->offered.memory, .bytes = bytes });
}

// Workers mostly ask for the same variables: the last PULL's values are kept.
static choir_status collect_values(chi_server *s, chi_unpack *u)
{
	const size_t bytes = u->bytes - u->at;
	const unsigned char *asked = (const unsigned char *) u->data + u->at;
	if (s->values_version == s->version && bytes == s->asked.bytes &&
			memcmp(asked, s->asked.data, bytes) == 0)
		return CHOIR_OK;
	s->values_version = 0;
	s->values.bytes = s->asked.bytes = 0;
	chi_pack_raw(&s->asked, asked, bytes);
	CHOIR_TRY(s->model.values(s->model.user, CHI_MESSAGE_PULL, u, &s->values));
	s->values_version = s->asked.failed ? 0 : s->version;
	return CHOIR_OK;
}

// The rows are many, so their memory is kept.
static choir_status send_address(chi_server *s, chi_peer *p, chi_unpack *u)
{
	chi_pack head = { 0 }, *rows = NULL;
	for (int i = 0; i < s->n; i++)
		if (s->workers[i].peer == p)
			rows = &s->workers[i].rows;
	if (rows == NULL)
		return choir_fail(CHOIR_INTERNAL, "%s has not joined", p->name);
	rows->bytes = 0;
	CHOIR_TRY(s->model.values(s->model.user, CHI_MESSAGE_ROWS, u, rows));
	chi_pack_u64(&head, s->version);
	chi_pack_u64(&head, (uintptr_t) rows->data);
	const choir_status status = chi_peer_send_pack(p, CHI_MESSAGE_VALUES, 0, &head);
	chi_pack_free(&head);
	return status;
}

static choir_status send_values(chi_server *s, chi_peer *p, uint16_t kind, chi_unpack *u)
{
	chi_pack head = { 0 }, rows = { 0 };
	const uint64_t has = kind == CHI_MESSAGE_PULL ? chi_unpack_u64(u) : 0;
	choir_status status = CHOIR_OK;
	if (kind == CHI_MESSAGE_ROWS)
		status = s->model.values(s->model.user, kind, u, &rows);
	else if (has != s->version)
		status = collect_values(s, u);
	const chi_pack *values = kind == CHI_MESSAGE_ROWS ? &rows : &s->values;
	chi_pack_u64(&head, s->version);
	const choir_connection_part parts[] = { { head.data, head.bytes },
		{ values->data, has == s->version ? 0 : values->bytes } };
	if (status == CHOIR_OK)
		status = head.failed || values->failed
				? choir_fail(CHOIR_NO_MEMORY, "the values do not fit into memory")
				: chi_peer_send(p, CHI_MESSAGE_VALUES, 0, parts, 2);
	chi_pack_free(&head);
	chi_pack_free(&rows);
	return status;
}

static choir_status send_state(chi_server *s, chi_peer *p)
{
	chi_pack state = { 0 };
	const choir_status status = s->model.save(s->model.user, &state);
	const choir_status sent = status != CHOIR_OK
			? answer(p, status, CHI_NO_STALENESS)
			: chi_peer_send_pack(p, CHI_MESSAGE_STATE, 0, &state);
	chi_pack_free(&state);
	return sent;
}

static choir_status restore(chi_server *s, chi_peer *p, chi_unpack *u)
{
	begin_change(s);
	const choir_status status = s->model.restore(s->model.user, u);
	end_change(s);
	return answer(p, status, CHI_NO_STALENESS);
}

static choir_status from_coordinator(chi_server *s, chi_peer *p, uint16_t kind, chi_unpack *u)
{
	uint64_t number;
	switch (kind) {
	case CHI_MESSAGE_FENCE:
		number = chi_unpack_u64(u);
		CHOIR_TRY(chi_unpack_end(u, "FENCE"));
		return fence(s, number);
	case CHI_MESSAGE_FORGET:
		number = chi_unpack_u64(u);
		CHOIR_TRY(chi_unpack_end(u, "FORGET"));
		chi_exactly_once_forget(&s->once, number);
		return CHOIR_OK;
	case CHI_MESSAGE_SNAPSHOT:
		return send_state(s, p);
	case CHI_MESSAGE_RESTORE:
		return restore(s, p, u);
	default:
		return choir_fail(CHOIR_CORRUPT, "a message of kind %d", kind);
	}
}

choir_status chi_server_frame(
		void *server, chi_peer *peer, const chi_net_frame *frame, const void *payload)
{
	chi_server *s = server;
	chi_unpack u = { .data = payload, .bytes = (size_t) frame->bytes };
	if (is_coordinator(peer))
		return from_coordinator(s, peer, frame->kind, &u);
	if (chi_exactly_once_fenced(&s->once, peer->handshake.peer.incarnation))
		return choir_fail(CHOIR_PEER_LOST, "this worker was given up by the coordinator");
	if (frame->kind == CHI_MESSAGE_PULL || frame->kind == CHI_MESSAGE_ROWS)
		return send_values(s, peer, frame->kind, &u);
	if (frame->kind == CHI_MESSAGE_PUSH || frame->kind == CHI_MESSAGE_ASSIGN)
		return change(s, peer, frame->kind, &u);
	if (frame->kind == CHI_MESSAGE_ROWS_THERE)
		return send_address(s, peer, &u);
	if (frame->kind == CHI_MESSAGE_OFFER)
		return take_offer(s, peer, &u);
	return choir_fail(CHOIR_CORRUPT, "a message of kind %d", frame->kind);
}
