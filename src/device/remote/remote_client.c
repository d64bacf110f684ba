// A connection to a server of devices. While commands come its thread polls, so that a frame
// carries many; else it sleeps. Only an awaited call wakes it while it polls (0093).
#include "device/remote/remote_client.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double FIRST_LOOK = 0.00005, LOOK = 0.0005, ACTIVE = 0.001, LONGEST = 60; // seconds
static const double STARTS = 2, PAUSE = 0.02; // of a server that does not listen yet
enum { LINK_MAX = 1 << 20, URGENT = 1 << 16 }; // bytes

static chi_atomic64 waits;

uint64_t chi_remote_waits(void)
{
	return chi_atomic64_load(&waits);
}

static chi_remote_stream *find_stream(const chi_remote_server *r, uint32_t number)
{
	chi_remote_stream *s = r->streams;
	while (s != NULL && s->number != number)
		s = s->next;
	return s;
}

static void take_reached(chi_remote_server *r, chi_unpack *u)
{
	chi_error e;
	chi_remote_stream *s = find_stream(r, chi_unpack_u32(u));
	const uint64_t reached = chi_unpack_u64(u), failed = chi_unpack_u64(u);
	const uint32_t status = chi_unpack_u32(u);
	chi_unpack_text(u, e.text, sizeof e.text);
	u->failed |= (failed != 0) != (status != CHOIR_OK) || status > CHOIR_INTERNAL;
	if (u->failed || s == NULL)
		return;
	if (reached > s->queued || reached < s->reached) {
		u->failed = true;
		return;
	}
	s->reached = reached;
	if (reached >= s->asked)
		s->asked = 0;
	if (failed > s->told && s->failed == 0) {
		e.status = (choir_status) status;
		s->failed = failed;
		s->failure = e;
	}
}

// A fetch of a failed stream gets no bytes.
static void take_data(chi_remote_server *r, chi_unpack *u)
{
	chi_remote_stream *s = find_stream(r, chi_unpack_u32(u));
	const uint64_t number = chi_unpack_u64(u);
	const size_t bytes = u->failed ? 0 : u->bytes - u->at;
	const void *data = chi_unpack_raw(u, bytes);
	if (s == NULL || u->failed)
		return;
	while (s->fetch_count > 0 && s->fetches[s->first_fetch].number < number) {
		s->first_fetch++;
		s->fetch_count--;
	}
	const chi_remote_fetch *f = &s->fetches[s->first_fetch];
	if (s->fetch_count == 0 || f->number != number || f->bytes != bytes) {
		u->failed = true;
		return;
	}
	if (f->to != NULL)
		memcpy(f->to, data, bytes);
	s->first_fetch++;
	s->fetch_count--;
}

static choir_status take_frame(
		void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	chi_remote_server *r = user;
	chi_unpack u = { .data = payload, .bytes = (size_t) f->bytes };
	(void) peer;
	chi_mutex_lock(&r->lock);
	if (f->kind == CHI_REMOTE_REACHED) {
		while (!u.failed && u.at < u.bytes)
			take_reached(r, &u);
		chi_cond_broadcast(&r->changed);
	} else if (f->kind == CHI_REMOTE_DATA)
		take_data(r, &u);
	else if (f->kind == CHI_REMOTE_CREDIT) {
		const uint64_t bytes = chi_unpack_u64(&u);
		u.failed |= bytes > r->in_flight;
		r->in_flight -= u.failed ? 0 : bytes;
		chi_cond_broadcast(&r->changed);
	} else if (f->kind == CHI_REMOTE_READS)
		r->reads = true;
	else
		u.failed = true;
	chi_mutex_unlock(&r->lock);
	return chi_unpack_end(&u, "of the device server");
}

static void take_welcome(void *user, chi_peer *peer)
{
	chi_remote_server *r = user;
	chi_unpack u = { .data = peer->handshake.welcome, .bytes = peer->handshake.welcome_bytes };
	chi_mutex_lock(&r->lock);
	chi_unpack_text(&u, r->library, sizeof r->library);
	const uint32_t n = chi_unpack_u32(&u);
	for (uint32_t i = 0; i < n && i < CHI_REMOTE_DEVICES && !u.failed; i++) {
		chi_remote_device *d = &r->device[r->devices++];
		chi_unpack_text(&u, d->name, sizeof d->name);
		d->cores = (int) chi_unpack_u32(&u);
		d->memory = chi_unpack_u64(&u);
	}
	r->joined = true;
	if (chi_unpack_end(&u, "WELCOME") != CHOIR_OK)
		chi_error_save(&r->end);
	chi_mutex_unlock(&r->lock);
}

