// A coordinator, servers and workers in the simulation: whatever dies or stops whenever, each
// closure's changes are made exactly once. Planted faults are found.
#include "coordinator/dispatch.h"
#include "coordinator/ps_requests.h"

#include "net/net_sim.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVERS = 2, WORKERS = 3, NODES = NET_SIM_NODES, CLOSURES = 8, CHANGES = 3 };

typedef enum { NOTHING, NO_FENCE, NO_MARKS, FORGET_EARLY, REQUEUE_AT_BACK, NO_INCARNATION } plant;
enum { PLANTS = 6 };

// A worker: makes the changes of its closures one after another.
typedef struct {
	uint64_t closures[4]; // given, in order
	int n, change;
	bool waits; // for an answer
	double until; // computes until then
	int connected; // servers
	chi_peer *coordinator, *server[SERVERS];
	bool ghost; // given up, and does not know it
	bool ended;
} fake_worker;

typedef struct world world;
typedef struct {
	world *w;
	int number;
	chi_connections *connections;
	chi_hub *hub;
	chi_hello own;
	chi_server server;
	fake_worker worker;
	bool used, gone;
} node;

struct world {
	net_sim *s;
	plant plant;
	chi_dispatch dispatch;
	node node[NODES];
	int used;
	uint64_t incarnations;
	int count[CLOSURES + 1][CHANGES];
	chi_closure *closure[CLOSURES];
	int kills, runs;
	uint64_t order; // the last closure that was given for the first time
	bool disordered, overloaded;
};

// ---- Servers

static choir_status change(void *user, uint16_t kind, chi_unpack *u)
{
	node *n = user;
	(void) kind;
	const uint64_t closure = chi_unpack_u64(u), number = chi_unpack_u64(u);
	CHOIR_TRY(chi_unpack_end(u, "CHANGE"));
	n->w->count[closure][number]++;
	return CHOIR_OK;
}

static choir_status server_frame(
		void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	node *n = user;
	const plant p = n->w->plant;
	if (p == NO_FENCE && f->kind == CHI_MESSAGE_FENCE)
		return CHOIR_OK;
	if (p == NO_INCARNATION && f->kind == CHI_MESSAGE_FENCE) // fences somebody else
		return chi_exactly_once_fence(&n->server.once, 1);
	if (p == NO_MARKS)
		chi_exactly_once_free(&n->server.once);
	return chi_server_frame(&n->server, peer, f, payload);
}

static choir_status server_admit(void *user, chi_peer *peer, chi_pack *welcome)
{
	return chi_server_admit(&((node *) user)->server, peer, welcome);
}

static void server_joined(void *user, chi_peer *peer)
{
	chi_server_joined(&((node *) user)->server, peer);
}

static void server_lost(void *user, chi_peer *peer, choir_status status)
{
	chi_server_lost(&((node *) user)->server, peer, status);
}

// ---- Workers

static void push(node *n)
{
	fake_worker *w = &n->worker;
	if (w->n == 0 || w->waits || w->connected < SERVERS || net_sim_now(n->w->s) < w->until)
		return;
	chi_pack p = { 0 };
	const uint64_t closure = w->closures[0];
	chi_pack_u64(&p, closure);
	if (w->change == CHANGES && w->ghost) {
		w->ended = true;
		chi_pack_free(&p);
		return;
	}
	if (w->change == CHANGES) {
		chi_pack_u32(&p, CHOIR_OK);
		chi_pack_text(&p, "");
		chi_pack_bytes(&p, "", 0);
		for (int i = 0; i < 4; i++) // no pushes, but changes
			chi_pack_u64(&p, i < 3 ? 0 : CHANGES);
		(void) chi_peer_send_pack(w->coordinator, CHI_MESSAGE_DONE, 0, &p);
		chi_pack_free(&p);
		w->change = 0;
		w->n--;
		memmove(w->closures, w->closures + 1, sizeof w->closures - sizeof w->closures[0]);
		push(n);
		return;
	}
	const uint64_t number = (uint64_t) w->change;
	chi_pack_u64(&p, number);
	chi_pack_u64(&p, 0); // it has read no values
	chi_pack_u64(&p, closure);
	chi_pack_u64(&p, number);
	w->waits = true;
	(void) chi_peer_send_pack(w->server[w->change % SERVERS], CHI_MESSAGE_PUSH, 0, &p);
	chi_pack_free(&p);
}

