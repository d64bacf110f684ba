// The ring of meeting.h. Its counters never go back while a meeting lives: a slot's gates count
// generations, so a member that is late cannot mistake the next collective for its own. A member may
// have CHI_GROUP_WINDOW tickets open; with a ring of two windows a slot is free again before anybody
// can reach it: who is in the third window has seen all others finish the first.
#include "cross/meeting.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <string.h>

static const uint32_t ABORTED = 0x80000000u; // in the gates' words

choir_status chi_meeting_open(chi_meeting *m, int members)
{
	const size_t n = (size_t) members;
	m->members = members;
	m->spin = members <= chi_cpu_count();
	m->count = chi_alloc_array(n, sizeof *m->count);
	const choir_collective **all = chi_alloc_array(n * CHI_MEETING_SLOTS, sizeof *all);
	if (m->count == NULL || all == NULL) {
		chi_free(all);
		return choir_error_status();
	}
	for (size_t i = 0; i < CHI_MEETING_SLOTS; i++)
		m->slot[i].c = all + i * n;
	return CHOIR_OK;
}

void chi_meeting_close(chi_meeting *m)
{
	chi_free(m->slot[0].c);
	chi_free(m->count);
}

static chi_slot *slot_of(chi_meeting *m, uint64_t ticket)
{
	return &m->slot[ticket % CHI_MEETING_SLOTS];
}

static uint32_t generation(uint64_t ticket)
{
	return (uint32_t) (ticket / CHI_MEETING_SLOTS) + 1;
}

const choir_collective *chi_meeting_own(const chi_meeting *m, int member, uint64_t ticket)
{
	return m->slot[ticket % CHI_MEETING_SLOTS].c[member];
}

choir_status chi_meeting_join(chi_meeting *m, int member, const choir_collective *c,
		uint64_t *ticket)
{
	*ticket = m->count[member]++;
	chi_slot *s = slot_of(m, *ticket);
	s->c[member] = c;
	const uint32_t before = chi_atomic32_add(&s->joined.word, 1);
	if ((before & ABORTED) != 0)
		return choir_fail(CHOIR_CANCELLED, "%s: cancelled", c->name);
	if ((before + 1) % (uint32_t) m->members == 0)
		chi_gate_wake(&s->joined);
	return CHOIR_OK;
}

// Waits until the gate's word is at least target.
static choir_status await(const chi_meeting *m, chi_gate *gate, uint32_t target, double deadline,
		const char *name)
{
	for (;;) {
		const uint32_t word = chi_atomic32_load(&gate->word);
		if ((word & ABORTED) != 0)
			return choir_fail(CHOIR_CANCELLED, "%s: cancelled", name);
		if ((int32_t) (word - target) >= 0)
			return CHOIR_OK;
		if (!chi_gate_wait(gate, word, m->spin, deadline))
			return choir_fail(CHOIR_TIMEOUT, "%s: the other devices did not come in time", name);
	}
}

static choir_status check_equal(const chi_slot *s, int members)
{
	const choir_collective *a = s->c[0];
	for (int i = 1; i < members; i++) {
		const choir_collective *b = s->c[i];
		if (a->sequence != b->sequence || a->kind != b->kind || a->dtype != b->dtype ||
				a->elements != b->elements || a->root != b->root)
			return choir_fail(CHOIR_STATE, "device 0 joined \"%s\" (%lld elements of %s), device "
					"%d \"%s\" (%lld of %s)", a->name, (long long) a->elements,
					choir_dtype_name(a->dtype), i, b->name, (long long) b->elements,
					choir_dtype_name(b->dtype));
	}
	return CHOIR_OK;
}

// The collectives of others may be looked at only while a piece is in hand: until it is done nobody
// returns from wait, and then what they point to may be gone.
static void do_pieces(chi_slot *s, int members, int member, int64_t pieces, chi_piece_fn *fn,
		void *self)
{
	for (;;) {
		const uint32_t piece = chi_atomic32_add(&s->next, 1);
		if (piece >= pieces)
			return;
		choir_status status = (choir_status) chi_atomic32_load(&s->status);
		if (status == CHOIR_OK)
			status = check_equal(s, members);
		if (status == CHOIR_OK)
			status = fn(self, s, member, piece);
		if (status != CHOIR_OK)
			chi_atomic32_change(&s->status, CHOIR_OK, (uint32_t) status);
		if (chi_atomic32_add(&s->finished, 1) + 1 == pieces) {
			chi_atomic32_add(&s->complete.word, 1);
			chi_gate_wake(&s->complete);
		}
	}
}

// The last member through makes the slot ready for its next collective.
static choir_status leave(chi_meeting *m, chi_slot *s, const char *name)
{
	const choir_status status = (choir_status) chi_atomic32_load(&s->status);
	if (chi_atomic32_add(&s->left, 1) + 1 == (uint32_t) m->members) {
		chi_atomic32_store(&s->next, 0);
		chi_atomic32_store(&s->finished, 0);
		chi_atomic32_store(&s->left, 0);
		chi_atomic32_store(&s->status, CHOIR_OK);
	}
	if (status != CHOIR_OK && choir_error_status() != status)
		return choir_fail(status, "%s: failed on another device's thread", name);
	return status;
}

choir_status chi_meeting_wait(chi_meeting *m, int member, uint64_t ticket, double seconds,
		int64_t pieces, chi_piece_fn *fn, void *self)
{
	chi_slot *s = slot_of(m, ticket);
	const char *name = s->c[member]->name;
	const double deadline = chi_clock_deadline(seconds);
	CHOIR_TRY(await(m, &s->joined, generation(ticket) * (uint32_t) m->members, deadline, name));
	do_pieces(s, m->members, member, pieces, fn, self);
	CHOIR_TRY(await(m, &s->complete, generation(ticket), deadline, name));
	return leave(m, s, name);
}

void chi_meeting_abort(chi_meeting *m)
{
	chi_atomic32_store(&m->aborted, 1);
	for (int i = 0; i < CHI_MEETING_SLOTS; i++) {
		chi_gate *gates[2] = { &m->slot[i].joined, &m->slot[i].complete };
		for (int k = 0; k < 2; k++) {
			const uint32_t word = chi_atomic32_load(&gates[k]->word);
			if ((word & ABORTED) == 0)
				chi_atomic32_add(&gates[k]->word, ABORTED);
			chi_gate_wake(gates[k]);
		}
	}
}

void chi_meeting_reset(chi_meeting *m)
{
	if (chi_atomic32_load(&m->aborted) == 0)
		return;
	for (int i = 0; i < CHI_MEETING_SLOTS; i++) {
		chi_slot *s = &m->slot[i];
		chi_atomic32 *all[] = { &s->joined.word, &s->complete.word, &s->next, &s->finished,
			&s->left, &s->status };
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			chi_atomic32_store(all[k], 0);
	}
	memset(m->count, 0, (size_t) m->members * sizeof *m->count);
	chi_atomic32_store(&m->aborted, 0);
}

int chi_slot_first_with(const chi_slot *slot, int member)
{
	for (int i = 0; i < member; i++)
		if (slot->c[i]->result == slot->c[member]->result)
			return i;
	return member;
}
