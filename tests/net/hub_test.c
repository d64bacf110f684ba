// Hubs in the simulation: joining, frames, heartbeats, deaths, strangers, other builds.
#include "net/hub.h"

#include "net/net_sim.h"
#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NODES = 4, KIND = CHI_NET_OWN };

// A node: its hub and what has happened there.
typedef struct {
	chi_connections *connections;
	chi_hub *hub;
	chi_hello own;
	chi_peer *peer; // the last that joined
	int joined, lost, frames;
	choir_status lost_status, admit;
	char lost_text[CHI_ERROR_SIZE];
	uint64_t next; // number in the next frame
	bool echoes, ordered;
} node;

typedef struct {
	net_sim *s;
	node node[NODES];
} world;

static choir_status admit(void *user, chi_peer *peer, chi_pack *welcome)
{
	node *n = user;
	if (n->admit != CHOIR_OK)
		return choir_fail(n->admit, "no more workers");
	if (peer->handshake.peer.index == CHOIR_NONE)
		peer->handshake.peer.index = 5;
	chi_pack_text(welcome, "lease");
	return CHOIR_OK;
}

static void joined(void *user, chi_peer *peer)
{
	node *n = user;
	n->joined++;
	n->peer = peer;
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	node *n = user;
	chi_unpack u = { .data = payload, .bytes = (size_t) f->bytes };
	const uint64_t number = chi_unpack_u64(&u);
	n->frames++;
	n->ordered = n->ordered && number == n->next && f->kind == KIND;
	n->next = number + 1;
	if (n->echoes) {
		const choir_connection_part part = { payload, (size_t) f->bytes };
		CHOIR_TRY(chi_peer_send(peer, KIND, 0, &part, 1));
	}
	return CHOIR_OK;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	node *n = user;
	n->lost++;
	n->lost_status = status;
	snprintf(n->lost_text, sizeof n->lost_text, "%s", choir_error());
	n->peer = n->peer == peer ? NULL : n->peer;
}

static void open_patient_node(
		world *w, int i, const char *role, const char *program, double patience)
{
	node *n = &w->node[i];
	const chi_hub_owner owner = { n, admit, joined, frame, lost };
	n->ordered = true;
	n->connections = net_sim_connections(w->s, i);
	assert_non_null(n->connections);
	assert_int_equal(chi_hello_make(&n->own, role, CHOIR_NONE, 0, program), CHOIR_OK);
	n->hub = chi_hub_new(n->connections, &n->own, &owner,
			&(chi_hub_options){ .max = 1 << 20, .lost_after = patience });
	assert_non_null(n->hub);
}

static void open_node(world *w, int i, const char *role, const char *program)
{
	open_patient_node(w, i, role, program, 5);
}

static void open_world(world *w, uint64_t seed, size_t piece)
{
	*w = (world){ .s = net_sim_new(&(net_sim_options){
						  .seed = seed, .slowest = 0.05, .piece = piece, .window = 5000 }) };
	open_node(w, 0, "coordinator", "a");
	char bound[64];
	assert_int_equal(chi_hub_listen(w->node[0].hub, "here", bound, sizeof bound), CHOIR_OK);
}

static void close_world(world *w)
{
	for (int i = 0; i < NODES; i++) {
		chi_hub_free(w->node[i].hub);
		chi_connections_free(w->node[i].connections);
	}
	net_sim_free(w->s);
}

// Runs all hubs for a while.
static void run(world *w, double seconds)
{
	const double until = net_sim_now(w->s) + seconds;
	for (int i = 0; i < NODES; i++)
		if (w->node[i].hub != NULL)
			net_sim_expect(w->s, i, net_sim_now(w->s));
	for (int i; (i = net_sim_next(w->s, until)) != CHOIR_NONE;)
		assert_int_equal(chi_hub_step(w->node[i].hub, HUGE_VAL), CHOIR_OK);
}

static void dial(world *w, int i)
{
	assert_non_null(chi_hub_dial(w->node[i].hub, "here", NULL));
	run(w, 1);
}

static void send_number(chi_peer *p, uint64_t number, size_t bytes)
{
	unsigned char block[200000] = { 0 };
	chi_put_number(block, number, 8);
	const choir_connection_part parts[] = { { block, 8 }, { block + 8, bytes } };
	assert_int_equal(chi_peer_send(p, KIND, 0, parts, 2), CHOIR_OK);
}

TEST(peers_join_and_exchange_frames)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		world w;
		open_world(&w, seed, seed % 2 == 0 ? 1000 : 13);
		open_node(&w, 1, "worker", "a");
		dial(&w, 1);
		run(&w, 3);
		node *a = &w.node[0], *b = &w.node[1];
		assert_int_equal(a->joined, 1);
		assert_int_equal(b->joined, 1);
		assert_int_equal(b->peer->handshake.index, 5);
		assert_memory_equal(b->peer->handshake.welcome + 8, "lease", 5);
		assert_string_equal(b->peer->handshake.peer.role, "coordinator");
		assert_text_holds(a->peer->name, "worker*5");
		a->echoes = true;
		for (uint64_t i = 0; i < 50; i++)
			send_number(b->peer, i, i % 10 == 0 ? 20000 : i);
		run(&w, seed % 2 == 0 ? 60 : 3000);
		assert_int_equal(a->frames, 50);
		assert_int_equal(b->frames, 50);
		assert_true(a->ordered && b->ordered);
		assert_int_equal(a->lost + b->lost, 0);
		close_world(&w);
	}
}

