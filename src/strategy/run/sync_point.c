// The ring of meetings of a run. Meetings keep their addresses; the ring grows when replicas drift
// apart, which only meetings that nobody waits in (updates) allow.
#include "strategy/run/sync_point.h"

#include "base/alloc.h"
#include "strategy/run/small_all_reduce.h"

#include <stdio.h>
#include <string.h>

static chi_meet **place(chi_run *run, uint32_t number)
{
	return &run->meet[number % run->meet_capacity];
}

static choir_status grow(chi_run *run)
{
	const uint32_t capacity = run->meet_capacity == 0 ? 8 : 2 * run->meet_capacity;
	chi_meet **ring = chi_alloc_array(capacity, sizeof *ring);
	if (ring == NULL)
		return choir_error_status();
	for (uint32_t i = run->first_meet; i != run->next_meet; i++)
		ring[i % capacity] = *place(run, i);
	chi_free(run->meet);
	run->meet = ring;
	run->meet_capacity = capacity;
	return CHOIR_OK;
}

static chi_meet *new_meet(chi_run *run)
{
	if (run->next_meet - run->first_meet == run->meet_capacity && grow(run) != CHOIR_OK)
		return NULL;
	chi_meet *m = run->spare_meets;
	if (m != NULL) {
		run->spare_meets = m->next;
		chi_buffer **buffer = m->buffer;
		memset(m, 0, sizeof *m);
		m->buffer = buffer;
	} else if ((m = chi_alloc(sizeof *m)) == NULL) {
		return NULL;
	} else if ((m->buffer = chi_alloc_array((size_t) run->strategy->lanes, sizeof *m->buffer)) ==
			NULL) {
		chi_free(m);
		return NULL;
	}
	m->number = run->next_meet;
	*place(run, run->next_meet++) = m;
	return m;
}

static void forget(chi_run *run, chi_meet *m)
{
	for (int i = 0; i < run->strategy->lanes; i++) {
		chi_buffer_release(m->buffer[i]);
		m->buffer[i] = NULL;
	}
	m->next = run->spare_meets;
	run->spare_meets = m;
}

// ", sum of f32 [2, 3]" behind the name if r has come to a collective.
static void print_meeting(
		const char *name, const chi_replica *r, chi_meet_kind kind, char text[2 * CHI_MEET_NAME])
{
	char shape[CHI_SHAPE_TEXT];
	const choir_tensor *t = r->contribution;
	int length = snprintf(text, 2 * CHI_MEET_NAME, "%s", name);
	if (kind == CHI_MEET_COLLECTIVE)
		snprintf(text + length, (size_t) (2 * CHI_MEET_NAME - length), "%s of %s %.60s%s",
				r->reduces == CHOIR_MEAN ? ", mean" : "", choir_dtype_name(t->dtype),
				chi_shape_print(&t->shape, shape), t->count == CHOIR_NONE ? "" : " with a count");
}

choir_status chi_meet_diverged(int a, const char *in_a, int b, const char *in_b, int64_t number)
{
	char where[40] = "";
	if (a > b)
		return chi_meet_diverged(b, in_b, a, in_a, number);
	if (number != CHOIR_NONE)
		snprintf(where, sizeof where, "meeting %lld: ", (long long) number + 1);
	return choir_fail(CHOIR_STATE,
			"%sreplica %d is in %s, replica %d in %s: all replicas must make the same calls in "
			"the same order",
			where, a, in_a, b, in_b);
}

void chi_meet_print(chi_run *run, uint32_t number, char text[2 * CHI_MEET_NAME])
{
	snprintf(text, 2 * CHI_MEET_NAME, "another call");
	chi_mutex_lock(&run->lock);
	if (chi_atomic32_load(&run->failed) == 0 &&
			number - run->first_meet < run->next_meet - run->first_meet) {
		const chi_meet *m = *place(run, number);
		print_meeting(m->name, &run->replica[m->first], m->kind, text);
	}
	chi_mutex_unlock(&run->lock);
}

