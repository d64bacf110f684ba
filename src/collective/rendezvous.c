// A gate's count only grows, so a slow member cannot mistake the round's next collective for its
// own. A member has at most W = CHI_COMMUNICATOR_WINDOW open requests, and the ring 2 W rounds: a
// member that reuses the round of collective n has finished n + W, which all joined after n.
#include "collective/rendezvous.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/processors.h"
#include "base/thresholds.h"
#include "trace/trace.h"

#include <stdio.h>
#include <string.h>

enum { ABORTED = 1, STEP = 2 };
static const uint32_t CLOSED = 0x80000000u; // bit of chi_round.busy: no thread may begin

static const double LOOK_AGAIN = 1e-3; // seconds

choir_status chi_rendezvous_open(chi_rendezvous *m, int members)
{
	const size_t n = (size_t) members;
	m->members = members;
	m->spin = members <= chi_processor_count();
	m->member = chi_alloc_array(n, sizeof *m->member);
	m->ranges = members < CHI_WORK_RANGES ? members : CHI_WORK_RANGES;
	const size_t ranges = (size_t) m->ranges;
	const choir_collective **all = chi_alloc_array(n * CHI_RENDEZVOUS_ROUNDS, sizeof *all);
	chi_work_range *range = chi_alloc_aligned(ranges * CHI_RENDEZVOUS_ROUNDS * sizeof *range);
	uint64_t *event = chi_alloc_array(n * CHI_RENDEZVOUS_ROUNDS, sizeof *event);
	m->round[0].c = all;
	m->round[0].event = event;
	m->round[0].range = range;
	if (m->member == NULL || all == NULL || range == NULL || event == NULL)
		return choir_error_status();
	memset(range, 0, ranges * CHI_RENDEZVOUS_ROUNDS * sizeof *range);
	for (size_t i = 0; i < CHI_RENDEZVOUS_ROUNDS; i++) {
		m->round[i].c = all + i * n;
		m->round[i].event = event + i * n;
		m->round[i].range = range + i * ranges;
	}
	return CHOIR_OK;
}

void chi_rendezvous_close(chi_rendezvous *m)
{
	chi_free(m->round[0].c);
	chi_free(m->round[0].event);
	chi_free(m->round[0].range);
	chi_free(m->member);
}

static chi_round *round_of(chi_rendezvous *m, uint64_t request)
{
	return &m->round[request % CHI_RENDEZVOUS_ROUNDS];
}

const choir_collective *chi_rendezvous_joined(chi_rendezvous *m, int member, uint64_t request)
{
	return round_of(m, request)->c[member];
}

static uint32_t target_of(uint64_t request)
{
	return (uint32_t) (request / CHI_RENDEZVOUS_ROUNDS + 1) * STEP;
}

static void advance(chi_gate *gate)
{
	chi_atomic32_add(&gate->word, STEP);
	chi_gate_wake(gate);
}

// True: collectives stay valid until leave_chunks. An abort changes the same word.
static bool enter_chunks(chi_round *s)
{
	return (chi_atomic32_add(&s->busy, 1) & CLOSED) == 0;
}

static void leave_chunks(chi_round *s)
{
	chi_atomic32_add(&s->busy, UINT32_MAX);
}

static void note_failure(chi_round *s, choir_status status)
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

static choir_status check_equal(const chi_round *s, int members)
{
	const choir_collective *a = s->c[0];
	for (int i = 1; i < members; i++) {
		const choir_collective *b = s->c[i];
		if (!are_equal(a, b))
			return choir_fail(CHOIR_STATE,
					"device 0 joined \"%.40s\" (number %llu, %lld of %s), device %d \"%.40s\" "
					"(number %llu, %lld of %s); all devices must join the same collective",
					a->name, (unsigned long long) a->sequence, (long long) a->elements,
					choir_dtype_name(a->dtype), i, b->name, (unsigned long long) b->sequence,
					(long long) b->elements, choir_dtype_name(b->dtype));
	}
	if (a->root < 0 || a->root >= members || (a->kind == CHOIR_BROADCAST && s->c[a->root]->n == 0))
		return choir_fail(CHOIR_INVALID,
				"%s: root device %d of %d does not exist or has nothing to send", a->name, a->root,
				members);
	return CHOIR_OK;
}

static void begin(chi_rendezvous *m, chi_round *s, int64_t chunks)
{
	chi_atomic32_store(&s->arrived, 0);
	if (enter_chunks(s)) {
		const choir_status status = check_equal(s, m->members);
		if (status != CHOIR_OK)
			note_failure(s, status);
		s->chunks = status == CHOIR_OK ? chunks : 0;
		advance(&s->joined);
		if (status != CHOIR_OK)
			advance(&s->complete);
	}
	leave_chunks(s);
}

