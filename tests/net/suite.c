// The programs of the suite of connection tables.
#include "net/suite.h"

#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

static const double PATIENCE = 20;

static choir_status wait_one(chi_connections *c, uint64_t connection, bool send, double seconds)
{
	choir_connection_wait w = { .connection = connection, .receive = !send, .send = send };
	return c->table.wait(c->self, &w, 1, chi_connections_now(c) + seconds);
}

// Gives the other end time for its part of a handshake.
static choir_status turn(chi_connections *c, uint64_t connection)
{
	size_t none;
	choir_status status = wait_one(c, connection, false, 1e-3);
	if (status == CHOIR_OK)
		status = c->table.receive(c->self, connection, NULL, 0, &none);
	return status;
}

static void connect_both(const net_suite_place *p, uint64_t listener, const char *address,
		uint64_t *dialled, uint64_t *accepted)
{
	chi_connections *l = p->listener, *d = p->dialler;
	const double until = chi_connections_now(l) + PATIENCE;
	const choir_status status = d->table.connect(d->self, address, dialled);
	if (status != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_true(*dialled != 0);
	*accepted = 0;
	while (*accepted == 0 && chi_connections_now(l) < until) {
		assert_int_equal(wait_one(l, listener, false, 1e-2), CHOIR_OK);
		assert_int_equal(l->table.accept(l->self, listener, accepted), CHOIR_OK);
	}
	assert_true(*accepted != 0);
}

typedef struct {
	chi_connections *c;
	uint64_t connection;
	size_t sent, received;
} end;

static unsigned char byte_of(size_t i, int direction)
{
	return (unsigned char) (i * 131 + (i >> 9) + (size_t) direction * 77);
}

static void send_more(end *e, size_t bytes, int direction)
{
	unsigned char block[3][1000];
	choir_connection_part parts[3];
	int n = 0;
	for (size_t at = e->sent; n < 3 && at < bytes; n++) {
		const size_t length = bytes - at < sizeof block[0] ? bytes - at : sizeof block[0];
		for (size_t i = 0; i < length; i++)
			block[n][i] = byte_of(at + i, direction);
		parts[n] = (choir_connection_part){ block[n], length };
		at += length;
	}
	size_t sent;
	assert_int_equal(e->c->table.send(e->c->self, e->connection, parts, n, &sent), CHOIR_OK);
	e->sent += sent;
}

static choir_status receive_more(end *e, int direction)
{
	unsigned char block[5000];
	size_t got;
	const choir_status status =
			e->c->table.receive(e->c->self, e->connection, block, sizeof block, &got);
	for (size_t i = 0; i < got; i++)
		assert_int_equal(block[i], byte_of(e->received + i, direction));
	e->received += got;
	return status;
}

// Both ends send many bytes at the same time and receive them in order.
static void exchange(end *a, end *b, size_t bytes)
{
	const double until = chi_connections_now(a->c) + PATIENCE;
	while ((a->received < bytes || b->received < bytes) && chi_connections_now(a->c) < until) {
		const size_t before = a->sent + b->sent + a->received + b->received;
		if (a->sent < bytes)
			send_more(a, bytes, 0);
		if (b->sent < bytes)
			send_more(b, bytes, 1);
		assert_int_equal(receive_more(a, 1), CHOIR_OK);
		assert_int_equal(receive_more(b, 0), CHOIR_OK);
		if (a->sent + b->sent + a->received + b->received == before) {
			assert_int_equal(wait_one(a->c, a->connection, false, 1e-3), CHOIR_OK);
			assert_int_equal(wait_one(b->c, b->connection, false, 1e-3), CHOIR_OK);
		}
	}
	assert_int_equal(a->received, bytes);
	assert_int_equal(b->received, bytes);
}

// The end of a connection comes after its last byte, also if the other end speaks meanwhile.
static void end_is_seen(end *a, end *b, bool speaks)
{
	const size_t bytes = a->sent + 3000;
	while (a->sent < bytes)
		send_more(a, bytes, 0);
	a->c->table.drop(a->c->self, a->connection);
	const double until = chi_connections_now(b->c) + PATIENCE;
	choir_status status = CHOIR_OK;
	for (int i = 0; speaks && i < 20; i++) {
		const choir_connection_part part = { "x", 1 };
		size_t sent;
		status = b->c->table.send(b->c->self, b->connection, &part, 1, &sent);
		assert_true(status == CHOIR_OK || status == CHOIR_PEER_LOST);
		(void) wait_one(b->c, b->connection, true, 1e-3);
	}
	status = CHOIR_OK;
	while (status == CHOIR_OK && chi_connections_now(b->c) < until) {
		assert_int_equal(wait_one(b->c, b->connection, false, 1e-2), CHOIR_OK);
		status = receive_more(b, 0);
	}
	assert_true(status == CHOIR_END || (speaks && status == CHOIR_PEER_LOST));
	assert_int_equal(b->received, bytes);
	b->c->table.drop(b->c->self, b->connection);
}

static void wait_ends(const net_suite_place *p, end *b)
{
	chi_connections *c = p->listener;
	const double begin = chi_connections_now(c);
	assert_int_equal(wait_one(c, b->connection, false, 0.02), CHOIR_OK);
	assert_true(chi_connections_now(c) >= begin + 0.019);
	c->table.wake(c->self);
	assert_int_equal(wait_one(c, b->connection, false, PATIENCE), CHOIR_OK);
	assert_true(chi_connections_now(c) < begin + PATIENCE / 2);
	choir_connection_wait w = { .connection = b->connection, .receive = true, .send = true };
	assert_int_equal(c->table.wait(c->self, &w, 1, begin + PATIENCE), CHOIR_OK);
	assert_true(w.ready); // to send
	assert_true(chi_connections_now(c) < begin + PATIENCE / 2);
	assert_int_equal(c->table.wait(c->self, NULL, 0, 0), CHOIR_OK);
}

// Only the connection with bytes is ready.
static void waits_for_several(end a[3], end b[3])
{
	chi_connections *c = b[0].c;
	choir_connection_wait waits[3];
	send_more(&a[1], a[1].sent + 1, 0);
	for (int i = 0; i < 3; i++)
		waits[i] = (choir_connection_wait){ .connection = b[i].connection, .receive = true };
	assert_int_equal(
			c->table.wait(c->self, waits, 3, chi_connections_now(c) + PATIENCE), CHOIR_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(waits[i].ready, i == 1);
	assert_int_equal(receive_more(&b[1], 0), CHOIR_OK);
}

static void wrong_addresses(const net_suite_place *p, const char *address)
{
	chi_connections *c = p->listener;
	uint64_t number;
	char bound[128];
	choir_status status = c->table.connect(c->self, p->nowhere, &number);
	if (status == CHOIR_OK) { // a network tells later
		const double until = chi_connections_now(c) + PATIENCE;
		while (status == CHOIR_OK && chi_connections_now(c) < until)
			status = turn(c, number);
		assert_int_equal(status, CHOIR_PEER_LOST);
		c->table.drop(c->self, number);
	} else {
		assert_int_equal(status, CHOIR_NOT_FOUND);
	}
	assert_int_equal(c->table.listen(c->self, address, &number, bound, sizeof bound), CHOIR_STATE);
	assert_text_holds(choir_error(), address);
}

void net_suite_run(const net_suite_place *p)
{
	enum { CONNECTIONS = 3, BYTES = 1000000 };
	chi_connections *l = p->listener;
	uint64_t listener;
	char bound[128], text[128];
	end a[CONNECTIONS] = { 0 }, b[CONNECTIONS] = { 0 };
	assert_int_equal(
			l->table.listen(l->self, p->address, &listener, bound, sizeof bound), CHOIR_OK);
	uint64_t nobody = 1;
	assert_int_equal(l->table.accept(l->self, listener, &nobody), CHOIR_OK);
	assert_int_equal(nobody, 0);
	for (int i = 0; i < CONNECTIONS; i++) {
		a[i].c = p->dialler;
		b[i].c = l;
		connect_both(p, listener, bound, &a[i].connection, &b[i].connection);
		exchange(&a[i], &b[i], i == 0 ? BYTES : 10);
		l->table.describe(l->self, b[i].connection, text, sizeof text);
		assert_true(strlen(text) > 3);
	}
	waits_for_several(a, b);
	wait_ends(p, &b[0]);
	end_is_seen(&a[0], &b[0], false);
	end_is_seen(&b[1], &a[1], true);
	wrong_addresses(p, bound);
	l->table.drop(l->self, listener);
	// The third connection is left to the end of the tables.
}
