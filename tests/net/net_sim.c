// Each direction of a connection is a buffer, and a list of pieces with the times of their
// arrival.
#include "net/net_sim.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ENDS = 8192, PIECES = 512, WAITS = 64 };

typedef struct {
	double due;
	size_t bytes;
} piece;

// Bytes on their way to an end.
typedef struct {
	unsigned char *data;
	size_t begin, bytes, capacity;
	piece pieces[PIECES];
	int first, count;
	double last; // time of the last piece
	bool closed; // after last
} pipe_in;

typedef struct {
	bool used, listens, refused;
	int node, other; // of the peer
	uint64_t peer; // 0: dropped
	double factor; // of delays
	double from; // a new connection: acceptable from this time on
	uint64_t listener; // it waits to be accepted there
	char address[64];
	pipe_in in;
} end;

typedef struct {
	double until;
	choir_connection_wait waits[WAITS];
	int n;
	bool stopped, dead, woken;
	double next; // when it has something to do
	bool stale; // next is unknown
} node_state;

struct net_sim {
	net_sim_options o;
	uint64_t random;
	double now;
	bool moves;
	uint32_t cut;
	node_state node[NET_SIM_NODES];
	end *ends[ENDS];
	uint64_t count;
};

typedef struct {
	net_sim *s;
	int node;
} self_of;

uint64_t net_sim_draw(net_sim *s, uint64_t below)
{
	s->random += 0x9e3779b97f4a7c15u;
	uint64_t z = s->random;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % below;
}

static double delay(net_sim *s, const end *e)
{
	return s->o.slowest * e->factor * (double) net_sim_draw(s, 1 << 20) / (1 << 20);
}

static end *at(net_sim *s, uint64_t number)
{
	return s->ends[number - 1];
}

static bool is_cut(const net_sim *s, int a, int b)
{
	return (s->cut >> a & 1) != (s->cut >> b & 1);
}

static end *add(net_sim *s, int node, uint64_t *number)
{
	uint64_t i = 0;
	while (i < s->count && s->ends[i]->used)
		i++;
	if (i == ENDS) {
		choir_fail(CHOIR_IO, "sim: too many ends");
		return NULL;
	}
	if (i == s->count && (s->ends[i] = chi_alloc(sizeof(end))) == NULL)
		return NULL;
	s->count += i == s->count;
	end *e = s->ends[i];
	*e = (end){ .used = true, .node = node };
	*number = i + 1;
	return e;
}

static void note(net_sim *s, int node)
{
	s->node[node].stale = true;
}

static void close_in(net_sim *s, uint64_t to)
{
	note(s, at(s, to)->node);
	pipe_in *in = &at(s, to)->in;
	in->closed = true;
	in->last = fmax(in->last, s->now + delay(s, at(s, to)));
}

static void sim_drop(void *self, uint64_t number)
{
	net_sim *s = ((self_of *) self)->s;
	end *e = at(s, number);
	for (uint64_t i = 0; i < s->count && e->listens; i++)
		if (s->ends[i]->used && s->ends[i]->listener == number)
			sim_drop(self, i + 1);
	if (e->peer != 0) {
		close_in(s, e->peer);
		at(s, e->peer)->peer = 0;
	}
	chi_free(e->in.data);
	*e = (end){ 0 };
}

static choir_status sim_open(void *self, const void *argument)
{
	*(self_of *) self = *(const self_of *) argument;
	return CHOIR_OK;
}

static void sim_close(void *self)
{
	self_of *own = self;
	for (uint64_t i = 0; i < own->s->count; i++)
		if (own->s->ends[i]->used && own->s->ends[i]->node == own->node)
			sim_drop(self, i + 1);
}

static uint64_t find_listener(const net_sim *s, const char *address)
{
	for (uint64_t i = 0; i < s->count; i++)
		if (s->ends[i]->used && s->ends[i]->listens && strcmp(s->ends[i]->address, address) == 0)
			return i + 1;
	return 0;
}

static choir_status sim_listen(
		void *self, const char *address, uint64_t *number, char *bound, size_t size)
{
	self_of *own = self;
	if (find_listener(own->s, address) != 0)
		return choir_fail(CHOIR_STATE, "%s: the address is in use", address);
	end *e = add(own->s, own->node, number);
	if (e == NULL)
		return choir_error_status();
	e->listens = true;
	snprintf(e->address, sizeof e->address, "%s", address);
	snprintf(bound, size, "%s", address);
	return CHOIR_OK;
}

