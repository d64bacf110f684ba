// The ring of meeting.h. Its gates count for as long as a meeting lives, so a member that is late
// cannot mistake the next collective in a slot for its own, and they may wrap around. A member may
// have CHI_GROUP_WINDOW tickets open; with a ring of two windows a slot is free again before
// anybody can reach it: who is in the third window has seen all others finish the first.
#include "cross/meeting.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "trace/trace.h"

#include <stdio.h>
#include <string.h>

enum { ABORTED = 1, STEP = 2 }; // in the gates' words
static const uint32_t CLOSED = 0x80000000u; // in a slot's count of who is busy: nobody may begin

enum { MOST_SHARES = 8 };

static const double LOOK_AGAIN = 1e-3; // seconds

choir_status chi_meeting_open(chi_meeting *m, int members)
{
	const size_t n = (size_t) members;
	m->members = members;
	m->spin = members <= chi_cpu_count();
	m->member = chi_alloc_array(n, sizeof *m->member);
	m->shares = members < MOST_SHARES ? members : MOST_SHARES;
	const size_t shares = (size_t) m->shares;
	const choir_collective **all = chi_alloc_array(n * CHI_MEETING_SLOTS, sizeof *all);
	chi_share *share = chi_alloc_aligned(shares * CHI_MEETING_SLOTS * sizeof *share);
	uint64_t *mark = chi_alloc_array(n * CHI_MEETING_SLOTS, sizeof *mark);
	m->slot[0].c = all;
	m->slot[0].mark = mark;
	m->slot[0].share = share;
	if (m->member == NULL || all == NULL || share == NULL || mark == NULL)
		return choir_error_status();
	memset(share, 0, shares * CHI_MEETING_SLOTS * sizeof *share);
	for (size_t i = 0; i < CHI_MEETING_SLOTS; i++) {
		m->slot[i].c = all + i * n;
		m->slot[i].mark = mark + i * n;
		m->slot[i].share = share + i * shares;
	}
	return CHOIR_OK;
}

void chi_meeting_close(chi_meeting *m)
{
	chi_free(m->slot[0].c);
	chi_free(m->slot[0].mark);
	chi_free(m->slot[0].share);
	chi_free(m->member);
}

static chi_slot *slot_of(chi_meeting *m, uint64_t ticket)
{
	return &m->slot[ticket % CHI_MEETING_SLOTS];
}

// The gates' word when the collective of this ticket has passed.
static uint32_t target_of(uint64_t ticket)
{
	return (uint32_t) (ticket / CHI_MEETING_SLOTS + 1) * STEP;
}

static void advance(chi_gate *gate)
{
	chi_atomic32_add(&gate->word, STEP);
	chi_gate_wake(gate);
}

// From here on until leave_pieces what members joined with stays, unless false is returned. An
// abort changes the same word: either this thread sees it, or whoever was told of it sees this
// thread.
static bool enter_pieces(chi_slot *s)
{
	return (chi_atomic32_add(&s->busy, 1) & CLOSED) == 0;
}

static void leave_pieces(chi_slot *s)
{
	chi_atomic32_add(&s->busy, UINT32_MAX);
}

// The first failure is the slot's.
static void note_failure(chi_slot *s, choir_status status)
{
	if (chi_atomic32_change(&s->status, CHOIR_OK, (uint32_t) status))
		snprintf(s->failure, sizeof s->failure, "%s", choir_error());
}

static bool are_equal(const choir_collective *a, const choir_collective *b)
{
	return a->sequence == b->sequence && a->kind == b->kind && a->dtype == b->dtype &&
			a->elements == b->elements && a->root == b->root &&
			(a->name == b->name || strcmp(a->name, b->name) == 0);
}

static choir_status check_equal(const chi_slot *s, int members)
{
	const choir_collective *a = s->c[0];
	for (int i = 1; i < members; i++) {
		const choir_collective *b = s->c[i];
		if (!are_equal(a, b))
			return choir_fail(CHOIR_STATE,
					"device 0 joined \"%.40s\" (number %llu, %lld of %s), "
					"device %d \"%.40s\" (number %llu, %lld of %s)",
					a->name, (unsigned long long) a->sequence, (long long) a->elements,
					choir_dtype_name(a->dtype), i, b->name, (unsigned long long) b->sequence,
					(long long) b->elements, choir_dtype_name(b->dtype));
	}
	if (a->root < 0 || a->root >= members || (a->kind == CHOIR_BROADCAST && s->c[a->root]->n == 0))
		return choir_fail(CHOIR_INVALID,
				"%s: device %d of %d has nothing to send or cannot get it", a->name, a->root,
				members);
	return CHOIR_OK;
}

