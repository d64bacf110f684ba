// A waiting replica polls the other's word. More small all-reduces: the other has arrived. More
// sync points, or the returned flag: they have diverged.
#include "strategy/run/small_all_reduce.h"

#include "base/clock.h"
#include "base/hash.h"
#include "collective/tree.h"
#include "op/vector.h"
#include "strategy/run/sync_point.h"

#include <stdio.h>
#include <string.h>

enum { STOPPED = 1, RETURNED = 2, COUNT = 0x7fff, SUMS = 2, SYNC_POINTS = 17 };

// Few elements, so the tree's levels stay in the cache.
enum { CHUNK = 512, LEVELS = 4 };

static chi_small_all_reduce *shown(const chi_replica *r, int k)
{
	return &r->run->small_all_reduce[r->side * r->run->strategy->replicas + k];
}

static chi_small_all_reduce *own(const chi_replica *r)
{
	return shown(r, r->id);
}

static int turn_of(const chi_replica *r)
{
	return (int) (r->small_all_reduces % 2);
}

choir_status chi_small_all_reduce_open(chi_run *run)
{
	const choir_strategy *s = run->strategy;
	const size_t n = 2 * (size_t) s->replicas;
	if (s->process_group != NULL || s->replicas < 2 ||
			s->replicas > CHI_SMALL_ALL_REDUCE_REPLICAS || s->replicas != s->devices ||
			!s->all_host || !run->spin)
		return CHOIR_OK;
	run->small_all_reduce = chi_alloc_lines(n, sizeof *run->small_all_reduce);
	return chi_made(run->small_all_reduce);
}

static void let_go(chi_buffer **held)
{
	chi_buffer_release(*held);
	*held = NULL;
}

static void clear(chi_small_all_reduce *l)
{
	chi_atomic32_store(&l->gate.word, 0);
	l->counts = 0;
	let_go(&l->held[0]);
	let_go(&l->held[1]);
}

void chi_small_all_reduce_clear(chi_run *run)
{
	if (run->small_all_reduce == NULL ||
			(run->replica[0].small_all_reduces == 0 && !run->isolated &&
					chi_atomic32_load(&run->failed) == 0))
		return;
	for (int i = 0; i < 2 * run->strategy->replicas; i++)
		clear(&run->small_all_reduce[i]);
}

// One addition is enough: other threads change only STOPPED.
static void add_to_word(chi_replica *r, uint32_t flags)
{
	chi_small_all_reduce *l = own(r);
	const uint32_t counts =
			(r->small_all_reduces & COUNT) << SUMS | (r->sequence & COUNT) << SYNC_POINTS;
	chi_atomic32_add(&l->gate.word, counts - l->counts + flags);
	l->counts = counts;
	chi_gate_wake(&l->gate);
}

void chi_small_all_reduce_arrived(chi_replica *r)
{
	if (r->run->small_all_reduce != NULL)
		add_to_word(r, 0);
}

void chi_small_all_reduce_returned(chi_replica *r)
{
	if (r->run->small_all_reduce == NULL)
		return;
	add_to_word(r, RETURNED);
	clear(&r->run->small_all_reduce[(r->side ^ 1) * r->run->strategy->replicas + r->id]);
}

void chi_small_all_reduce_stop(chi_run *run)
{
	for (int i = 0; run->small_all_reduce != NULL && i < run->strategy->replicas; i++) {
		chi_gate *gate = &shown(&run->replica[0], i)->gate;
		uint32_t word;
		do
			word = chi_atomic32_load(&gate->word);
		while (!chi_atomic32_change(&gate->word, word, word | STOPPED));
		chi_gate_wake(gate);
	}
}

bool chi_small_all_reduce_takes(const chi_replica *r, choir_reduce_op op, const choir_tensor *t)
{
	return r->run->small_all_reduce != NULL && !r->run->isolated && op == CHOIR_SUM &&
			t->count == CHOIR_NONE && chi_tensor_bytes(t) <= CHI_SMALL_ALL_REDUCE_BYTES;
}

static int ahead(uint32_t a, uint32_t b, int bit)
{
	const uint32_t difference = ((a >> bit) - (b >> bit)) & COUNT;
	return difference > COUNT / 2 ? (int) difference - COUNT - 1 : (int) difference;
}

static choir_status fail(chi_replica *r)
{
	r->cancelled = true;
	chi_run_fail(r->run, r->run->strategy->replicas);
	return choir_error_status();
}

