// The played cluster: one list of messages on their way, one lock, one clock. Time moves when
// nobody can do anything any more: to the next message that arrives, and where none is on its way
// to the next deadline that somebody waits for.
#include "cluster/sim.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/philox.h"
#include "cluster/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 64, TICKETS = 256 };
static const double LOOK_AGAIN = 2e-3; // real seconds: a wake-up that was missed costs so much

typedef struct message {
	struct message *next;
	int from, to, tag;
	size_t bytes;
	const void *data; // copy, or the sender's until it is received
	void *copy;
	double due;
	uint64_t request; // of the sender; 0: it has been told already
} message;

typedef enum { FREE, SENDING, RECEIVING, DONE } ticket_state;

typedef struct {
	ticket_state state;
	int peer, tag;
	void *data;
	size_t bytes;
	uint64_t order; // of receives: those of the same kind are matched in order
	bool too_long, refused;
} request;

typedef enum { ABSENT, LIVING, LEFT, DEAD } life;

typedef struct {
	life life;
	bool silent, rests;
	int calls_left; // until it dies; 0: it does not
	int waiting; // threads
	double until; // the earliest deadline of those
	uint64_t seen; // events when it began to look
	request request[TICKETS];
} place;

struct sim {
	sim_options o;
	chi_mutex lock;
	chi_cond changed;
	place worker[MAX_WORKERS];
	message *first, **end;
	uint64_t events, sent, orders, delivered, bytes;
	double now;
	double last_event; // real seconds
	int forgotten; // messages that workers who left had begun, and neither waited for nor dropped
	uint64_t cut;
	int aborted_by; // CHOIR_NONE: nobody
	char why[512];
};

static void happened(sim *s)
{
	s->events++;
	s->last_event = chi_clock_now();
	chi_cond_broadcast(&s->changed);
}

static bool is_cut(const sim *s, int a, int b)
{
	return (s->cut >> a & 1) != (s->cut >> b & 1);
}

static double draw_delay(sim *s, int from, int to)
{
	const chi_random_key key = {
		.seed = s->o.seed, .step = s->sent++, .replica = (uint32_t) from, .place = (uint32_t) to
	};
	return s->o.slowest * chi_uniform_double(chi_random_block(&key, 0).word[0], 0);
}

static void free_message(message *m)
{
	chi_free(m->copy);
	chi_free(m);
}

static void unlink_message(sim *s, message **at)
{
	message *m = *at;
	*at = m->next;
	if (s->end == &m->next)
		s->end = at;
}

static void die(sim *s, int worker)
{
	s->worker[worker].life = DEAD;
	for (message **at = &s->first; *at != NULL;) {
		message *m = *at;
		if (m->from != worker || (m->copy != NULL && m->due <= s->now)) {
			at = &m->next;
			continue;
		}
		unlink_message(s, at);
		free_message(m);
	}
	happened(s);
}

// Whether the worker is still there to make a call.
static choir_status count_call(sim *s, int worker)
{
	place *p = &s->worker[worker];
	if (p->life == LIVING && p->calls_left > 0 && --p->calls_left == 0)
		die(s, worker);
	if (p->life == LIVING)
		return CHOIR_OK;
	return choir_fail(CHOIR_CANCELLED, "worker %d was killed", worker);
}

static request *take_ticket(place *p, uint64_t *number)
{
	for (uint64_t i = 0; i < TICKETS; i++)
		if (p->request[i].state == FREE) {
			*number = i + 1;
			return &p->request[i];
		}
	return NULL;
}

static bool copy_bytes(const sim *s, void *to, const void *from, size_t bytes)
{
	if (s->o.copy != NULL)
		return s->o.copy(to, from, bytes);
	memcpy(to, from, bytes);
	return true;
}

