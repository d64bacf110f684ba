// Who sums which slices, and where a sum is put: into the memory of the first lane's part where
// nobody else looks at it, so that a steady step needs no memory for it.
#include "strategy/update/instance.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cross/tree.h"
#include "trace/trace.h"

// Less is left to the update, which sums and updates it in one pass over the caches.
enum { LEAST = 2 * CHI_WAY_SLICE }; // elements

bool chi_early_possible(const choir_strategy *s)
{
	return s->lanes > 1 && s->all_host && s->all_here && s->sharing == CHI_ALONE &&
			s->group.table == &chi_direct_table;
}

// Whether nobody else looks at the memory of a fold's part.
static bool is_ours(const chi_fold *fold, int i)
{
	const chi_buffer *b = fold->buffer[i];
	return b != NULL && !b->foreign && chi_atomic32_load(&b->references) == 1;
}

// The first part may be added into whatever follows it; of two, either may.
static choir_status find_memory(const chi_instance *in, chi_early_sum *s, size_t index)
{
	const chi_lane_items *first = &in->lane[0], *last = &in->lane[in->strategy->lanes - 1];
	const chi_fold *left = &first->item[index]->fold, *right = &last->item[index]->fold;
	const chi_fold *ours = left;
	if (!is_ours(left, 0) && in->strategy->lanes == 2 && left->n == 1 && right->n == 1)
		ours = right;
	if (is_ours(ours, 0)) {
		chi_buffer_retain(s->buffer = ours->buffer[0]);
		s->whole.data = ours->part[0].data;
	} else {
		s->buffer = chi_buffer_new(in->strategy->device[0], chi_variable_bytes(s->variable));
		if (s->buffer == NULL)
			return choir_error_status();
		s->whole.data = s->buffer->memory;
	}
	s->whole.lo = 0;
	s->whole.hi = in->strategy->replicas;
	return CHOIR_OK;
}

static choir_status sum_slice(chi_instance *in, chi_early_sum *s, int lane, uint32_t slice)
{
	const choir_strategy *all = in->strategy;
	const choir_variable *v = s->variable;
	const int64_t first = (int64_t) slice * CHI_WAY_SLICE, left = v->elements - first;
	const chi_slice_sum one = { .c = s->c,
		.members = all->lanes,
		.replicas = all->replicas,
		.first = first,
		.count = left < CHI_WAY_SLICE ? left : CHI_WAY_SLICE,
		.to = chi_element(s->whole.data, v->dtype, first),
		.scratch = in->early.lane[lane].scratch };
	const void *sum;
	return chi_way_sum(&one, all->exchange[lane < all->lanes ? lane : 0], &sum);
}

// Of all gradients only the sum is needed now. Memory that is not Choir's waits for the end of the
// run, which gives it back on the caller's thread.
static void let_go(const chi_instance *in, size_t index)
{
	for (int lane = 0; lane < in->strategy->lanes; lane++) {
		chi_fold *fold = &in->lane[lane].item[index]->fold;
		for (int i = 0; i < fold->n; i++) {
			if (fold->buffer[i] == NULL || fold->buffer[i]->foreign)
				continue;
			chi_buffer_release(fold->buffer[i]);
			fold->buffer[i] = NULL;
		}
	}
}

// Sums at most so many slices that nobody has taken.
static choir_status sum_some(chi_instance *in, size_t index, int lane, uint32_t most)
{
	chi_early_sum *s = &in->early.sum[index];
	if (chi_atomic32_load(&s->next) >= s->slices)
		return CHOIR_OK;
	choir_status status = CHOIR_OK;
	chi_trace_begin(CHOIR_TRACE_REDUCE, s->variable->name);
	for (uint32_t k = 0, slice; k < most; k++) {
		if ((slice = chi_atomic32_add(&s->next, 1)) >= s->slices)
			break;
		if (status == CHOIR_OK)
			status = sum_slice(in, s, lane, slice);
		if (chi_atomic32_add(&s->finished, 1) + 1 == s->slices) {
			let_go(in, index);
			chi_gate_open(&s->done, 1);
		}
	}
	chi_trace_end();
	return status;
}

// Goes on from where this lane was up to a sum that somebody has still to give to.
static choir_status go_on(chi_instance *in, int lane, bool all)
{
	chi_early_lane *own = &in->early.lane[lane];
	const uint32_t lanes = (uint32_t) in->strategy->lanes;
	for (; own->cursor < in->early.n; own->cursor++) {
		const chi_early_sum *s = &in->early.sum[own->cursor];
		if (!s->worth)
			continue;
		if (chi_atomic32_load(&s->open) == 0)
			break;
		CHOIR_TRY(sum_some(in, own->cursor, lane, all ? s->slices : s->slices / lanes + 1));
	}
	return CHOIR_OK;
}

choir_status chi_early_help(chi_instance *in, int lane)
{
	return in->early.n == 0 ? CHOIR_OK : go_on(in, lane, true);
}