static void compute(node *n)
{
	n->worker.until = net_sim_now(n->w->s) + (double) net_sim_draw(n->w->s, 1000) * 1e-3;
}

static choir_status worker_frame(
		void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	node *n = user;
	fake_worker *w = &n->worker;
	chi_unpack u = { .data = payload, .bytes = (size_t) f->bytes };
	if (peer == w->coordinator) {
		n->w->runs++;
		w->closures[w->n++] = chi_unpack_u64(&u);
		n->w->overloaded |= w->n > 2;
	} else {
		w->waits = false;
		w->change++;
	}
	compute(n);
	return CHOIR_OK;
}

static void worker_joined(void *user, chi_peer *peer)
{
	node *n = user;
	fake_worker *w = &n->worker;
	if (strcmp(peer->handshake.peer.role, "ps") == 0) {
		w->server[peer->handshake.peer.index] = peer;
		w->connected++;
		return;
	}
	w->coordinator = peer;
	chi_unpack u = { .data = peer->handshake.welcome, .bytes = peer->handshake.welcome_bytes };
	const uint32_t servers = chi_unpack_u32(&u);
	for (uint32_t i = 0; i < servers; i++) {
		char address[64];
		chi_unpack_text(&u, address, sizeof address);
		if (chi_hub_dial(n->hub, address, NULL) == NULL)
			w->ended = true;
	}
}

static void worker_lost(void *user, chi_peer *peer, choir_status status)
{
	fake_worker *w = &((node *) user)->worker;
	(void) status;
	w->ghost = peer == w->coordinator && w->n > 0;
	w->coordinator = w->ghost ? NULL : w->coordinator;
	w->ended = !w->ghost;
}

// ---- The coordinator

static void coordinator_lost(void *user, chi_peer *peer, choir_status status)
{
	node *n = user;
	world *w = n->w;
	chi_closures *q = &w->dispatch.closures;
	const int number = peer->handshake.peer.index;
	if (w->plant == FORGET_EARLY)
		for (chi_closure *c = q->worker[number].has.first; c != NULL; c = c->next)
			for (int i = 0; i < SERVERS; i++) {
				chi_pack p = { 0 };
				chi_pack_u64(&p, c->id);
				(void) chi_peer_send_pack(w->dispatch.server[i], CHI_MESSAGE_FORGET, 0, &p);
				chi_pack_free(&p);
			}
	if (w->plant == REQUEUE_AT_BACK && q->worker[number].has.n > 0) {
		chi_closure_list *waiting = &q->waiting;
		chi_closure *first = waiting->first;
		chi_dispatch_lost(&w->dispatch, peer, status);
		while (first != NULL && waiting->first != first && waiting->last != waiting->first) {
			chi_closure *c = waiting->first;
			waiting->first = c->next;
			c->next->previous = NULL;
			c->next = NULL;
			c->previous = waiting->last;
			waiting->last->next = c;
			waiting->last = c;
		}
		return;
	}
	chi_dispatch_lost(&w->dispatch, peer, status);
}

static choir_status coordinator_admit(void *user, chi_peer *peer, chi_pack *welcome)
{
	return chi_dispatch_admit(&((node *) user)->w->dispatch, peer, welcome);
}

static choir_status coordinator_frame(
		void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	return chi_dispatch_frame(&((node *) user)->w->dispatch, peer, f, payload);
}

// Gives closures, and checks their order: a closure that was given before goes before others.
static void turn(world *w)
{
	const chi_closure_list *waiting = &w->dispatch.closures.waiting;
	for (const chi_closure *c = waiting->first; c != NULL; c = c->next)
		w->disordered |= c->previous != NULL && c->attempt > 0 && c->previous->attempt == 0;
	chi_dispatch_turn(&w->dispatch);
}

// ---- The world

static node *open_node(world *w, const char *role, const chi_hub_owner *owner)
{
	int i = 0;
	while (i < w->used && !w->node[i].gone)
		i++;
	assert_true(i < NODES);
	w->used += i == w->used;
	node *n = &w->node[i];
	*n = (node){ .w = w, .number = i, .used = true };
	chi_hub_owner own = *owner;
	own.user = n;
	n->connections = net_sim_connections(w->s, i);
	n->own = (chi_hello){ .index = CHOIR_NONE, .incarnation = 100 + w->incarnations++ };
	snprintf(n->own.role, sizeof n->own.role, "%s", role);
	if (n->connections != NULL)
		n->hub = chi_hub_new(n->connections, &n->own, &own,
				&(chi_hub_options){ .heartbeat = 2, .lost_after = 20, .max = 1 << 16 });
	net_sim_expect(w->s, n->number, 0);
	if (n->hub != NULL)
		return n;
	chi_connections_free(n->connections);
	n->gone = true;
	return NULL;
}