// The last member has joined: says what is to be done and opens the gate.
static void begin(chi_meeting *m, chi_slot *s, int64_t pieces)
{
	chi_atomic32_store(&s->arrived, 0);
	if (enter_pieces(s)) {
		const choir_status status = check_equal(s, m->members);
		if (status != CHOIR_OK)
			note_failure(s, status);
		s->pieces = status == CHOIR_OK ? pieces : 0;
		advance(&s->joined);
		if (status != CHOIR_OK)
			advance(&s->complete);
	}
	leave_pieces(s);
}

choir_status chi_meeting_mark(
		chi_meeting *m, int member, choir_device *d, const choir_collective *c)
{
	chi_stream own = { d, c->stream };
	uint64_t *mark = &slot_of(m, m->member[member].joined)->mark[member];
	return d->host_memory ? CHOIR_OK : chi_stream_mark(&own, mark);
}

choir_status chi_meeting_join(
		chi_meeting *m, int member, const choir_collective *c, int64_t pieces, uint64_t *ticket)
{
	chi_member *own = &m->member[member];
	*ticket = own->joined++;
	chi_slot *s = slot_of(m, *ticket);
	if (chi_atomic32_load(&m->aborted) != 0)
		return choir_fail(CHOIR_CANCELLED, "%s: cancelled", c->name);
	s->c[member] = c;
	own->last = chi_atomic32_add(&s->arrived, 1) + 1 == (uint32_t) m->members;
	if (own->last)
		begin(m, s, pieces);
	return CHOIR_OK;
}

// Waits until the gate's word is at least target.
static choir_status await(
		const chi_meeting *m, chi_gate *gate, uint32_t target, double deadline, const char *name)
{
	for (;;) {
		const uint32_t word = chi_atomic32_load(&gate->word);
		if ((int32_t) (word - target) >= 0) // also if it was aborted afterwards
			return CHOIR_OK;
		if ((word & ABORTED) != 0)
			return choir_fail(CHOIR_CANCELLED, "%s: cancelled", name);
		chi_trace_begin(CHOIR_TRACE_WAIT, name);
		const bool in_time = chi_gate_wait(gate, word, m->spin, deadline);
		chi_trace_end();
		if (!in_time)
			return choir_fail(CHOIR_TIMEOUT, "%s: the other devices did not come in time", name);
	}
}

// Waits until all have joined: for so many seconds in which nobody else has.
static choir_status await_others(
		const chi_meeting *m, chi_slot *s, uint32_t target, double seconds, const char *name)
{
	for (;;) {
		const uint32_t arrived = chi_atomic32_load(&s->arrived);
		const choir_status status =
				await(m, &s->joined, target, chi_clock_deadline(seconds), name);
		if (status != CHOIR_TIMEOUT || arrived == chi_atomic32_load(&s->arrived))
			return status;
	}
}

// A collective of one piece is done by who joined last, as a rule: the others look on for a moment
// before they touch what would only be taken from each other's caches. True: it is done.
static bool look_on(const chi_meeting *m, const chi_slot *s, int member, uint32_t target)
{
	enum { LOOKS = 200 };
	if (s->pieces != 1 || m->member[member].last || !m->spin)
		return false;
	for (int i = 0; i < LOOKS; i++) {
		if (chi_atomic32_load(&s->complete.word) == target)
			return true;
		chi_spin_pause();
	}
	return false;
}

// Who does pieces, and of which member and collective.
typedef struct {
	chi_meeting *m;
	chi_slot *s;
	int member;
	chi_piece_fn *fn;
	void *self;
} worker;

// What is left of a share: how many pieces.
static uint32_t do_share(const worker *w, int share)
{
	chi_slot *s = w->s;
	chi_atomic32 *dealt = &s->share[share].dealt;
	const int64_t first = s->pieces * share / w->m->shares;
	const uint32_t count = (uint32_t) (s->pieces * (share + 1) / w->m->shares - first);
	uint32_t done = 0;
	while (chi_atomic32_load(&w->m->aborted) == 0 && chi_atomic32_load(dealt) < count) {
		const uint32_t piece = chi_atomic32_add(dealt, 1);
		if (piece >= count)
			break;
		choir_status status = (choir_status) chi_atomic32_load(&s->status);
		if (status == CHOIR_OK &&
				(status = w->fn(w->self, s, w->member, first + piece)) != CHOIR_OK)
			note_failure(s, status);
		done++;
	}
	return done;
}