static void print_part(const chi_replica *r, int k, char text[2 * CHI_SYNC_POINT_NAME])
{
	char shape[CHI_SHAPE_TEXT];
	const int turn = turn_of(r);
	const chi_small_all_reduce *l = shown(r, k);
	const chi_label *s = &l->label[turn];
	snprintf(text, 2 * CHI_SYNC_POINT_NAME, "%s%s%.47s of %s %.60s",
			s->hash == 0 || s->call == NULL ? "all_reduce" : s->call, s->hash == 0 ? "" : " of ",
			s->hash == 0 ? "" : s->name, choir_dtype_name(l->dtype[turn]),
			chi_shape_print(&l->shape[turn], shape));
}

static void returned(const chi_replica *r, int k)
{
	const chi_label *s = &own(r)->label[turn_of(r)];
	choir_fail(CHOIR_STATE,
			"replica %d returned, replica %d was in %s%s%.47s; "
			"all replicas must make the same number of calls",
			k, r->id, s->hash == 0 || s->call == NULL ? "all_reduce" : s->call,
			s->hash == 0 ? "" : " of ", s->hash == 0 ? "" : s->name);
}

static void diverged(const chi_replica *r, int k)
{
	char own_call[2 * CHI_SYNC_POINT_NAME], other[2 * CHI_SYNC_POINT_NAME];
	print_part(r, r->id, own_call);
	chi_sync_point_print(r->run, r->sequence, other);
	chi_sync_point_diverged(r->id, own_call, k, other, CHOIR_NONE);
}

static choir_status never(chi_replica *r, int k, uint32_t word)
{
	if ((word & STOPPED) != 0) {
		r->cancelled = true;
		return chi_run_cancelled(r->run);
	}
	if ((word & RETURNED) != 0)
		returned(r, k);
	else
		diverged(r, k);
	return fail(r);
}

static uint32_t progress_of(const chi_replica *r)
{
	uint32_t sum = chi_atomic32_load(&r->run->progress);
	for (int k = 0; k < r->run->strategy->replicas; k++)
		sum += chi_atomic32_load(&shown(r, k)->gate.word);
	return sum;
}

static bool wait_for(const chi_replica *r, chi_gate *gate, uint32_t word)
{
	if (chi_gate_spin(gate, word))
		return true;
	const uint32_t before = progress_of(r);
	return chi_gate_wait(gate, word, false, chi_clock_deadline(r->run->strategy->timeout)) ||
			progress_of(r) != before;
}

static choir_status await(chi_replica *r, int k)
{
	chi_run *run = r->run;
	const uint32_t mine = own(r)->counts;
	chi_gate *gate = &shown(r, k)->gate;
	for (;;) {
		const uint32_t word = chi_atomic32_load(&gate->word);
		if ((word & STOPPED) == 0 && ahead(word, mine, SUMS) >= 0)
			return CHOIR_OK;
		if ((word & (STOPPED | RETURNED)) != 0 || ahead(word, mine, SYNC_POINTS) > 0)
			return never(r, k, word);
		chi_trace_begin(CHOIR_TRACE_WAIT, "all_reduce");
		const bool in_time = wait_for(r, gate, word);
		chi_trace_end_wait(run->strategy->first_replica + chi_strategy_id(run->strategy, k));
		if (!in_time) {
			choir_fail(CHOIR_TIMEOUT,
					"replica %d waited %g s in all_reduce; replica %d has not come", r->id,
					run->strategy->timeout, k);
			(void) fail(r);
			return chi_run_cancelled(run);
		}
	}
}

static choir_status check_equal(chi_replica *r, int k)
{
	char a[2 * CHI_SYNC_POINT_NAME], b[2 * CHI_SYNC_POINT_NAME];
	const int turn = turn_of(r);
	const chi_small_all_reduce *mine = own(r), *other = shown(r, k);
	if (chi_call_order_crosses(mine->part[turn].order, other->part[turn].order)) {
		chi_sync_point_other_order(r, k, "all_reduce");
		return fail(r);
	}
	if (mine->part[turn].hash == other->part[turn].hash)
		return CHOIR_OK;
	print_part(r, r->id, a);
	print_part(r, k, b);
	chi_sync_point_diverged(r->id, a, k, b, CHOIR_NONE);
	return fail(r);
}

// A chunk's sum begins with this replica's contribution, copied to own before it is overwritten.
typedef struct {
	const chi_replica *r;
	choir_dtype dtype;
	size_t from;
	int64_t count;
	char *to;
	char own[CHUNK * 8], scratch[LEVELS * CHUNK * 8];
} chunk_sum;

static bool find_chunk(void *self, int lo, int hi, int level, const void **sum)
{
	(void) level;
	const chunk_sum *s = self;
	if (hi - lo > 1)
		return false;
	const char *all = shown(s->r, lo)->part[turn_of(s->r)].data;
	*sum = lo == s->r->id ? s->own : all + s->from;
	return true;
}

static const void *add_chunks(void *self, const void *left, const void *right, int level)
{
	chunk_sum *s = self;
	char *to = level == 0 ? s->to : s->scratch + (size_t) (level - 1) * CHUNK * 8;
	chi_vector_add(s->dtype, to, left, right, s->count);
	return to;
}