static void open_worker(world *w)
{
	static const chi_hub_owner owner = { NULL, NULL, worker_joined, worker_frame, worker_lost };
	node *n = NULL;
	while (n == NULL) // an allocation may fail once
		n = open_node(w, "worker", &owner);
	if (chi_hub_dial(n->hub, "coordinator", NULL) == NULL)
		n->worker.ended = true;
}

static void close_node(world *w, node *n)
{
	if (!n->used || n->gone)
		return;
	chi_hub_free(n->hub);
	chi_server_free(&n->server);
	chi_connections_free(n->connections);
	net_sim_kill(w->s, n->number);
	n->gone = true;
}

static void open_world(world *w, uint64_t seed, plant p)
{
	static const chi_hub_owner coordinator = { NULL, coordinator_admit, NULL, coordinator_frame,
		coordinator_lost };
	static const chi_hub_owner server = { NULL, server_admit, server_joined, server_frame,
		server_lost };
	char bound[64];
	*w = (world){ .plant = p };
	w->s = net_sim_new(&(net_sim_options){ .seed = seed, .slowest = 0.3, .slow_nodes = SERVERS });
	chi_dispatch_init(&w->dispatch, SERVERS, 2, 100);
	node *c = open_node(w, "coordinator", &coordinator);
	assert_int_equal(chi_hub_listen(c->hub, "coordinator", bound, sizeof bound), CHOIR_OK);
	for (int i = 0; i < SERVERS; i++) {
		node *n = open_node(w, "ps", &server);
		snprintf(n->own.address, sizeof n->own.address, "server %d", i);
		n->own.index = i;
		chi_server_init(&n->server, &(chi_server_model){ .user = n, .change = change });
		assert_int_equal(chi_hub_listen(n->hub, n->own.address, bound, sizeof bound), CHOIR_OK);
		assert_non_null(chi_hub_dial(n->hub, "coordinator", NULL));
	}
	for (int i = 0; i < CLOSURES; i++) {
		w->closure[i] = chi_closure_new(0, &(chi_pack){ 0 });
		chi_closures_add(&w->dispatch.closures, w->closure[i]);
	}
}

// The coordinator gives a worker up that lives on: it stops it for a while, or cuts its link.
static void harm(world *w)
{
	const int first = 1 + SERVERS;
	const int i = first + (int) net_sim_draw(w->s, (uint64_t) (w->used - first));
	node *n = &w->node[i];
	if (w->kills == 0 || n->gone || n->worker.ended)
		return;
	w->kills--;
	chi_peer *peer = n->worker.coordinator;
	if (net_sim_draw(w->s, 2) == 0 || peer == NULL) {
		const bool ghost = n->worker.ghost;
		close_node(w, n);
		if (ghost)
			return;
	} else { // suspected wrongly; the worker does not know it yet
		const int number = peer->handshake.index;
		if ((size_t) number < w->dispatch.closures.workers && w->dispatch.worker[number] != NULL) {
			chi_peer *suspect = w->dispatch.worker[number];
			if (suspect->gone || suspect->ending)
				return;
			choir_fail(CHOIR_TIMEOUT, "suspected");
			coordinator_lost(&w->node[0], suspect, CHOIR_TIMEOUT);
			chi_peer_end(suspect, CHOIR_PEER_LOST, "given up");
			net_sim_expect(w->s, 0, 0);
		}
	}
	open_worker(w);
}

static void step(world *w, int i)
{
	node *n = &w->node[i];
	const bool computes = i > SERVERS && n->worker.until > net_sim_now(w->s);
	if (chi_hub_step(n->hub, computes ? n->worker.until : HUGE_VAL) != CHOIR_OK)
		assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
	if (i == 0) {
		turn(w);
	} else if (i > SERVERS && n->worker.ended) {
		const bool ghost = n->worker.ghost;
		close_node(w, n);
		if (!ghost)
			open_worker(w); // it comes back
	} else if (i > SERVERS) {
		push(n);
	}
}

static bool is_done(const world *w)
{
	return chi_closures_idle(&w->dispatch.closures);
}

