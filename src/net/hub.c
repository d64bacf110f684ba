// A step waits once, serves each ready connection, then checks the clock. Peers leave the list
// only at its end, so the owner's functions may end and dial peers.
#include "net/hub.h"

#include "base/alloc.h"
#include "base/log.h"

#include <math.h>
#include <string.h>

enum { LISTENERS = 4, FRAMES_A_TURN = 64, MAX = 65536 };
static const double BEAT = 0.5, LOST_AFTER = 5, END_SECONDS = 2;

struct chi_hub {
	chi_connections *connections;
	const chi_hello *own;
	chi_hub_owner owner;
	chi_hub_options o;
	uint64_t listener[LISTENERS];
	int listeners, strangers;
	chi_peer *first_peer;
	size_t peer_count;
	choir_connection_wait *waits; // listeners, then peers
	chi_peer **waiting;
	size_t wait_capacity, waiting_capacity;
};

double chi_hub_now(chi_hub *h)
{
	return chi_connections_now(h->connections);
}

int chi_hub_open_connections(const chi_hub *h)
{
	return (int) h->peer_count;
}

void chi_hub_wake(chi_hub *h)
{
	h->connections->table.wake(h->connections->self);
}

chi_hub *chi_hub_new(chi_connections *connections, const chi_hello *own,
		const chi_hub_owner *owner, const chi_hub_options *o)
{
	chi_hub *h = chi_alloc(sizeof *h);
	if (h == NULL)
		return NULL;
	h->connections = connections;
	h->own = own;
	h->owner = *owner;
	h->o = *o;
	h->o.heartbeat = o->heartbeat > 0 ? o->heartbeat : BEAT;
	h->o.lost_after = o->lost_after > 0 ? o->lost_after : LOST_AFTER;
	h->o.max = o->max > 0 ? o->max : MAX;
	return h;
}

static void free_peer(chi_peer *p)
{
	chi_link_close(&p->link);
	chi_free(p);
}

void chi_hub_free(chi_hub *h)
{
	if (h == NULL)
		return;
	for (chi_peer *p = h->first_peer, *next; p != NULL; p = next) {
		next = p->next;
		free_peer(p);
	}
	for (int i = 0; i < h->listeners; i++)
		h->connections->table.drop(h->connections->self, h->listener[i]);
	chi_free(h->waits);
	chi_free(h->waiting);
	chi_free(h);
}

choir_status chi_hub_listen(chi_hub *h, const char *address, char *bound, size_t size)
{
	if (h->listeners == LISTENERS)
		return choir_fail(CHOIR_INTERNAL, "hub: more than %d listeners", LISTENERS);
	const chi_connections *c = h->connections;
	char more[80] = "";
	CHOIR_TRY(c->table.listen(c->self, address, &h->listener[h->listeners], bound, size));
	c->table.describe(c->self, h->listener[h->listeners++], more, sizeof more);
	if (more[0] != '\0' && strcmp(more, bound) != 0)
		chi_log(CHOIR_LOG_INFO, "%s: listens at %s", bound, more);
	return CHOIR_OK;
}

// Takes over connection, also on failure.
static chi_peer *add_peer(chi_hub *h, uint64_t connection, bool dialled, void *user)
{
	chi_peer *p = chi_alloc(sizeof *p);
	if (p == NULL) {
		h->connections->table.drop(h->connections->self, connection);
		return NULL;
	}
	p->hub = h;
	p->user = user;
	p->until = chi_hub_now(h) + CHI_HUB_HANDSHAKE_SECONDS;
	h->connections->table.describe(h->connections->self, connection, p->name, sizeof p->name);
	if (chi_link_open(&p->link, h->connections, connection) != CHOIR_OK ||
			chi_handshake_begin(&p->handshake, &p->link, h->own, dialled) != CHOIR_OK) {
		free_peer(p);
		return NULL;
	}
	h->strangers += !dialled;
	h->peer_count++;
	p->next = h->first_peer;
	h->first_peer = p;
	return p;
}

chi_peer *chi_hub_dial(chi_hub *h, const char *address, void *user)
{
	uint64_t connection;
	if (h->connections->table.connect(h->connections->self, address, &connection) != CHOIR_OK)
		return NULL;
	return add_peer(h, connection, true, user);
}

static void check(chi_peer *p, choir_status status)
{
	if (p->gone || status == CHOIR_OK)
		return;
	chi_error_save(&p->why);
	p->why.status = status;
	p->gone = true;
}