TEST(ends_are_seen)
{
	for (int how = 0; how < 4; how++) {
		world w;
		open_world(&w, (uint64_t) how, 500);
		open_node(&w, 1, "worker", "a");
		dial(&w, 1);
		node *a = &w.node[0], *b = &w.node[1];
		const double begin = net_sim_now(w.s);
		if (how == 0) {
			chi_hub_free(b->hub);
			b->hub = NULL;
			net_sim_kill(w.s, 1);
		} else if (how == 1) {
			net_sim_stop(w.s, 1, true);
		} else if (how == 2) {
			net_sim_cut(w.s, 2);
		} else {
			chi_peer_end(b->peer, CHOIR_CANCELLED, "enough of this");
		}
		while (a->lost == 0 && net_sim_now(w.s) < begin + 20)
			run(&w, 0.1);
		const double seconds = net_sim_now(w.s) - begin;
		static const choir_status status[] = { CHOIR_PEER_LOST, CHOIR_TIMEOUT, CHOIR_TIMEOUT,
			CHOIR_CANCELLED };
		assert_int_equal(a->lost_status, status[how]);
		assert_true(how == 1 || how == 2 ? seconds > 4.4 && seconds < 5.6 : seconds < 0.5);
		if (how == 3)
			assert_text_holds(a->lost_text, "enough of this");
		if (how == 2) {
			net_sim_cut(w.s, 0);
			assert_int_equal(b->lost, 1); // it gave up, too
		}
		assert_null(a->peer);
		close_world(&w);
	}
}

// The goodbye is read, even if the other end has something to say meanwhile.
TEST(a_goodbye_is_not_overtaken_by_the_end)
{
	world w;
	open_world(&w, 2, 500);
	open_node(&w, 1, "worker", "a");
	dial(&w, 1);
	node *a = &w.node[0], *b = &w.node[1];
	chi_peer_end(a->peer, CHOIR_CANCELLED, "enough of this");
	const double until = net_sim_now(w.s) + 0.3; // b does not run
	net_sim_stop(w.s, 1, true);
	for (int i; (i = net_sim_next(w.s, until)) != CHOIR_NONE;)
		assert_int_equal(chi_hub_step(w.node[i].hub, HUGE_VAL), CHOIR_OK);
	net_sim_stop(w.s, 1, false);
	send_number(b->peer, 0, 30000);
	run(&w, 1);
	assert_int_equal(b->lost_status, CHOIR_CANCELLED);
	assert_text_holds(b->lost_text, "enough of this");
	assert_int_equal(a->lost, 0);
	assert_int_equal(chi_hub_open_connections(a->hub), 0);
	dial(&w, 1); // a peer that says nothing more is given two seconds
	net_sim_stop(w.s, 1, true);
	chi_peer_end(a->peer, CHOIR_CANCELLED, "enough of this");
	run(&w, 1.5);
	assert_int_equal(chi_hub_open_connections(a->hub), 1);
	run(&w, 1);
	assert_int_equal(chi_hub_open_connections(a->hub), 0);
	net_sim_stop(w.s, 1, false); // and reads the goodbye, though nobody hears it any more
	b->lost_status = CHOIR_OK;
	send_number(b->peer, 0, 30000);
	run(&w, 1);
	assert_int_equal(b->lost, 2);
	assert_int_equal(b->lost_status, CHOIR_CANCELLED);
	assert_text_holds(b->lost_text, "enough of this");
	close_world(&w);
}

// A process that was stopped itself does not take the others for lost.
TEST(own_stop_is_no_silence_of_others)
{
	world w;
	open_world(&w, 1, 500);
	open_patient_node(&w, 1, "worker", "a", 30);
	dial(&w, 1);
	net_sim_stop(w.s, 0, true);
	run(&w, 9);
	net_sim_stop(w.s, 0, false);
	net_sim_cut(w.s, 2); // and nothing arrives just then
	run(&w, 3);
	net_sim_cut(w.s, 0);
	run(&w, 3);
	assert_int_equal(w.node[0].lost, 0);
	assert_int_equal(w.node[1].lost, 0);
	close_world(&w);
}

TEST(others_are_refused_with_the_reason)
{
	world w;
	open_world(&w, 3, 100);
	open_node(&w, 1, "worker", "another program");
	open_node(&w, 2, "worker", "a");
	w.node[2].own.job = 77;
	open_node(&w, 3, "worker", "a");
	w.node[0].admit = CHOIR_UNSUPPORTED;
	for (int i = 1; i < 4; i++)
		dial(&w, i);
	run(&w, 5);
	assert_int_equal(w.node[0].joined, 0);
	assert_int_equal(w.node[0].lost, 0);
	static const choir_status status[] = { CHOIR_OK, CHOIR_STATE, CHOIR_INVALID,
		CHOIR_UNSUPPORTED };
	static const char *const text[] = { "", "another program", "key", "workers" };
	for (int i = 1; i < 4; i++) {
		assert_int_equal(w.node[i].lost, 1);
		assert_int_equal(w.node[i].lost_status, status[i]);
		assert_text_holds(w.node[i].lost_text, text[i]);
	}
	close_world(&w);
}