static void sum_chunks(const chi_replica *r, choir_tensor *sum)
{
	static const chi_tree_adder adder = { find_chunk, add_chunks };
	const size_t size = chi_dtype_size(sum->dtype);
	const int64_t elements = choir_shape_elements(&sum->shape);
	chunk_sum s;
	s.r = r;
	s.dtype = sum->dtype;
	for (int64_t first = 0; first < elements; first += CHUNK) {
		s.from = (size_t) first * size;
		s.count = elements - first < CHUNK ? elements - first : CHUNK;
		s.to = (char *) sum->data + s.from;
		memcpy(s.own, s.to, (size_t) s.count * size);
		(void) chi_tree_sum(&adder, &s, 0, r->run->strategy->replicas, 0);
	}
}

static void sum_all(const chi_replica *r, choir_tensor *sum)
{
	if (r->run->strategy->replicas > 2) {
		sum_chunks(r, sum);
		return;
	}
	const void *other = shown(r, 1 - r->id)->part[turn_of(r)].data;
	chi_vector_add(sum->dtype, sum->data, r->id == 0 ? sum->data : other,
			r->id == 0 ? other : sum->data, choir_shape_elements(&sum->shape));
}

static uint64_t hash_of(const chi_replica *r, const choir_tensor *t)
{
	uint64_t hash = (uint64_t) r->summed * 16 + (uint64_t) t->shape.rank;
	hash = chi_hash_mix(hash + r->label.hash);
	for (int i = 0; i < t->shape.rank; i++)
		hash = chi_hash_mix(hash + (uint64_t) t->shape.dim[i]);
	return hash;
}

// Copies memory that may change, as no replica waits for readers. Writes the polled line once.
static choir_status show(chi_replica *r, const choir_tensor *t)
{
	chi_small_all_reduce *l = own(r);
	const int turn = 1 - turn_of(r);
	chi_small_all_reduce_part part = { hash_of(r, t), r->order, t->data };
	if (t->source != NULL || t->buffer->foreign) {
		const size_t bytes = chi_tensor_bytes(t);
		l->held[turn] = chi_buffer_new(t->buffer->device, bytes);
		CHOIR_TRY(chi_made(l->held[turn]));
		memcpy(l->held[turn]->memory, t->data, bytes);
		part.data = l->held[turn]->memory;
	} else {
		chi_buffer_retain(t->buffer);
		l->held[turn] = t->buffer;
	}
	l->dtype[turn] = r->summed;
	l->shape[turn] = t->shape;
	l->label[turn].hash = r->label.hash;
	if (r->label.hash != 0)
		l->label[turn] = r->label;
	l->part[turn] = part;
	r->small_all_reduces++;
	add_to_word(r, 0);
	return CHOIR_OK;
}

static choir_status await_all(chi_replica *r)
{
	for (int k = 0; k < r->run->strategy->replicas; k++) {
		if (k == r->id)
			continue;
		CHOIR_TRY(await(r, k));
		CHOIR_TRY(check_equal(r, k));
	}
	return CHOIR_OK;
}

// Begins with a copy of r's contribution, so r need not read its published part while another core
// does. Frames release the previous part last and pools reuse it first: parts reuse memory that
// others have read, sums memory that only this core has used.
static choir_tensor *make_sum(chi_replica *r, const choir_tensor *t)
{
	chi_buffer *before = own(r)->held[1 - turn_of(r)];
	choir_tensor *sum = chi_tensor_new(r->base.frame, t->dtype, &t->shape);
	if (sum == NULL)
		return NULL;
	memcpy(sum->data, t->data, chi_tensor_bytes(t));
	if (before != NULL) {
		chi_buffer_retain(before);
		sum->held = before;
	}
	return sum;
}

static choir_tensor *sum_with_all(chi_replica *r, const choir_tensor *t)
{
	if ((r->cancelled ? chi_run_cancelled(r->run) : show(r, t)) != CHOIR_OK)
		return chi_frame_record_null(r->base.frame);
	// From here on the replica leaves only after all have arrived.
	choir_tensor *sum = make_sum(r, t);
	if (await_all(r) != CHOIR_OK)
		return chi_frame_record_null(r->base.frame);
	if (sum != NULL)
		sum_all(r, sum);
	// all replicas have read it
	let_go(&own(r)->held[1 - turn_of(r)]);
	return sum;
}

choir_tensor *chi_small_all_reduce_sum(chi_replica *r, const choir_tensor *t)
{
	chi_trace_begin(CHOIR_TRACE_REDUCE, "all_reduce");
	choir_tensor *sum = sum_with_all(r, t);
	chi_trace_end();
	return sum;
}