// r differs from m, and nothing has failed yet: so whoever is in a collective still waits in it.
static choir_status diverged(const chi_replica *r, const chi_meet *like, const chi_meet *m)
{
	char own[2 * CHI_MEET_NAME], other[2 * CHI_MEET_NAME], why[2 * CHI_MEET_NAME + 64];
	print_meeting(like->name, r, like->kind, own);
	print_meeting(m->name, &r->run->replica[m->first], m->kind, other);
	snprintf(why, sizeof why, "%s%s", own,
			strcmp(own, other) != 0				   ? ""
					: like->kind == CHI_MEET_MERGE ? " with another function"
												   : " with other names, variables or shapes");
	return chi_meet_diverged(chi_replica_number(r), why,
			chi_strategy_id(r->run->strategy, m->first), other, m->number);
}

choir_status chi_meet_other_order(const chi_replica *r, int other, const char *name)
{
	return choir_fail(CHOIR_STATE,
			"replica %d has given the tensors that replica %d has, but in another order, as %s "
			"shows: all replicas must make the same calls in the same order",
			chi_replica_number(r), chi_strategy_id(r->run->strategy, other), name);
}

static choir_status returned_early(
		const chi_replica *who, const chi_replica *waits, const char *name)
{
	return choir_fail(CHOIR_STATE,
			"replica %d returned after %u merge call%s or the like, replica %d "
			"was in %s: all replicas must make the same number of calls",
			chi_replica_number(who), who->sequence, who->sequence == 1 ? "" : "s",
			chi_replica_number(waits), name);
}

// With the lock held: r has returned by itself. One that was cancelled returns too, perhaps before
// whoever cancelled it has said why.
static bool left_for_good(const chi_replica *r)
{
	return chi_atomic32_load_seq_cst(&r->gone) != 0 && !r->cancelled &&
			chi_atomic32_load(&r->run->failed) == 0;
}

// With the lock held. Whoever returns later than this sees that somebody has come, and that it has
// not: so only the first to come looks at all replicas.
static bool is_first(chi_run *run, uint32_t number)
{
	if (number != chi_atomic32_load(&run->asked))
		return false;
	chi_atomic32_add(&run->asked, 1); // before it looks who has returned
	return true;
}

// With the lock held: nobody has returned without coming to the meeting of r. If somebody has,
// this fails.
static bool all_are_there(const chi_replica *r, const chi_meet *like)
{
	const chi_run *run = r->run;
	for (int i = 0; i < run->strategy->replicas; i++)
		if (left_for_good(&run->replica[i]) && run->replica[i].sequence <= r->sequence) {
			returned_early(&run->replica[i], r, like->name);
			return false;
		}
	return true;
}

// With the lock held: r comes to its meeting.
static chi_meet *arrive(chi_replica *r, const chi_meet *like, chi_prepare_fn *prepare, void *user)
{
	chi_run *run = r->run;
	const uint32_t number = r->sequence;
	if (run->alone && run->strategy->in_sync > 1) {
		choir_fail(CHOIR_UNSUPPORTED,
				"replica %d is run alone, and is in %s, which needs all %d "
				"replicas",
				chi_replica_number(r), like->name, run->strategy->in_sync);
		return NULL;
	}
	while (run->first_meet != run->next_meet &&
			chi_atomic32_load(&(*place(run, run->first_meet))->left) ==
					(uint32_t) run->strategy->replicas)
		forget(run, *place(run, run->first_meet++));
	if (is_first(run, number) && !all_are_there(r, like))
		return NULL;
	chi_meet *m = number == run->next_meet ? NULL : *place(run, number);
	if (m == NULL) {
		if ((m = new_meet(run)) == NULL)
			return NULL;
		m->kind = like->kind;
		m->what = like->what;
		m->hash = like->hash;
		m->order = r->order;
		memcpy(m->name, like->name, sizeof m->name);
		m->first = r->id;
		if (prepare != NULL && prepare(m, r, user) != CHOIR_OK) {
			run->next_meet--; // nobody else has seen it
			forget(run, m);
			return NULL;
		}
	} else if (m->kind != like->kind || m->what != like->what || m->hash != like->hash) {
		diverged(r, like, m);
		return NULL;
	} else if (chi_call_order_crosses(m->order, r->order)) {
		chi_meet_other_order(r, m->first, m->name);
		return NULL;
	}
	m->arrived++;
	r->sequence++;
	chi_atomic32_add(&run->moves, 1);
	return m;
}