static choir_status sim_connect(void *self, const char *address, uint64_t *number)
{
	self_of *own = self;
	net_sim *s = own->s;
	uint64_t other;
	const uint64_t listener = find_listener(s, address);
	*number = 0;
	if (listener == 0)
		return choir_fail(CHOIR_NOT_FOUND, "%s: nobody listens there", address);
	end *a = add(s, own->node, number);
	end *b = a == NULL ? NULL : add(s, at(s, listener)->node, &other);
	if (b == NULL) {
		if (a != NULL)
			sim_drop(self, *number);
		return choir_error_status();
	}
	a->peer = other;
	a->other = b->node;
	b->peer = *number;
	b->other = a->node;
	b->listener = listener;
	note(s, b->node);
	const bool slow = b->node > 0 && b->node <= s->o.slow_nodes && net_sim_draw(s, 3) == 0;
	a->factor = b->factor = slow ? 6 : 1;
	b->from = s->now + delay(s, b);
	snprintf(a->address, sizeof a->address, "%s", address);
	snprintf(b->address, sizeof b->address, "node %d", own->node);
	return CHOIR_OK;
}

static bool is_waiting(const net_sim *s, uint64_t i, uint64_t listener)
{
	const end *e = s->ends[i];
	return e->used && e->listener == listener;
}

static choir_status sim_accept(void *self, uint64_t listener, uint64_t *number)
{
	net_sim *s = ((self_of *) self)->s;
	*number = 0;
	for (uint64_t i = 0; i < s->count; i++)
		if (is_waiting(s, i, listener) && s->ends[i]->from <= s->now) {
			s->ends[i]->listener = 0;
			*number = i + 1;
			break;
		}
	return CHOIR_OK;
}

static size_t window(const net_sim *s)
{
	return s->o.window > 0 ? s->o.window : 65536;
}

static choir_status put(net_sim *s, end *e, const char *data, size_t bytes)
{
	pipe_in *in = &e->in;
	if (in->begin > 0 && in->begin + in->bytes + bytes > in->capacity) {
		memmove(in->data, in->data + in->begin, in->bytes);
		in->begin = 0;
	}
	if (!chi_grow(&in->data, &in->capacity, in->begin + in->bytes + bytes, 1))
		return CHOIR_NO_MEMORY;
	memcpy(in->data + in->begin + in->bytes, data, bytes);
	in->bytes += bytes;
	note(s, e->node);
	in->last = fmax(in->last, s->now + delay(s, e));
	in->pieces[(in->first + in->count++) % PIECES] = (piece){ in->last, bytes };
	return CHOIR_OK;
}

static choir_status sim_send(
		void *self, uint64_t number, const choir_connection_part parts[], int n, size_t *sent)
{
	net_sim *s = ((self_of *) self)->s;
	end *e = at(s, number);
	*sent = 0;
	if (e->peer == 0) { // it has closed
		for (int i = 0; i < n; i++)
			*sent += parts[i].bytes;
		return CHOIR_OK;
	}
	pipe_in *in = &at(s, e->peer)->in;
	for (int i = 0; i < n; i++)
		for (size_t done = 0; done < parts[i].bytes;) {
			const size_t left = parts[i].bytes - done;
			const size_t room = in->bytes < window(s) ? window(s) - in->bytes : 0;
			size_t bytes = left < room ? left : room;
			if (s->o.piece > 0 && bytes > 0)
				bytes = 1 + net_sim_draw(s, bytes < s->o.piece ? bytes : s->o.piece);
			if (bytes == 0 || in->count == PIECES)
				return CHOIR_OK;
			CHOIR_TRY(put(s, at(s, e->peer), (const char *) parts[i].data + done, bytes));
			done += bytes;
			*sent += bytes;
		}
	return CHOIR_OK;
}

static bool arrives(const net_sim *s, const end *e, double *due)
{
	const pipe_in *in = &e->in;
	if (is_cut(s, e->node, e->other))
		return false;
	if (in->count > 0)
		*due = in->pieces[in->first].due;
	else if (in->closed)
		*due = in->last;
	else
		return false;
	return true;
}

static choir_status sim_receive(
		void *self, uint64_t number, void *data, size_t capacity, size_t *received)
{
	net_sim *s = ((self_of *) self)->s;
	pipe_in *in = &at(s, number)->in;
	double due;
	*received = 0;
	while (capacity > 0 && arrives(s, at(s, number), &due) && due <= s->now) {
		if (in->count == 0)
			return *received > 0 ? CHOIR_OK : CHOIR_END;
		piece *p = &in->pieces[in->first];
		const size_t bytes = p->bytes < capacity ? p->bytes : capacity;
		note(s, at(s, number)->other); // it may wait to send
		memcpy((char *) data + *received, in->data + in->begin, bytes);
		in->begin += bytes;
		in->bytes -= bytes;
		*received += bytes;
		capacity -= bytes;
		p->bytes -= bytes;
		if (p->bytes > 0)
			break;
		in->first = (in->first + 1) % PIECES;
		in->count--;
	}
	return CHOIR_OK;
}

static void sim_describe(const void *self, uint64_t number, char *text, size_t size)
{
	snprintf(text, size, "%s", at(((const self_of *) self)->s, number)->address);
}

