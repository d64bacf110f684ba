// Servers, workers and closures. Each server gets a FENCE before every later FORGET, on the same
// connection, so no answer is needed.
#include "coordinator/dispatch.h"

#include "base/alloc.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

void chi_dispatch_init(chi_dispatch *d, int servers, int window, int attempts)
{
	*d = (chi_dispatch){ .servers = servers };
	chi_closures_init(&d->closures, window, attempts);
}

void chi_dispatch_free(chi_dispatch *d)
{
	chi_closures_free(&d->closures);
	for (int i = 0; i < CHI_SERVERS_MAX; i++)
		chi_pack_free(&d->state[i]);
	chi_free(d->worker);
	*d = (chi_dispatch){ 0 };
}

bool chi_dispatch_ready(const chi_dispatch *d)
{
	for (int i = 0; i < d->servers; i++)
		if (d->server[i] == NULL)
			return false;
	return true;
}

static bool is_server(const chi_peer *p)
{
	return strcmp(p->handshake.peer.role, "ps") == 0;
}

static choir_status admit_server(chi_dispatch *d, chi_peer *p, chi_pack *welcome)
{
	int *index = &p->handshake.peer.index;
	for (int i = 0; i < d->servers && *index == CHOIR_NONE; i++)
		if (d->server[i] == NULL)
			*index = i;
	if (*index < 0 || *index >= d->servers)
		return choir_fail(
				CHOIR_STATE, "ps %d: this job has %d servers, counted from 0", *index, d->servers);
	if (d->server[*index] != NULL)
		return choir_fail(
				CHOIR_STATE, "ps %d: %s is there already", *index, d->server[*index]->name);
	d->server[*index] = p;
	chi_pack_u32(welcome, (uint32_t) d->servers);
	return CHOIR_OK;
}

static choir_status admit_worker(chi_dispatch *d, chi_peer *p, chi_pack *welcome)
{
	if (!chi_dispatch_ready(d))
		return choir_fail(CHOIR_TIMEOUT, "the servers of this job have not come yet");
	if (!chi_grow(&d->worker, &d->worker_capacity, d->closures.workers + 1, sizeof(chi_peer *)))
		return CHOIR_NO_MEMORY;
	const int number = chi_closures_join(&d->closures);
	if (number == CHOIR_NONE)
		return CHOIR_NO_MEMORY;
	p->handshake.peer.index = number;
	chi_pack_u32(welcome, (uint32_t) d->servers);
	for (int i = 0; i < d->servers; i++)
		chi_pack_text(welcome, d->server[i]->handshake.peer.address);
	d->worker[number] = p;
	d->workers++;
	return CHOIR_OK;
}

choir_status chi_dispatch_admit(void *dispatch, chi_peer *peer, chi_pack *welcome)
{
	chi_dispatch *d = dispatch;
	if (d->failed)
		return choir_fail(CHOIR_CANCELLED, "the job has failed: %.300s", d->error.text);
	if (is_server(peer))
		return admit_server(d, peer, welcome);
	if (strcmp(peer->handshake.peer.role, "worker") == 0)
		return admit_worker(d, peer, welcome);
	return choir_fail(CHOIR_INVALID, "%s: a worker or a ps is needed", peer->handshake.peer.role);
}

static void tell_servers(chi_dispatch *d, uint16_t kind, uint64_t number)
{
	chi_pack p = { 0 };
	chi_pack_u64(&p, number);
	for (int i = 0; i < d->servers; i++)
		if (d->server[i] != NULL)
			(void) chi_peer_send_pack(d->server[i], kind, 0, &p);
	chi_pack_free(&p);
}

// A worker whose closures take less time than a message gets more at a time.
static void note_pace(chi_dispatch *d, const chi_peer *p)
{
	static const double SHORT = 0.0005; // seconds
	enum { MORE = 32 };
	chi_closure_worker *w = &d->closures.worker[p->handshake.peer.index];
	const double now = chi_hub_now(p->hub), took = now - w->finished;
	w->finished = now;
	w->pace += ((took < 1 ? took : 1) - w->pace) / 8;
	const int more = d->adapts && w->pace < SHORT ? MORE : 0;
	if (more != w->more) {
		w->more = more;
		chi_closures_wants(&d->closures, p->handshake.peer.index);
	}
}