chi_meet *chi_meet_arrive(chi_replica *r, chi_meet_kind kind, const void *what, uint64_t hash,
		const char *name, chi_prepare_fn *prepare, void *user, bool *last)
{
	chi_run *run = r->run;
	chi_meet like = { .kind = kind, .what = what, .hash = hash };
	memcpy(like.name, name, strnlen(name, sizeof like.name - 1));
	chi_mutex_lock(&run->lock);
	const bool failed = chi_atomic32_load(&run->failed) != 0;
	chi_meet *m = failed ? NULL : arrive(r, &like, prepare, user);
	*last = m != NULL && m->arrived == run->strategy->replicas;
	chi_mutex_unlock(&run->lock);
	if (m != NULL)
		chi_light_met(r);
	if (m == NULL) {
		if (failed)
			chi_run_cancelled(run);
		else
			chi_run_fail(run, run->strategy->replicas);
		r->cancelled = true;
	}
	return m;
}

void chi_meet_ready(chi_run *run, chi_meet *m)
{
	chi_atomic32_store(&m->ready, 1);
	chi_run_event(run);
}

void chi_meet_leave(chi_replica *r, chi_meet *m)
{
	(void) r;
	chi_atomic32_add(&m->left, 1);
}

// r has said that it has returned. True: others are or may come to be in meetings that it never
// came to. Who comes to a meeting says so and then looks who has returned, so that one of the two
// sees the other.
static bool behind(const chi_replica *r)
{
	return chi_atomic32_load_seq_cst(&r->run->asked) != r->sequence;
}

void chi_meet_returned(chi_replica *r)
{
	chi_run *run = r->run;
	chi_lane *l = &run->lane[r->lane];
	chi_atomic32_store_seq_cst(&r->gone, 1);
	if (!l->shared && !behind(r)) { // no lock, which would go from processor to processor
		l->left--;
		if (!r->cancelled)
			chi_light_returned(r);
		return;
	}
	chi_mutex_lock(&run->lock);
	r->state = CHI_RETURNED;
	l->left--;
	chi_atomic32_add(&run->moves, 1);
	const bool short_of = r->sequence != run->next_meet && left_for_good(r);
	if (short_of) {
		const chi_meet *m = *place(run, r->sequence);
		returned_early(r, &run->replica[m->first], m->name);
	}
	chi_mutex_unlock(&run->lock);
	if (!r->cancelled)
		chi_light_returned(r);
	if (short_of)
		chi_run_fail(run, run->strategy->replicas);
}

int chi_meet_missing(const chi_replica *r, const chi_meet *m)
{
	const chi_run *run = r->run;
	// Variables are made by replica 0; what the others do matters to nobody who waits.
	const int n = m != NULL && m->kind == CHI_MEET_CREATE ? 1 : run->strategy->replicas;
	for (int i = 0; i < n; i++)
		if (run->replica[i].sequence < r->sequence)
			return i;
	return CHOIR_NONE;
}

void chi_meet_clear(chi_run *run)
{
	while (run->first_meet != run->next_meet)
		forget(run, *place(run, run->first_meet++));
	run->first_meet = run->next_meet = 0;
	if (chi_atomic32_load(&run->asked) != 0)
		chi_atomic32_store(&run->asked, 0);
}

void chi_meet_free(chi_run *run)
{
	chi_meet_clear(run);
	while (run->spare_meets != NULL) {
		chi_meet *m = run->spare_meets;
		run->spare_meets = m->next;
		chi_free(m->buffer);
		chi_free(m);
	}
	chi_free(run->meet);
}