// Each member begins with a share of its own, and then helps with the others': so each goes
// through memory in order, and the counts are seldom fetched from another's cache.
static void do_pieces(const worker *w)
{
	chi_slot *s = w->s;
	uint32_t done = 0;
	if (enter_pieces(s))
		for (int i = 0; i < w->m->shares; i++)
			done += do_share(w, (w->member + i) % w->m->shares);
	if (done > 0 && chi_atomic32_add(&s->finished, done) + done == s->pieces)
		advance(&s->complete);
	leave_pieces(s);
}

static void deal_again(const chi_meeting *m, chi_slot *s)
{
	for (int i = 0; i < m->shares; i++)
		chi_atomic32_store(&s->share[i].dealt, 0);
}

// The last member through makes the slot ready for its next collective.
static choir_status leave(chi_meeting *m, chi_slot *s)
{
	choir_status status = (choir_status) chi_atomic32_load(&s->status);
	if (status != CHOIR_OK)
		status = choir_fail(status, "%s", s->failure);
	if (chi_atomic32_add(&s->left, 1) + 1 == (uint32_t) m->members) {
		deal_again(m, s);
		chi_atomic32_store(&s->finished, 0);
		chi_atomic32_store(&s->left, 0);
		chi_atomic32_store(&s->status, CHOIR_OK);
	}
	return status;
}

// Ends a wait that failed: nobody begins a piece any more, and this returns when nobody is in one.
static choir_status give_up(chi_meeting *m, uint64_t ticket, choir_status status, void *self)
{
	if (m->end != NULL)
		m->end(self);
	chi_meeting_abort(m);
	chi_meeting_drain(m, ticket);
	return status;
}

static choir_status take_part(
		chi_meeting *m, int member, uint64_t ticket, double seconds, chi_piece_fn *fn, void *self)
{
	chi_slot *s = slot_of(m, ticket);
	const char *name = s->c[member]->name;
	choir_status status = await_others(m, s, target_of(ticket), seconds, name);
	if (status == CHOIR_OK) {
		if (!look_on(m, s, member, target_of(ticket)))
			do_pieces(&(worker){ m, s, member, fn, self });
		status = await(m, &s->complete, target_of(ticket), chi_clock_deadline(seconds), name);
	}
	return status == CHOIR_OK ? leave(m, s) : give_up(m, ticket, status, self);
}

choir_status chi_meeting_wait(
		chi_meeting *m, int member, uint64_t ticket, double seconds, chi_piece_fn *fn, void *self)
{
	chi_trace_begin(CHOIR_TRACE_REDUCE, slot_of(m, ticket)->c[member]->name);
	const choir_status status = take_part(m, member, ticket, seconds, fn, self);
	if (member == 0)
		chi_trace_end_communication();
	else
		chi_trace_end();
	return status;
}

void chi_meeting_abort(chi_meeting *m)
{
	if (chi_atomic32_exchange(&m->aborted, 1) != 0)
		return;
	for (int i = 0; i < CHI_MEETING_SLOTS; i++)
		chi_atomic32_add(&m->slot[i].busy, CLOSED);
	for (int i = 0; i < CHI_MEETING_SLOTS; i++) {
		chi_gate *gates[2] = { &m->slot[i].joined, &m->slot[i].complete };
		for (int k = 0; k < 2; k++) {
			chi_atomic32_add(&gates[k]->word, ABORTED);
			chi_gate_wake(gates[k]);
		}
	}
}

void chi_meeting_drain(chi_meeting *m, uint64_t ticket)
{
	chi_slot *s = slot_of(m, ticket);
	uint32_t busy;
	while ((busy = chi_atomic32_load(&s->busy)) != CLOSED)
		(void) chi_futex_wait(&s->busy, busy, chi_clock_deadline(LOOK_AGAIN));
}

void chi_meeting_reset(chi_meeting *m)
{
	if (chi_atomic32_load(&m->aborted) == 0)
		return;
	for (int i = 0; i < CHI_MEETING_SLOTS; i++) {
		chi_slot *s = &m->slot[i];
		chi_atomic32 *all[] = { &s->joined.word, &s->complete.word, &s->arrived, &s->finished,
			&s->left, &s->busy, &s->status };
		deal_again(m, s);
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			chi_atomic32_store(all[k], 0);
	}
	memset(m->member, 0, (size_t) m->members * sizeof *m->member);
	chi_atomic32_store(&m->aborted, 0);
}

int chi_slot_first_with(const chi_slot *slot, int member)
{
	for (int i = 0; i < member; i++)
		if (slot->c[i]->result == slot->c[member]->result)
			return i;
	return member;
}