static choir_status take_done(chi_dispatch *d, chi_peer *p, chi_unpack *u)
{
	char text[CHI_ERROR_SIZE];
	chi_pack result = { 0 };
	size_t bytes;
	const uint64_t id = chi_unpack_u64(u);
	const uint32_t status = chi_unpack_u32(u);
	chi_unpack_text(u, text, sizeof text);
	const void *data = chi_unpack_bytes(u, &bytes);
	chi_staleness stale = { .pushes = chi_unpack_u64(u) };
	stale.sum = chi_unpack_u64(u);
	stale.max = chi_unpack_u64(u);
	const uint64_t changes = chi_unpack_u64(u);
	CHOIR_TRY(chi_unpack_end(u, "DONE"));
	if (status > CHOIR_INTERNAL)
		return choir_fail(CHOIR_CORRUPT, "message DONE: status %u", (unsigned) status);
	chi_pack_raw(&result, data, bytes);
	if (result.failed)
		return CHOIR_NO_MEMORY;
	const chi_closure *c = chi_closures_find(&d->closures, p->handshake.peer.index, id);
	const bool has_changes = c != NULL && (changes > 0 || c->attempt > 1);
	const bool found = chi_closures_finish(&d->closures, p->handshake.peer.index, id,
			(choir_status) status, text, p->name, &result);
	chi_pack_free(&result);
	if (!found)
		return choir_fail(CHOIR_CORRUPT, "message DONE: closure %llu is not this worker's",
				(unsigned long long) id);
	d->staleness.pushes += stale.pushes;
	d->staleness.sum += stale.sum;
	d->staleness.max = stale.max > d->staleness.max ? stale.max : d->staleness.max;
	if (has_changes)
		tell_servers(d, CHI_MESSAGE_FORGET, id);
	note_pace(d, p);
	return CHOIR_OK;
}

static choir_status take_answer(
		chi_dispatch *d, chi_peer *p, const chi_net_frame *frame, const void *payload)
{
	chi_pack *state = &d->state[p->handshake.peer.index];
	if (d->awaited == 0)
		return choir_fail(CHOIR_CORRUPT, "an answer that nobody awaits");
	d->awaited--;
	if (frame->kind == CHI_MESSAGE_STATE) {
		chi_pack_free(state);
		chi_pack_raw(state, payload, (size_t) frame->bytes);
		return state->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
	}
	chi_unpack u = { .data = payload, .bytes = (size_t) frame->bytes };
	chi_error e = { .status = (choir_status) chi_unpack_u32(&u) };
	chi_unpack_text(&u, e.text, sizeof e.text);
	(void) chi_unpack_u64(&u); // the field for staleness
	CHOIR_TRY(chi_unpack_end(&u, "ANSWER"));
	if (e.status != CHOIR_OK && d->answer.status == CHOIR_OK)
		d->answer = e;
	return CHOIR_OK;
}

choir_status chi_dispatch_frame(
		void *dispatch, chi_peer *peer, const chi_net_frame *frame, const void *payload)
{
	chi_dispatch *d = dispatch;
	chi_unpack u = { .data = payload, .bytes = (size_t) frame->bytes };
	if (!is_server(peer) && frame->kind == CHI_MESSAGE_DONE)
		return take_done(d, peer, &u);
	if (is_server(peer) && (frame->kind == CHI_MESSAGE_STATE || frame->kind == CHI_MESSAGE_ANSWER))
		return take_answer(d, peer, frame, payload);
	return choir_fail(CHOIR_CORRUPT, "a message of kind %d", frame->kind);
}

static void forget(void *user, const chi_closure *c)
{
	tell_servers(user, CHI_MESSAGE_FORGET, c->id);
}