choir_status chi_rendezvous_record_event(
		chi_rendezvous *m, int member, choir_device *d, const choir_collective *c)
{
	chi_stream own = { d, c->stream };
	uint64_t *event = &round_of(m, m->member[member].joined)->event[member];
	return d->host_memory ? CHOIR_OK : chi_stream_record_event(&own, event);
}

choir_status chi_rendezvous_join(chi_rendezvous *m, int member, const choir_collective *c,
		int64_t chunks, uint64_t *request)
{
	chi_rendezvous_member *own = &m->member[member];
	*request = own->joined++;
	chi_round *s = round_of(m, *request);
	if (chi_atomic32_load(&m->aborted) != 0)
		return choir_fail(CHOIR_CANCELLED, "%s: cancelled", c->name);
	s->c[member] = c;
	own->last = chi_atomic32_add(&s->arrived, 1) + 1 == (uint32_t) m->members;
	if (own->last) {
		s->last = chi_trace_track();
		begin(m, s, chunks);
	}
	return CHOIR_OK;
}

static choir_status await(const chi_rendezvous *m, chi_round *s, chi_gate *gate, uint32_t target,
		double deadline, const char *name)
{
	for (;;) {
		const uint32_t word = chi_atomic32_load(&gate->word);
		if ((int32_t) (word - target) >= 0) // even if aborted afterwards
			return CHOIR_OK;
		if ((word & ABORTED) != 0)
			return choir_fail(CHOIR_CANCELLED, "%s: cancelled", name);
		chi_trace_begin(CHOIR_TRACE_WAIT, name);
		const bool in_time = chi_gate_wait(gate, word, m->spin, deadline);
		// After an abort the last member may be joining now.
		const bool all =
				gate == &s->joined && (int32_t) (chi_atomic32_load(&gate->word) - target) >= 0;
		chi_trace_end_wait(in_time && all ? s->last : CHI_LAST_UNKNOWN);
		if (!in_time)
			return choir_fail(CHOIR_TIMEOUT, "%s: the other devices did not join in time", name);
	}
}

static choir_status await_others(
		const chi_rendezvous *m, chi_round *s, uint32_t target, double seconds, const char *name)
{
	for (;;) {
		const uint32_t arrived = chi_atomic32_load(&s->arrived);
		const choir_status status =
				await(m, s, &s->joined, target, chi_clock_deadline(seconds), name);
		if (status != CHOIR_TIMEOUT || arrived == chi_atomic32_load(&s->arrived))
			return status;
	}
}

// The last to join usually does a single chunk alone. The others poll first, and leave it in that
// cache.
static bool look_on(const chi_rendezvous *m, const chi_round *s, int member, uint32_t target)
{
	if (s->chunks != 1 || m->member[member].last || !m->spin)
		return false;
	for (int i = 0; i < CHI_ROUND_LOOKS; i++) {
		if (chi_atomic32_load(&s->complete.word) == target)
			return true;
		chi_spin_pause();
	}
	return false;
}

typedef struct {
	chi_rendezvous *m;
	chi_round *s;
	int member;
	chi_chunk_fn *fn;
	void *self;
} worker;

static uint32_t do_work_range(const worker *w, int range)
{
	chi_round *s = w->s;
	chi_atomic32 *claimed = &s->range[range].claimed;
	const int64_t first = s->chunks * range / w->m->ranges;
	const uint32_t count = (uint32_t) (s->chunks * (range + 1) / w->m->ranges - first);
	uint32_t done = 0;
	while (chi_atomic32_load(&w->m->aborted) == 0 && chi_atomic32_load(claimed) < count) {
		const uint32_t chunk = chi_atomic32_add(claimed, 1);
		if (chunk >= count)
			break;
		choir_status status = (choir_status) chi_atomic32_load(&s->status);
		if (status == CHOIR_OK &&
				(status = w->fn(w->self, s, w->member, first + chunk)) != CHOIR_OK)
			note_failure(s, status);
		done++;
	}
	return done;
}

// Members begin with their own ranges: threads read memory in order and seldom share a counter.
static void do_chunks(const worker *w)
{
	chi_round *s = w->s;
	uint32_t done = 0;
	if (enter_chunks(s))
		for (int i = 0; i < w->m->ranges; i++)
			done += do_work_range(w, (w->member + i) % w->m->ranges);
	if (done > 0 && chi_atomic32_add(&s->finished, done) + done == s->chunks)
		advance(&s->complete);
	leave_chunks(s);
}