static void take_end(void *user, chi_peer *peer, choir_status status)
{
	chi_remote_server *r = user;
	(void) peer;
	(void) chi_error_prefix("server %s", r->address);
	chi_mutex_lock(&r->lock);
	chi_error_save(&r->end);
	r->end.status = status == CHOIR_END || status == CHOIR_TIMEOUT ? CHOIR_PEER_LOST : status;
	r->peer = NULL;
	chi_cond_broadcast(&r->changed);
	chi_mutex_unlock(&r->lock);
}

static bool take_commands(
		chi_remote_server *r, chi_pack *commands, double *active, double *look, double *until)
{
	const double now = chi_clock_now();
	commands->bytes = 0;
	chi_mutex_lock(&r->lock);
	const bool goes_on = r->end.status == CHOIR_OK && !r->stops;
	const bool full = r->peer != NULL && chi_link_waiting(&r->peer->link) > LINK_MAX;
	if (goes_on && !full && r->outbox.bytes > 0) {
		const chi_pack empty = *commands;
		*commands = r->outbox;
		r->outbox = empty;
		*active = r->awaited ? now - 2 * ACTIVE : now;
		r->awaited = false;
		chi_cond_broadcast(&r->changed);
	}
	r->woken = false;
	r->asleep = !full && now > *active + ACTIVE;
	*look = r->asleep ? FIRST_LOOK / 2 : fmin(2 * *look, LOOK);
	*until = full || r->asleep ? HUGE_VAL : now + *look;
	chi_mutex_unlock(&r->lock);
	return goes_on;
}

static void work(void *arg)
{
	chi_remote_server *r = arg;
	chi_pack commands = { 0 };
	double active = chi_clock_now(), look = LOOK, until;
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK && take_commands(r, &commands, &active, &look, &until)) {
		const choir_connection_part part = { commands.data, commands.bytes };
		if (commands.bytes > 0) // a failure ends the peer, as take_end reports
			(void) chi_peer_send(r->peer, CHI_REMOTE_COMMANDS, 0, &part, 1);
		status = chi_hub_step(r->hub, until);
	}
	if (status != CHOIR_OK)
		take_end(r, NULL, status);
	chi_pack_free(&commands);
}

static choir_status dial(chi_remote_server *r)
{
	r->end = (chi_error){ .status = CHOIR_OK };
	r->peer = chi_hub_dial(r->hub, r->address, NULL);
	CHOIR_TRY(chi_made(r->peer));
	while (!r->joined && r->end.status == CHOIR_OK)
		CHOIR_TRY(chi_hub_step(r->hub, HUGE_VAL));
	if (r->end.status != CHOIR_OK)
		chi_error_restore(&r->end);
	return r->end.status;
}

// Servers may start together with the program.
static choir_status join(chi_remote_server *r)
{
	const double until = chi_clock_deadline(STARTS);
	choir_status status = dial(r);
	while ((status == CHOIR_NOT_FOUND || status == CHOIR_PEER_LOST) && chi_clock_now() < until) {
		chi_thread_nap(PAUSE);
		status = dial(r);
	}
	return status;
}

static void add_header(chi_remote_server *r, const chi_remote_stream *s, uint32_t command)
{
	r->start = r->outbox.bytes;
	chi_pack_u32(&r->outbox, command);
	chi_pack_u32(&r->outbox, s == NULL ? 0 : s->number);
	chi_pack_u32(&r->outbox, 0);
	chi_pack_u32(&r->outbox, 0);
}

static choir_status complete(chi_remote_server *r)
{
	const size_t bytes = r->outbox.bytes - r->start;
	if (r->outbox.failed) {
		r->outbox.bytes = r->start;
		r->outbox.failed = false;
		return CHOIR_NO_MEMORY;
	}
	chi_put_number(r->outbox.data + r->start + 8, bytes - CHI_COMMAND_HEADER, 4);
	r->in_flight += bytes;
	return CHOIR_OK;
}