static choir_status begin_send(
		sim_argument *self, int to, int tag, const void *data, size_t bytes, uint64_t *number)
{
	sim *s = self->s;
	CHOIR_TRY(count_call(s, self->worker));
	request *t = take_ticket(&s->worker[self->worker], number);
	message *m = t == NULL ? NULL : chi_alloc(sizeof *m);
	if (m == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "a message");
	const bool eager = bytes <= s->o.eager;
	if (eager && bytes > 0 && (m->copy = chi_alloc(bytes)) == NULL) {
		chi_free(m);
		return CHOIR_NO_MEMORY;
	}
	if (m->copy != NULL && !copy_bytes(s, m->copy, data, bytes)) {
		free_message(m);
		return choir_fail(CHOIR_IO, "the memory of a message was refused");
	}
	*t = (request){ .state = eager ? DONE : SENDING, .peer = to, .tag = tag, .bytes = bytes };
	m->from = self->worker, m->to = to, m->tag = tag, m->bytes = bytes;
	m->data = eager ? m->copy : data;
	m->request = eager ? 0 : *number;
	m->due = s->now + draw_delay(s, self->worker, to);
	*s->end = m;
	s->end = &m->next;
	happened(s);
	return CHOIR_OK;
}

static choir_status sim_send(
		void *self_, int to, int tag, const void *data, size_t bytes, uint64_t *number)
{
	sim_argument *self = self_;
	chi_mutex_lock(&self->s->lock);
	const choir_status status = begin_send(self, to, tag, data, bytes, number);
	chi_mutex_unlock(&self->s->lock);
	return status;
}

static choir_status sim_receive(
		void *self_, int from, int tag, void *data, size_t capacity, uint64_t *number)
{
	sim_argument *self = self_;
	sim *s = self->s;
	chi_mutex_lock(&s->lock);
	choir_status status = count_call(s, self->worker);
	request *t = status == CHOIR_OK ? take_ticket(&s->worker[self->worker], number) : NULL;
	if (t != NULL)
		*t = (request){ .state = RECEIVING,
			.peer = from,
			.tag = tag,
			.data = data,
			.bytes = capacity,
			.order = s->orders++ };
	else if (status == CHOIR_OK)
		status = choir_fail(CHOIR_NO_MEMORY, "a request");
	chi_mutex_unlock(&s->lock);
	return status;
}

// The oldest receive of a worker that a message is for.
static request *receiver(place *p, const message *m)
{
	request *oldest = NULL;
	for (int i = 0; i < TICKETS; i++) {
		request *t = &p->request[i];
		if (t->state == RECEIVING && t->peer == m->from && t->tag == m->tag &&
				(oldest == NULL || t->order < oldest->order))
			oldest = t;
	}
	return oldest;
}

// Whether an earlier message of the same ends and tag is still on its way.
static bool is_behind(const sim *s, const message *m)
{
	for (const message *e = s->first; e != m; e = e->next)
		if (e->from == m->from && e->to == m->to && e->tag == m->tag)
			return true;
	return false;
}

static void hand_over(sim *s, message *m, request *t)
{
	t->too_long = m->bytes > t->bytes;
	if (!t->too_long && m->bytes > 0)
		t->refused = !copy_bytes(s, t->data, m->data, m->bytes);
	t->bytes = m->bytes;
	t->state = DONE;
	if (m->request != 0)
		s->worker[m->from].request[m->request - 1].state = DONE;
	s->delivered++;
	s->bytes += m->bytes;
}

// Delivers what has arrived at a worker.
static void deliver(sim *s, int worker)
{
	for (message **at = &s->first; *at != NULL;) {
		message *m = *at;
		request *t = NULL;
		if (m->to == worker && m->due <= s->now && !is_cut(s, m->from, m->to) && !is_behind(s, m))
			t = receiver(&s->worker[worker], m);
		if (t == NULL) {
			at = &m->next;
			continue;
		}
		hand_over(s, m, t);
		unlink_message(s, at);
		free_message(m);
		happened(s);
	}
}

static bool is_on_its_way(const sim *s, int from, int to, int tag)
{
	for (const message *m = s->first; m != NULL; m = m->next)
		if (m->from == from && m->to == to && m->tag == tag)
			return true;
	return false;
}

// What a worker learns of one it waits for.
static choir_status look_at_peer(sim *s, const request *t, int worker)
{
	const place *peer = &s->worker[t->peer];
	if (s->aborted_by != CHOIR_NONE && s->aborted_by != worker &&
			!is_cut(s, s->aborted_by, worker))
		return choir_fail(CHOIR_CANCELLED, "worker %d stopped: %s", s->aborted_by, s->why);
	if (peer->life == DEAD && !peer->silent && !is_cut(s, t->peer, worker))
		return choir_fail(CHOIR_PEER_LOST, "worker %d is gone", t->peer);
	if (peer->life == LEFT && !is_cut(s, t->peer, worker) &&
			(t->state == SENDING || !is_on_its_way(s, t->peer, worker, t->tag)))
		return choir_fail(CHOIR_PEER_LOST, "worker %d has left", t->peer);
	return CHOIR_OK;
}