static void reset_claims(const chi_rendezvous *m, chi_round *s)
{
	for (int i = 0; i < m->ranges; i++)
		chi_atomic32_store(&s->range[i].claimed, 0);
}

static choir_status leave(chi_rendezvous *m, chi_round *s)
{
	choir_status status = (choir_status) chi_atomic32_load(&s->status);
	if (status != CHOIR_OK)
		status = choir_fail(status, "%s", s->failure);
	if (chi_atomic32_add(&s->left, 1) + 1 == (uint32_t) m->members) {
		reset_claims(m, s);
		chi_atomic32_store(&s->finished, 0);
		chi_atomic32_store(&s->left, 0);
		chi_atomic32_store(&s->status, CHOIR_OK);
	}
	return status;
}

static choir_status abort_wait(
		chi_rendezvous *m, uint64_t request, choir_status status, void *self)
{
	if (m->end != NULL)
		m->end(self);
	chi_rendezvous_abort(m);
	chi_rendezvous_drain(m, request);
	return status;
}

static choir_status take_part(chi_rendezvous *m, int member, uint64_t request, double seconds,
		chi_chunk_fn *fn, void *self)
{
	chi_round *s = round_of(m, request);
	const char *name = s->c[member]->name;
	choir_status status = await_others(m, s, target_of(request), seconds, name);
	if (status == CHOIR_OK) {
		if (!look_on(m, s, member, target_of(request)))
			do_chunks(&(worker){ m, s, member, fn, self });
		status = await(m, s, &s->complete, target_of(request), chi_clock_deadline(seconds), name);
	}
	return status == CHOIR_OK ? leave(m, s) : abort_wait(m, request, status, self);
}

choir_status chi_rendezvous_wait(chi_rendezvous *m, int member, uint64_t request, double seconds,
		chi_chunk_fn *fn, void *self)
{
	chi_trace_begin(CHOIR_TRACE_REDUCE, round_of(m, request)->c[member]->name);
	const choir_status status = take_part(m, member, request, seconds, fn, self);
	if (member == 0)
		chi_trace_end_communication();
	else
		chi_trace_end();
	return status;
}

void chi_rendezvous_abort(chi_rendezvous *m)
{
	if (chi_atomic32_exchange(&m->aborted, 1) != 0)
		return;
	for (int i = 0; i < CHI_RENDEZVOUS_ROUNDS; i++)
		chi_atomic32_add(&m->round[i].busy, CLOSED);
	for (int i = 0; i < CHI_RENDEZVOUS_ROUNDS; i++) {
		chi_gate *gates[2] = { &m->round[i].joined, &m->round[i].complete };
		for (int k = 0; k < 2; k++) {
			chi_atomic32_add(&gates[k]->word, ABORTED);
			chi_gate_wake(gates[k]);
		}
	}
}

void chi_rendezvous_drain(chi_rendezvous *m, uint64_t request)
{
	chi_round *s = round_of(m, request);
	uint32_t busy;
	while ((busy = chi_atomic32_load(&s->busy)) != CLOSED)
		(void) chi_futex_wait(&s->busy, busy, chi_clock_deadline(LOOK_AGAIN));
}

void chi_rendezvous_reset(chi_rendezvous *m)
{
	if (chi_atomic32_load(&m->aborted) == 0)
		return;
	for (int i = 0; i < CHI_RENDEZVOUS_ROUNDS; i++) {
		chi_round *s = &m->round[i];
		chi_atomic32 *all[] = { &s->joined.word, &s->complete.word, &s->arrived, &s->finished,
			&s->left, &s->busy, &s->status };
		reset_claims(m, s);
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			chi_atomic32_store(all[k], 0);
	}
	memset(m->member, 0, (size_t) m->members * sizeof *m->member);
	chi_atomic32_store(&m->aborted, 0);
}

int chi_round_first_with(const chi_round *round, int member)
{
	for (int i = 0; i < member; i++)
		if (round->c[i]->result == round->c[member]->result)
			return i;
	return member;
}

choir_status chi_round_deliver(const chi_round *round, int members, const void *data,
		int64_t first, int64_t count, size_t size)
{
	for (int i = 0; i < members; i++) {
		const choir_collective *c = round->c[i];
		if (chi_round_first_with(round, i) != i)
			continue;
		const void *shown = data;
		if (c->result != NULL) {
			char *own = (char *) c->result + (size_t) first * size;
			if (own != data)
				memcpy(own, data, (size_t) count * size);
			shown = own;
		}
		if (c->done != NULL)
			CHOIR_TRY(c->done(c->user, first, count, shown));
	}
	return CHOIR_OK;
}