static choir_status connect_to(chi_remote_server *r)
{
	const char *file = getenv("CHOIR_KEY_FILE");
	const bool has_key = file != NULL && file[0] != '\0';
	const chi_hub_owner owner = { r, NULL, take_welcome, take_frame, take_end };
	chi_key key;
	if (has_key)
		CHOIR_TRY(chi_key_read(file, &key));
	r->connections = chi_connections_open(has_key ? &key : NULL, false);
	if (has_key)
		chi_key_clear(&key);
	if (r->connections == NULL)
		return choir_error_status();
	CHOIR_TRY(chi_remote_hello(&r->hello, CHI_REMOTE_ROLE, (int) r->number, r->connections->job));
	r->hub = chi_hub_new(
			r->connections, &r->hello, &owner, &(chi_hub_options){ .max = CHI_REMOTE_MAX });
	CHOIR_TRY(chi_made(r->hub));
	CHOIR_TRY(join(r));
	add_header(r, NULL, CHI_COMMAND_LEND);
	chi_pack_u64(&r->outbox, (uintptr_t) &r->hello.incarnation);
	CHOIR_TRY(complete(r));
	CHOIR_TRY(chi_thread_start(&r->thread, "choir-remote", work, r));
	chi_thread_detach(&r->thread);
	return CHOIR_OK;
}

chi_remote_server *chi_remote_server_new(const char *address, uint32_t number)
{
	chi_remote_server *r = chi_alloc(sizeof *r);
	if (r == NULL)
		return NULL;
	snprintf(r->address, sizeof r->address, "%s", address);
	r->number = number;
	r->generation = chi_fork_generation();
	r->next_address = (uint64_t) 1 << 63 | (uint64_t) number << 48 | 4096;
	chi_mutex_init(&r->lock, CHI_RANK_STREAM, "remote server");
	chi_cond_init(&r->changed);
	if (connect_to(r) == CHOIR_OK)
		return r;
	chi_error failure;
	chi_error_save(&failure);
	chi_hub_free(r->hub);
	chi_connections_free(r->connections);
	chi_cond_destroy(&r->changed);
	chi_mutex_destroy(&r->lock);
	chi_free(r);
	chi_error_restore(&failure);
	return NULL;
}

// With the lock, here and below.
static void wake(chi_remote_server *r, bool urgent)
{
	if (r->woken || (!urgent && !r->asleep))
		return;
	r->woken = true;
	r->asleep = false;
	chi_hub_wake(r->hub);
}

static choir_status check_end(const chi_remote_server *r)
{
	if (r->end.status != CHOIR_OK)
		chi_error_restore(&r->end);
	return r->end.status;
}

static choir_status wait_for_capacity(chi_remote_server *r, size_t bytes)
{
	double deadline = 0;
	while (r->end.status == CHOIR_OK &&
			((r->outbox.bytes > 0 && r->outbox.bytes + bytes > CHI_REMOTE_FRAME) ||
					r->in_flight + bytes > CHI_REMOTE_WINDOW)) {
		if (deadline == 0)
			deadline = chi_clock_deadline(LONGEST);
		wake(r, true);
		if (!chi_cond_wait(&r->changed, &r->lock, deadline))
			return choir_fail(CHOIR_TIMEOUT,
					"%" PRIu64 " bytes of commands are not done after %g s", r->in_flight,
					LONGEST);
	}
	return check_end(r);
}

static choir_status check_process(const chi_remote_server *r)
{
	if (chi_fork_generation() == r->generation)
		return CHOIR_OK;
	return choir_fail(CHOIR_STATE,
			"the connection belongs to the process before the fork; use the device in one "
			"process");
}

choir_status chi_remote_begin(
		chi_remote_server *r, chi_remote_stream *s, uint32_t command, size_t bytes)
{
	CHOIR_TRY(check_process(r));
	chi_mutex_lock(&r->lock);
	const choir_status status = wait_for_capacity(r, bytes);
	if (status == CHOIR_OK)
		add_header(r, s, command);
	else
		chi_mutex_unlock(&r->lock);
	return status;
}