// The time at which a wait for a connection ends.
static double ready_at(net_sim *s, const choir_connection_wait *w)
{
	const end *e = at(s, w->connection);
	double due = HUGE_VAL, first = HUGE_VAL;
	if (!e->used)
		return HUGE_VAL;
	if (w->receive && arrives(s, e, &due))
		first = due;
	for (uint64_t i = 0; i < s->count && e->listens && w->receive; i++)
		if (is_waiting(s, i, w->connection))
			first = fmin(first, s->ends[i]->from);
	const pipe_in *in = w->send && e->peer != 0 ? &at(s, e->peer)->in : NULL;
	if (w->send && (in == NULL || (in->bytes < window(s) && in->count < PIECES)))
		first = s->now;
	return first;
}

static double next_of(net_sim *s, int node)
{
	node_state *n = &s->node[node];
	double first = n->woken ? -HUGE_VAL : n->until;
	for (int i = 0; i < n->n && first > s->now; i++)
		first = fmin(first, ready_at(s, &n->waits[i]));
	return first;
}

static choir_status sim_wait(void *self, choir_connection_wait waits[], int n, double until)
{
	self_of *own = self;
	net_sim *s = own->s;
	node_state *node = &s->node[own->node];
	if (n > WAITS)
		return choir_fail(CHOIR_INTERNAL, "sim: %d waits", n);
	node->until = until;
	node->n = n;
	node->stale = true;
	if (n > 0)
		memcpy(node->waits, waits, (size_t) n * sizeof waits[0]);
	if (s->moves)
		s->now = fmax(s->now, next_of(s, own->node));
	// A node that had something to do looks again.
	node->woken = !s->moves && until <= s->now;
	for (int i = 0; i < n; i++) {
		waits[i].ready = ready_at(s, &waits[i]) <= s->now;
		node->woken |= !s->moves && waits[i].ready;
	}
	return CHOIR_OK;
}

static void sim_wake(void *self)
{
	const self_of *own = self;
	own->s->node[own->node].woken = true;
	note(own->s, own->node);
}

static double sim_now(void *self)
{
	return ((self_of *) self)->s->now;
}

static const choir_connection_table table = {
	.size = sizeof table,
	.version = CHOIR_TABLE_VERSION,
	.name = "sim",
	.self_size = sizeof(self_of),
	.open = sim_open,
	.close = sim_close,
	.listen = sim_listen,
	.accept = sim_accept,
	.connect = sim_connect,
	.send = sim_send,
	.receive = sim_receive,
	.describe = sim_describe,
	.drop = sim_drop,
	.wait = sim_wait,
	.wake = sim_wake,
	.now = sim_now,
};

net_sim *net_sim_new(const net_sim_options *o)
{
	net_sim *s = chi_alloc(sizeof *s);
	if (s == NULL)
		return NULL;
	s->o = *o;
	s->random = o->seed;
	for (int i = 0; i < NET_SIM_NODES; i++)
		s->node[i] = (node_state){ .until = HUGE_VAL, .next = HUGE_VAL };
	return s;
}

void net_sim_free(net_sim *s)
{
	for (uint64_t i = 0; s != NULL && i < s->count; i++) {
		chi_free(s->ends[i]->in.data);
		chi_free(s->ends[i]);
	}
	chi_free(s);
}

chi_connections *net_sim_connections(net_sim *s, int node)
{
	const self_of self = { s, node };
	s->node[node] = (node_state){ .until = HUGE_VAL, .stale = true };
	return chi_connections_open_table(&table, &self, NULL);
}

double net_sim_now(const net_sim *s)
{
	return s->now;
}

void net_sim_kill(net_sim *s, int node)
{
	self_of self = { s, node };
	sim_close(&self);
	s->node[node].dead = true;
}

void net_sim_stop(net_sim *s, int node, bool stopped)
{
	s->node[node].stopped = stopped;
}

void net_sim_cut(net_sim *s, uint32_t mask)
{
	s->cut = mask;
	for (int i = 0; i < NET_SIM_NODES; i++)
		note(s, i);
}

void net_sim_wait_moves_time(net_sim *s)
{
	s->moves = true;
}

void net_sim_expect(net_sim *s, int node, double until)
{
	s->node[node].until = until;
	note(s, node);
}

int net_sim_next(net_sim *s, double until)
{
	double first = until;
	int found = CHOIR_NONE;
	for (int i = 0; i < NET_SIM_NODES; i++) {
		if (s->node[i].dead || s->node[i].stopped)
			continue;
		node_state *n = &s->node[i];
		if (n->stale)
			n->next = next_of(s, i);
		n->stale = false;
		if (n->next < first) {
			first = n->next;
			found = i;
		}
	}
	s->now = fmax(s->now, fmin(first, until));
	return found;
}