static void lose_server(chi_dispatch *d, chi_peer *p)
{
	d->server[p->handshake.peer.index] = NULL;
	if (d->failed)
		return;
	choir_fail(CHOIR_PEER_LOST,
			"%s is lost: %.200s; its variables are gone; start again from a checkpoint", p->name,
			choir_error());
	chi_error_save(&d->error);
	d->failed = true;
	d->awaited = 0;
	chi_closures_end(&d->closures);
}

void chi_dispatch_lost(void *dispatch, chi_peer *peer, choir_status status)
{
	chi_dispatch *d = dispatch;
	char why[CHI_ERROR_SIZE];
	(void) status;
	if (is_server(peer)) {
		lose_server(d, peer);
		return;
	}
	const int number = peer->handshake.peer.index;
	const chi_closure *first = d->closures.worker[number].has.first;
	snprintf(why, sizeof why, "%s: %.200s", peer->name, choir_error());
	if (first == NULL)
		chi_log(CHOIR_LOG_WARNING, "%s is lost: %.200s", peer->name, choir_error());
	else
		chi_log(CHOIR_LOG_WARNING, "%s is lost in closure %llu, attempt %d: %.200s", peer->name,
				(unsigned long long) first->id, first->attempt, choir_error());
	tell_servers(d, CHI_MESSAGE_FENCE, peer->handshake.peer.incarnation);
	chi_closures_lost(&d->closures, number, why, forget, d);
	d->worker[number] = NULL;
	d->workers--;
}

static void send_run(chi_dispatch *d, const chi_closure *c)
{
	chi_pack p = { 0 };
	chi_pack_u64(&p, c->id);
	chi_pack_u32(&p, (uint32_t) c->attempt);
	chi_pack_u32(&p, (uint32_t) c->function);
	chi_pack_u64(&p, c->args.bytes);
	const choir_connection_part parts[] = { { p.data, p.bytes }, { c->args.data, c->args.bytes } };
	if (p.failed) // the peer is lost, and another worker gets the closure
		(void) chi_peer_send_pack(d->worker[c->worker], CHI_MESSAGE_RUN, 0, &p);
	else
		(void) chi_peer_send(d->worker[c->worker], CHI_MESSAGE_RUN, 0, parts, 2);
	chi_pack_free(&p);
}

void chi_dispatch_turn(chi_dispatch *d)
{
	for (chi_closure *c;
			!d->paused && !d->failed && (c = chi_closures_give(&d->closures)) != NULL;)
		send_run(d, c);
}

choir_status chi_dispatch_call_all(
		chi_dispatch *d, int function, int capacity, chi_closure *closure[], int *n)
{
	*n = 0;
	if (d->workers > capacity)
		return choir_fail(CHOIR_INVALID, "read_all: a capacity of %d; there are %d workers",
				capacity, d->workers);
	for (size_t i = 0; i < d->closures.workers; i++) {
		if (d->worker[i] == NULL)
			continue;
		closure[*n] = chi_closure_new(function, &(chi_pack){ 0 });
		CHOIR_TRY(chi_made(closure[*n]));
		chi_closures_pin(&d->closures, closure[*n], (int) i);
		send_run(d, closure[(*n)++]);
	}
	return CHOIR_OK;
}

static void ask(chi_dispatch *d, uint16_t kind, const chi_pack *pack)
{
	d->answer = (chi_error){ .status = CHOIR_OK };
	d->awaited = d->servers;
	for (int i = 0; i < d->servers; i++)
		if (d->server[i] != NULL)
			(void) chi_peer_send_pack(d->server[i], kind, 0, pack);
}

void chi_dispatch_snapshot(chi_dispatch *d)
{
	ask(d, CHI_MESSAGE_SNAPSHOT, &(chi_pack){ 0 });
}

void chi_dispatch_restore(chi_dispatch *d, const chi_pack *state)
{
	ask(d, CHI_MESSAGE_RESTORE, state);
}