choir_status chi_remote_end(chi_remote_server *r, chi_remote_stream *s)
{
	const choir_status status = complete(r);
	const uint64_t command = status == CHOIR_OK ? chi_get_number(r->outbox.data + r->start, 4) : 0;
	if (s != NULL && command >= CHI_COMMAND_SEND)
		s->queued++;
	if (status == CHOIR_OK)
		wake(r, r->outbox.bytes > URGENT);
	chi_mutex_unlock(&r->lock);
	return status;
}

void chi_remote_cancel(chi_remote_server *r)
{
	r->outbox.bytes = r->start;
	r->outbox.failed = false;
	chi_mutex_unlock(&r->lock);
}

void chi_remote_flush(chi_remote_server *r)
{
	if (check_process(r) != CHOIR_OK)
		return;
	chi_mutex_lock(&r->lock);
	if (r->outbox.bytes > 0)
		wake(r, true);
	chi_mutex_unlock(&r->lock);
}

chi_remote_loan *chi_remote_lend(chi_remote_stream *s)
{
	chi_remote_server *r = s->server;
	chi_remote_loan *found = NULL;
	if (chi_fork_generation() != r->generation) // the lock may be held for ever
		return NULL;
	chi_mutex_lock(&r->lock);
	for (int i = 0; r->reads && found == NULL && i < CHI_REMOTE_LOANS; i++) {
		chi_remote_loan *l = &r->loan[i];
		if (l->stream == NULL || l->stream->reached >= l->number)
			found = l;
	}
	if (found != NULL && found->memory == NULL)
		found->memory = chi_alloc(CHI_REMOTE_PIECE);
	if (found != NULL && found->memory == NULL)
		found = NULL;
	if (found != NULL) {
		found->stream = s;
		found->number = UINT64_MAX;
	}
	chi_mutex_unlock(&r->lock);
	return found;
}

static choir_status ask(chi_remote_stream *s, uint64_t number)
{
	chi_remote_server *r = s->server;
	if (s->asked != 0 && s->asked <= number)
		return CHOIR_OK;
	add_header(r, s, CHI_COMMAND_SYNC);
	chi_pack_u64(&r->outbox, number);
	CHOIR_TRY(complete(r));
	s->asked = number;
	r->awaited = true;
	chi_atomic64_add(&waits, 1);
	wake(r, true);
	return CHOIR_OK;
}

// Reports a failure once. Commands up to here do not run, later ones do.
static choir_status tell(chi_remote_stream *s)
{
	add_header(s->server, s, CHI_COMMAND_CLEAR);
	CHOIR_TRY(complete(s->server));
	s->queued++;
	s->told = s->failed;
	s->failed = 0;
	memset(s->followed, 0, sizeof s->followed); // these commands may have failed, too
	return chi_error_restore(&s->failure);
}

static choir_status wait_locked(chi_remote_stream *s, uint64_t number, double seconds)
{
	chi_remote_server *r = s->server;
	const double deadline = chi_clock_deadline(seconds);
	bool in_time = true;
	if (number > s->queued)
		return choir_fail(CHOIR_INVALID,
				"event %" PRIu64 " does not exist; the last one is %" PRIu64, number, s->queued);
	while (in_time && s->reached < number && r->end.status == CHOIR_OK) {
		CHOIR_TRY(ask(s, number));
		in_time = chi_cond_wait(&r->changed, &r->lock, deadline);
	}
	if (s->failed != 0 && s->failed <= number)
		return tell(s);
	if (s->reached >= number)
		return CHOIR_OK;
	CHOIR_TRY(check_end(r));
	return choir_fail(CHOIR_TIMEOUT, "%" PRIu64 " of %" PRIu64 " commands are done after %g s",
			s->reached, number, seconds);
}

choir_status chi_remote_wait(chi_remote_stream *s, uint64_t number, double seconds)
{
	CHOIR_TRY(check_process(s->server));
	chi_mutex_lock(&s->server->lock);
	const choir_status status = wait_locked(s, number, seconds);
	// After a failure the host's memory may be freed; only a timeout leaves it in use.
	for (size_t i = 0; status != CHOIR_OK && status != CHOIR_TIMEOUT && i < s->fetch_count; i++)
		if (s->fetches[s->first_fetch + i].number <= number)
			s->fetches[s->first_fetch + i].to = NULL;
	chi_mutex_unlock(&s->server->lock);
	return status;
}