static choir_status sim_test(void *self_, uint64_t number, bool *done, size_t *bytes)
{
	sim_argument *self = self_;
	sim *s = self->s;
	chi_mutex_lock(&s->lock);
	place *p = &s->worker[self->worker];
	deliver(s, self->worker);
	request *t = &p->request[number - 1];
	choir_status status = CHOIR_OK;
	*done = t->state == DONE;
	if (p->life != LIVING)
		status = choir_fail(CHOIR_CANCELLED, "worker %d was killed", self->worker);
	else if (*done && t->too_long)
		status = choir_fail(CHOIR_CORRUPT, "a message of %zu bytes is too long", t->bytes);
	else if (*done && t->refused)
		status = choir_fail(CHOIR_IO, "the memory of a message was refused");
	else if (!*done)
		status = look_at_peer(s, t, self->worker);
	*bytes = t->bytes;
	if (status == CHOIR_OK && *done)
		t->state = FREE;
	chi_mutex_unlock(&s->lock);
	return status;
}

static void sim_drop(void *self_, uint64_t number)
{
	sim_argument *self = self_;
	sim *s = self->s;
	chi_mutex_lock(&s->lock);
	for (message **at = &s->first; *at != NULL; at = &(*at)->next)
		if ((*at)->from == self->worker && (*at)->request == number) {
			message *m = *at;
			unlink_message(s, at);
			free_message(m);
			break;
		}
	s->worker[self->worker].request[number - 1].state = FREE;
	chi_mutex_unlock(&s->lock);
}

static void sim_abort(void *self_, const char *why)
{
	sim_argument *self = self_;
	sim *s = self->s;
	chi_mutex_lock(&s->lock);
	if (s->aborted_by == CHOIR_NONE && s->worker[self->worker].life == LIVING) {
		s->aborted_by = self->worker;
		snprintf(s->why, sizeof s->why, "%s", why);
		happened(s);
	}
	chi_mutex_unlock(&s->lock);
}

static double virtual_now(void *self)
{
	return sim_now(((sim_argument *) self)->s);
}

// Time moves on: to the next arrival, or if there is none to the next deadline.
static void move_on(sim *s)
{
	bool all_wait = true;
	double arrival = HUGE_VAL, deadline = HUGE_VAL;
	for (int i = 0; i < s->o.workers; i++) {
		const place *p = &s->worker[i];
		all_wait &= p->life == LEFT || p->life == DEAD || p->rests ||
				(p->waiting > 0 && p->seen == s->events);
		if (p->waiting > 0 && p->until < deadline)
			deadline = p->until;
	}
	for (const message *m = s->first; m != NULL; m = m->next)
		if (m->due > s->now && m->due < arrival && !is_cut(s, m->from, m->to))
			arrival = m->due;
	const bool quiet = s->o.quiet > 0 && chi_clock_now() - s->last_event > s->o.quiet;
	if (!all_wait && !quiet)
		return;
	if (arrival < deadline)
		s->now = arrival;
	else if (deadline < HUGE_VAL && (quiet || s->o.quiet == 0))
		s->now = deadline > s->now ? deadline : s->now;
	else
		return;
	happened(s);
}

static void sim_pause(void *self_, int turn, double until)
{
	sim_argument *self = self_;
	sim *s = self->s;
	(void) turn;
	chi_mutex_lock(&s->lock);
	place *p = &s->worker[self->worker];
	// Only one that has looked at all it waits for since the last event has nothing to do.
	if (p->seen != s->events) {
		p->seen = s->events;
	} else {
		p->until = p->waiting++ == 0 || until < p->until ? until : p->until;
		move_on(s);
		if (p->seen == s->events)
			chi_cond_wait(&s->changed, &s->lock, chi_clock_deadline(LOOK_AGAIN));
		p->waiting--;
	}
	chi_mutex_unlock(&s->lock);
}

static choir_status sim_open(void *self_, const void *argument)
{
	sim_argument *self = self_;
	*self = *(const sim_argument *) argument;
	sim *s = self->s;
	chi_mutex_lock(&s->lock);
	s->worker[self->worker].life = LIVING;
	happened(s);
	chi_mutex_unlock(&s->lock);
	return CHOIR_OK;
}