static void close_world(world *w)
{
	chi_dispatch_free(&w->dispatch);
	for (int i = 0; i < CLOSURES; i++)
		chi_closure_drop(w->closure[i]);
	for (int i = 0; i < w->used; i++)
		close_node(w, &w->node[i]);
	net_sim_free(w->s);
}

// Runs a random schedule. NULL, or what is wrong.
static const char *run_schedule(uint64_t seed, plant p, int *runs)
{
	static world w;
	static char wrong[600];
	open_world(&w, seed, p);
	for (int i; net_sim_now(w.s) < 2 && (i = net_sim_next(w.s, 2)) != CHOIR_NONE;)
		step(&w, i);
	assert_true(chi_dispatch_ready(&w.dispatch));
	for (int i = 0; i < WORKERS; i++)
		open_worker(&w);
	w.kills = 4;
	while (!is_done(&w) && net_sim_now(w.s) < 1000) {
		const int i = net_sim_next(w.s, 1000);
		if (i == CHOIR_NONE)
			break;
		step(&w, i);
		if (net_sim_draw(w.s, 60) == 0)
			harm(&w);
	}
	wrong[0] = '\0';
	if (!is_done(&w))
		snprintf(wrong, sizeof wrong, "not finished");
	// Ghosts go on for a while.
	const double until = net_sim_now(w.s) + 5;
	for (int i; (i = net_sim_next(w.s, until)) != CHOIR_NONE;)
		step(&w, i);
	for (int i = 1; i <= CLOSURES; i++)
		for (int k = 0; k < CHANGES; k++)
			if (w.count[i][k] != 1)
				snprintf(wrong, sizeof wrong, "closure %d: change %d was made %d times", i, k,
						w.count[i][k]);
	for (int i = 0; i < CLOSURES; i++)
		if (w.closure[i]->status != CHOIR_OK)
			snprintf(wrong, sizeof wrong, "closure %d: %s", i + 1, w.closure[i]->error);
	if (w.disordered)
		snprintf(wrong, sizeof wrong, "a retry waits behind a new closure");
	if (w.overloaded)
		snprintf(wrong, sizeof wrong, "a worker has more than two closures");
	*runs += w.runs;
	close_world(&w);
	return wrong[0] == '\0' ? NULL : wrong;
}

// spec: D18, 2.16
TEST(changes_happen_once_in_random_schedules)
{
	const char *more = getenv("CHOIR_SCHEDULES");
	const uint64_t schedules = more != NULL ? strtoull(more, NULL, 10) : 150;
	int runs = 0;
	for (uint64_t seed = 0; seed < schedules; seed++) {
		const char *wrong = run_schedule(seed, NOTHING, &runs);
		if (wrong != NULL)
			fail_msg("seed %llu: %s", (unsigned long long) seed, wrong);
	}
	assert_true((uint64_t) runs > schedules * CLOSURES); // some closures ran again
}

TEST(planted_faults_are_found)
{
	for (int p = NO_FENCE; p < PLANTS; p++) {
		int runs = 0;
		bool found = false;
		for (uint64_t seed = 0; seed < 2000 && !found; seed++)
			found = run_schedule(seed, (plant) p, &runs) != NULL;
		if (!found)
			fail_msg("plant %d was not found", p);
	}
}

// Whatever fails, no change is made twice, and nothing leaks or hangs.
TEST(every_allocation_may_fail)
{
	static world w;
	uint64_t step_size = 1;
	for (uint64_t n = 1;; n += step_size) {
		open_world(&w, 3, NOTHING);
		for (int i; net_sim_now(w.s) < 2 && (i = net_sim_next(w.s, 2)) != CHOIR_NONE;)
			step(&w, i);
		for (int i = 0; i < WORKERS; i++)
			open_worker(&w);
		chi_alloc_fail(n, false);
		while (!is_done(&w) && net_sim_now(w.s) < 100) {
			const int i = net_sim_next(w.s, 100);
			if (i != CHOIR_NONE)
				step(&w, i);
			if (chi_alloc_failed())
				chi_alloc_fail(0, false);
		}
		const bool failed = choir_error_status() == CHOIR_NO_MEMORY;
		chi_alloc_fail(0, false);
		chi_error_clear();
		assert_true(is_done(&w));
		for (int i = 1; i <= CLOSURES; i++)
			for (int k = 0; k < CHANGES; k++)
				assert_true(w.count[i][k] <= 1);
		close_world(&w);
		step_size = 1 + n / 20;
		if (!failed && n > 500)
			break;
	}
}