choir_status chi_early_given(chi_item *item)
{
	chi_instance *in = item->instance;
	const choir_variable *v = item->variable;
	if (item->index >= in->early.n)
		return CHOIR_OK;
	chi_early_sum *s = &in->early.sum[item->index];
	if (s->variable == v && s->worth) {
		item->collective.name = v->name;
		item->collective.dtype = v->dtype;
		item->collective.divisor = 1;
		item->collective.n = (size_t) item->fold.n;
		item->collective.parts = item->fold.part;
		s->c[item->lane] = &item->collective;
		if (chi_atomic32_add(&s->given, 1) + 1 == (uint32_t) in->strategy->replicas) {
			CHOIR_TRY(find_memory(in, s, item->index));
			chi_atomic32_exchange(&s->open, 1);
			if (chi_atomic32_add(&in->early.waiting, 0) != 0)
				chi_run_event(in->run);
		}
	}
	return go_on(in, item->lane, false);
}

static choir_status wait_for_sum(const chi_instance *in, chi_early_sum *s)
{
	const double deadline = chi_clock_deadline(in->strategy->timeout);
	while (chi_atomic32_load(&s->done.word) == 0)
		if (!chi_gate_wait(&s->done, 0, chi_instance_spins(in), deadline))
			return choir_fail(CHOIR_TIMEOUT, "%s: the sum of \"%s\" took too long",
					in->apply->table->name, s->variable->name);
	return CHOIR_OK;
}

choir_status chi_early_finish(chi_instance *in, int from, int to)
{
	// Who does it for all may meet a lane that still helps: it has scratch of its own.
	const int by = to - from == in->strategy->lanes ? in->strategy->lanes : from;
	for (size_t i = 0; i < in->early.n; i++) {
		chi_early_sum *s = &in->early.sum[i];
		if (chi_atomic32_load(&s->open) == 0)
			continue;
		CHOIR_TRY(sum_some(in, i, by, s->slices));
		CHOIR_TRY(wait_for_sum(in, s));
	}
	return CHOIR_OK;
}

const choir_part *chi_early_parts(const chi_item *item, size_t *n)
{
	const chi_early *e = &item->instance->early;
	const chi_early_sum *s = item->index < e->n ? &e->sum[item->index] : NULL;
	const bool summed = s != NULL && chi_atomic32_load(&s->open) != 0;
	*n = !summed ? (size_t) item->fold.n : item->lane == 0 ? 1 : 0;
	return summed ? &s->whole : item->fold.part;
}

static void free_sums(chi_early_sum *sums, size_t n)
{
	for (size_t i = 0; sums != NULL && i < n; i++)
		chi_free(sums[i].c);
	chi_free(sums);
}

// For each lane, and for who does an update for all.
static choir_status open_lanes(chi_instance *in)
{
	chi_early *e = &in->early;
	const size_t n = (size_t) in->strategy->lanes + 1;
	if (e->lane == NULL && (e->lane = chi_alloc_array(n, sizeof *e->lane)) == NULL)
		return choir_error_status();
	for (size_t i = 0; i < n; i++) {
		if (e->lane[i].scratch == NULL)
			e->lane[i].scratch = chi_alloc_aligned(
					(size_t) chi_tree_depth(in->strategy->replicas) * CHI_WAY_SLICE * 8);
		if (e->lane[i].scratch == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

static bool is_known(const chi_instance *in)
{
	const chi_early *e = &in->early;
	bool same = e->n == in->n;
	for (size_t i = 0; same && i < in->n; i++)
		same = e->sum[i].variable == in->variable[i];
	return same;
}

choir_status chi_early_prepare(chi_instance *in)
{
	chi_early *e = &in->early;
	if (is_known(in) || !chi_early_possible(in->strategy))
		return CHOIR_OK;
	CHOIR_TRY(open_lanes(in));
	free_sums(e->next, e->n_next);
	e->n_next = in->n;
	e->next = chi_alloc_array(in->n, sizeof *e->next);
	for (size_t i = 0; e->next != NULL && i < in->n; i++) {
		chi_early_sum *s = &e->next[i];
		choir_variable *v = in->variable[i];
		s->c = chi_alloc_array((size_t) in->strategy->lanes, sizeof *s->c);
		if (s->c == NULL)
			return choir_error_status();
		s->variable = v;
		s->worth = v->elements >= LEAST && !in->shared[i].by_rows;
		s->slices = (uint32_t) ((v->elements + CHI_WAY_SLICE - 1) / CHI_WAY_SLICE);
	}
	return e->next == NULL ? choir_error_status() : CHOIR_OK;
}

void chi_early_forget(chi_instance *in)
{
	chi_early *e = &in->early;
	for (size_t i = 0; i < e->n; i++) {
		chi_early_sum *s = &e->sum[i];
		chi_atomic32 *all[] = { &s->given, &s->open, &s->next, &s->finished, &s->done.word };
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			chi_atomic32_store(all[k], 0);
		chi_buffer_release(s->buffer);
		s->buffer = NULL;
	}
	for (int lane = 0; e->lane != NULL && lane < in->strategy->lanes; lane++)
		e->lane[lane].cursor = 0;
	if (e->next != NULL && chi_atomic32_load(&in->done) != 0) {
		free_sums(e->sum, e->n);
		e->sum = e->next;
		e->n = e->n_next;
		e->next = NULL;
	}
	free_sums(e->next, e->n_next);
	e->next = NULL;
}

void chi_early_free(chi_instance *in)
{
	chi_early *e = &in->early;
	free_sums(e->sum, e->n);
	free_sums(e->next, e->n_next);
	for (int lane = 0; e->lane != NULL && lane <= in->strategy->lanes; lane++)
		chi_free(e->lane[lane].scratch);
	chi_free(e->lane);
}