// Sends bytes as a stranger, of whom nobody is told, and leaves the connection open.
static uint64_t stranger(world *w, const void *data, size_t bytes)
{
	chi_connections *c = w->node[3].connections;
	uint64_t number;
	size_t sent;
	assert_int_equal(c->table.connect(c->self, "here", &number), CHOIR_OK);
	const choir_connection_part part = { data, bytes };
	assert_int_equal(c->table.send(c->self, number, &part, 1, &sent), CHOIR_OK);
	return number;
}

static bool is_ended(world *w, uint64_t number)
{
	chi_connections *c = w->node[3].connections;
	char rest[4096];
	size_t got = 1;
	while (got > 0)
		if (c->table.receive(c->self, number, rest, sizeof rest, &got) == CHOIR_END)
			return true;
	return false;
}

TEST(strangers_cost_little_and_are_dropped)
{
	world w;
	open_world(&w, 4, 0);
	w.node[3].connections = net_sim_connections(w.s, 3);
	uint64_t number[100];
	const uint64_t before = chi_alloc_bytes();
	for (int i = 0; i < 100; i++) {
		char noise[2000];
		for (size_t k = 0; k < sizeof noise; k++)
			noise[k] = (char) net_sim_draw(w.s, 256);
		number[i] = stranger(&w, noise, i % 3 == 0 ? 0 : sizeof noise); // some say nothing
	}
	open_node(&w, 1, "worker", "a");
	run(&w, 0.2);
	assert_true(chi_alloc_bytes() - before < 1u << 24);
	for (int i = 0; i < 20 && w.node[1].joined == 0; i++) {
		if (w.node[1].peer == NULL)
			dial(&w, 1);
		run(&w, 1);
	}
	assert_int_equal(w.node[1].joined, 1); // the service goes on
	run(&w, 20);
	for (int i = 0; i < 100; i++)
		assert_true(is_ended(&w, number[i]));
	close_world(&w);
}

// A hello that ends at any byte, or has any byte changed, never joins and harms nobody.
TEST(damaged_hellos_are_refused)
{
	world w;
	open_world(&w, 5, 0);
	w.node[3].connections = net_sim_connections(w.s, 3);
	chi_hello own;
	chi_pack p = { 0 };
	unsigned char bytes[4096];
	assert_int_equal(chi_hello_make(&own, "worker", 1, 0, "a"), CHOIR_OK);
	chi_hello_pack(&own, &p);
	chi_net_frame_pack(&(chi_net_frame){ .kind = CHI_NET_HELLO, .bytes = p.bytes }, bytes);
	memcpy(bytes + CHI_NET_HEADER, p.data, p.bytes);
	const size_t size = CHI_NET_HEADER + p.bytes;
	chi_pack_free(&p);
	chi_connections *c = w.node[3].connections;
	for (size_t i = 0; i < size; i++) {
		const uint64_t number = stranger(&w, bytes, i);
		run(&w, 0.2);
		c->table.drop(c->self, number);
		run(&w, 0.2);
	}
	assert_int_equal(w.node[0].joined, 0);
	for (size_t i = 0; i < CHI_NET_HEADER; i++) {
		bytes[i] ^= 0x10;
		const uint64_t number = stranger(&w, bytes, size);
		run(&w, 0.2);
		assert_true(is_ended(&w, number));
		c->table.drop(c->self, number);
		bytes[i] ^= 0x10;
	}
	assert_int_equal(w.node[0].joined, 0);
	const uint64_t number = stranger(&w, bytes, size);
	run(&w, 0.2);
	assert_int_equal(w.node[0].joined, 1); // the hello itself was good
	c->table.drop(c->self, number);
	run(&w, 0.2);
	close_world(&w);
}

TEST(every_allocation_may_fail)
{
	for (uint64_t n = 1;; n++) {
		world w;
		open_world(&w, 6, 300);
		open_node(&w, 1, "worker", "a");
		chi_alloc_fail(n, false);
		chi_peer *p = chi_hub_dial(w.node[1].hub, "here", NULL);
		net_sim_expect(w.s, 0, 0);
		net_sim_expect(w.s, 1, 0);
		const double until = net_sim_now(w.s) + 4;
		for (int i; (i = net_sim_next(w.s, until)) != CHOIR_NONE;)
			if (chi_hub_step(w.node[i].hub, HUGE_VAL) != CHOIR_OK)
				assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
		if (p != NULL && w.node[1].peer != NULL)
			(void) chi_peer_send(w.node[1].peer, KIND, 0, NULL, 0);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		run(&w, 1);
		assert_true(w.node[1].joined == 1 || failed);
		close_world(&w);
		if (!failed)
			break;
	}
}