choir_status chi_peer_send(
		chi_peer *p, uint16_t kind, uint32_t stream, const choir_connection_part parts[], int n)
{
	if (p->gone || p->ending)
		return choir_fail(CHOIR_PEER_LOST, "%s has ended", p->name);
	const choir_status status = chi_link_send(&p->link, kind, stream, parts, n);
	check(p, status);
	p->heartbeat.sent = chi_hub_now(p->hub);
	return status;
}

choir_status chi_peer_send_pack(chi_peer *p, uint16_t kind, uint32_t stream, const chi_pack *pack)
{
	const choir_connection_part part = { pack->data, pack->bytes };
	if (!pack->failed)
		return chi_peer_send(p, kind, stream, &part, pack->bytes > 0);
	const choir_status status = choir_fail(CHOIR_NO_MEMORY, "%s: a message", p->name);
	check(p, status);
	return status;
}

void chi_peer_end(chi_peer *p, choir_status status, const char *why)
{
	if (p->gone || p->ending)
		return;
	p->gone = chi_reason_send(&p->link, CHI_NET_BYE, status, why) != CHOIR_OK;
	p->ending = true;
	p->until = chi_hub_now(p->hub) + END_SECONDS;
}

static void join_peer(chi_hub *h, chi_peer *p)
{
	h->strangers -= !p->handshake.dialled;
	p->joined = true;
	p->link.max = h->o.max;
	chi_hello_name(&p->handshake.peer, p->name, sizeof p->name);
	chi_heartbeat_begin(&p->heartbeat, h->o.heartbeat, h->o.lost_after, chi_hub_now(h));
}

// After admit the owner gets the peer's end.
static choir_status welcome(chi_hub *h, chi_peer *p)
{
	chi_pack pack = { 0 };
	choir_status status =
			h->owner.admit == NULL ? CHOIR_OK : h->owner.admit(h->owner.user, p, &pack);
	if (status != CHOIR_OK) {
		chi_handshake_refuse(&p->handshake, &p->link);
	} else {
		join_peer(h, p);
		status = chi_handshake_welcome(&p->handshake, &p->link, &pack);
	}
	chi_pack_free(&pack);
	return status;
}

static choir_status shake_hands(
		chi_hub *h, chi_peer *p, const chi_net_frame *frame, const void *payload)
{
	CHOIR_TRY(chi_handshake_take(&p->handshake, &p->link, frame, payload));
	if (p->handshake.state == CHI_HANDSHAKE_ASKED)
		CHOIR_TRY(welcome(h, p));
	else
		join_peer(h, p);
	if (h->owner.joined != NULL)
		h->owner.joined(h->owner.user, p);
	return CHOIR_OK;
}

static choir_status take(chi_hub *h, chi_peer *p, const chi_net_frame *frame, const void *payload)
{
	if (!p->joined)
		return shake_hands(h, p, frame, payload);
	if (frame->kind == CHI_NET_BEAT)
		return CHOIR_OK;
	if (frame->kind == CHI_NET_BYE)
		return chi_reason_take(payload, frame->bytes, "BYE");
	if (frame->kind < CHI_NET_OWN)
		return choir_fail(CHOIR_CORRUPT, "a message of kind %d after the handshake", frame->kind);
	return h->owner.frame(h->owner.user, p, frame, payload);
}

// A peer that ends drops messages until the other end has closed: if this end closed first, a
// message on its way here would fail before the goodbye is read.
static choir_status receive(chi_hub *h, chi_peer *p)
{
	p->more = false;
	for (int i = 0; i < FRAMES_A_TURN && !p->gone; i++) {
		const chi_net_frame *frame;
		const void *payload;
		const choir_status status = chi_link_receive(&p->link, &frame, &payload);
		if (status == CHOIR_END && !p->ending)
			return choir_fail(CHOIR_PEER_LOST, "the connection was closed");
		CHOIR_TRY(status);
		if (frame == NULL)
			return CHOIR_OK;
		p->heartbeat.heard = chi_hub_now(h);
		if (!p->ending)
			CHOIR_TRY(take(h, p, frame, payload));
		else if (frame->kind == CHI_NET_BYE)
			return CHOIR_END;
	}
	p->more = true;
	return CHOIR_OK;
}

static void serve(chi_hub *h, chi_peer *p)
{
	choir_status status = chi_link_flush(&p->link);
	if (status == CHOIR_OK)
		status = receive(h, p);
	check(p, status);
}