static void sim_close(void *self_, double seconds)
{
	sim_argument *self = self_;
	sim *s = self->s;
	(void) seconds;
	chi_mutex_lock(&s->lock);
	place *p = &s->worker[self->worker];
	if (p->life == LIVING)
		p->life = LEFT;
	for (int i = 0; i < TICKETS; i++)
		s->forgotten += p->request[i].state != FREE;
	happened(s);
	chi_mutex_unlock(&s->lock);
}

static int sim_worker(const void *self)
{
	return ((const sim_argument *) self)->worker;
}

static int sim_workers(const void *self)
{
	return ((const sim_argument *) self)->s->o.workers;
}

static void sim_describe(const void *self, char *text, size_t size)
{
	snprintf(text, size, "%d workers in one process", sim_workers(self));
}

static bool sim_takes_memory_of(const void *self, const char *kind)
{
	const sim_options *o = &((const sim_argument *) self)->s->o;
	return o->kind != NULL && strcmp(o->kind, kind) == 0;
}

const choir_transport_table sim_table = {
	.size = sizeof sim_table,
	.version = CHOIR_TABLE_VERSION,
	.name = "sim",
	.self_size = sizeof(sim_argument),
	.open = sim_open,
	.close = sim_close,
	.worker = sim_worker,
	.workers = sim_workers,
	.describe = sim_describe,
	.send = sim_send,
	.receive = sim_receive,
	.test = sim_test,
	.drop = sim_drop,
	.abort = sim_abort,
	.now = virtual_now,
	.pause = sim_pause,
	.takes_memory_of = sim_takes_memory_of,
	.eager = 1500, // odd, so that the parts of a rest are of all sizes
};

sim *sim_new(const sim_options *o)
{
	sim *s = o->workers < 1 || o->workers > MAX_WORKERS ? NULL : chi_alloc(sizeof *s);
	if (s == NULL)
		return NULL;
	s->o = *o;
	s->end = &s->first;
	s->aborted_by = CHOIR_NONE;
	s->last_event = chi_clock_now();
	chi_mutex_init(&s->lock, CHI_RANK_DEVICE, "sim");
	chi_cond_init(&s->changed);
	return s;
}

void sim_free(sim *s)
{
	if (s == NULL)
		return;
	if (s->forgotten > 0) { // a transport would still write to their memory
		fprintf(stderr, "sim: %d messages were forgotten on their way\n", s->forgotten);
		abort();
	}
	for (message *m = s->first, *next; m != NULL; m = next) {
		next = m->next;
		free_message(m);
	}
	chi_cond_destroy(&s->changed);
	chi_mutex_destroy(&s->lock);
	chi_free(s);
}

choir_cluster *sim_cluster(sim *s, int worker, const choir_cluster_options *o)
{
	const sim_argument self = { s, worker };
	const choir_cluster_options none = { .size = sizeof none };
	return chi_cluster_open(&sim_table, &self, o != NULL ? o : &none);
}

void sim_kill(sim *s, int worker, int n, bool silent)
{
	chi_mutex_lock(&s->lock);
	s->worker[worker].calls_left = n;
	s->worker[worker].silent = silent;
	chi_mutex_unlock(&s->lock);
}

void sim_cut(sim *s, uint64_t mask)
{
	chi_mutex_lock(&s->lock);
	s->cut = mask;
	happened(s);
	chi_mutex_unlock(&s->lock);
}

void sim_rest(sim *s, int worker, bool rests)
{
	chi_mutex_lock(&s->lock);
	s->worker[worker].rests = rests;
	happened(s);
	chi_mutex_unlock(&s->lock);
}

double sim_now(sim *s)
{
	chi_mutex_lock(&s->lock);
	const double now = s->now;
	chi_mutex_unlock(&s->lock);
	return now;
}

uint64_t sim_messages(sim *s)
{
	chi_mutex_lock(&s->lock);
	const uint64_t delivered = s->delivered;
	chi_mutex_unlock(&s->lock);
	return delivered;
}

uint64_t sim_bytes(sim *s)
{
	chi_mutex_lock(&s->lock);
	const uint64_t bytes = s->bytes;
	chi_mutex_unlock(&s->lock);
	return bytes;
}