static void look_at_clock(chi_peer *p, double now)
{
	if (p->ending || !p->joined) {
		if (now >= p->until)
			check(p, choir_fail(CHOIR_TIMEOUT, "no handshake in %g s", CHI_HUB_HANDSHAKE_SECONDS));
		return;
	}
	if (chi_heartbeat_lost(&p->heartbeat, now))
		check(p, choir_fail(CHOIR_TIMEOUT, "no heartbeat for %.1f s", now - p->heartbeat.heard));
	else if (chi_heartbeat_due(&p->heartbeat, now))
		(void) chi_peer_send(p, CHI_NET_BEAT, 0, NULL, 0);
}

static void accept_all(chi_hub *h, uint64_t listener)
{
	uint64_t connection = 1;
	while (h->strangers < CHI_HUB_STRANGERS && connection != 0) {
		connection = 0;
		const choir_status status =
				h->connections->table.accept(h->connections->self, listener, &connection);
		if (status != CHOIR_OK ||
				(connection != 0 && add_peer(h, connection, false, NULL) == NULL))
			chi_log(CHOIR_LOG_WARNING, "a connection is lost: %s", choir_error());
	}
}

// *until: the next time of a heartbeat or an end.
static choir_status prepare(chi_hub *h, int *n, double *until)
{
	const size_t all = h->peer_count + LISTENERS;
	if (!chi_grow(&h->waits, &h->wait_capacity, all, sizeof *h->waits) ||
			!chi_grow(&h->waiting, &h->waiting_capacity, all, sizeof(chi_peer *)))
		return CHOIR_NO_MEMORY;
	int count = 0;
	for (int i = 0; i < h->listeners; i++)
		h->waits[count++] = (choir_connection_wait){ .connection = h->listener[i],
			.receive = h->strangers < CHI_HUB_STRANGERS };
	for (chi_peer *p = h->first_peer; p != NULL; p = p->next) {
		if (!p->gone)
			check(p, chi_link_flush(&p->link));
		if (p->ending && !p->joined && chi_link_waiting(&p->link) == 0)
			p->gone = true;
		const double next = p->ending || !p->joined ? p->until : chi_heartbeat_next(&p->heartbeat);
		*until = p->gone || p->more ? -HUGE_VAL : fmin(*until, next);
		h->waiting[count] = p;
		h->waits[count++] = (choir_connection_wait){ .connection = p->link.connection,
			.receive = true,
			.send = chi_link_waiting(&p->link) > 0 };
	}
	*n = count;
	return CHOIR_OK;
}

static void sweep(chi_hub *h)
{
	for (chi_peer **at = &h->first_peer; *at != NULL;) {
		chi_peer *p = *at;
		if (!p->gone) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		h->peer_count--;
		h->strangers -= !p->joined && !p->handshake.dialled;
		if (!p->ending && (p->joined || p->handshake.dialled) && h->owner.lost != NULL) {
			chi_error_restore(&p->why);
			h->owner.lost(h->owner.user, p, p->why.status);
		}
		free_peer(p);
	}
}

choir_status chi_hub_step(chi_hub *h, double until)
{
	int n;
	CHOIR_TRY(prepare(h, &n, &until));
	CHOIR_TRY(h->connections->table.wait(h->connections->self, h->waits, n, until));
	const int listeners = h->listeners;
	for (int i = listeners; i < n; i++)
		if (!h->waiting[i]->gone && (h->waits[i].ready || h->waiting[i]->more))
			serve(h, h->waiting[i]);
	for (int i = 0; i < listeners; i++)
		if (h->waits[i].ready)
			accept_all(h, h->listener[i]);
	const double now = chi_hub_now(h);
	for (chi_peer *p = h->first_peer; p != NULL; p = p->next)
		if (!p->gone)
			look_at_clock(p, now);
	sweep(h);
	return CHOIR_OK;
}

void chi_hub_end(chi_hub *h, choir_status status, const char *why)
{
	for (int i = 0; i < h->listeners; i++)
		h->connections->table.drop(h->connections->self, h->listener[i]);
	h->listeners = 0;
	for (chi_peer *p = h->first_peer; p != NULL; p = p->next)
		chi_peer_end(p, status, why);
	const double until = chi_hub_now(h) + END_SECONDS;
	while (h->first_peer != NULL && chi_hub_now(h) < until && chi_hub_step(h, until) == CHOIR_OK)
		;
}
