// Who sums which slices, and where a sum is put: into the memory of the first lane's part where
// nobody else looks at it, so that a steady step needs no memory for it.
#include "strategy/gradients/pending.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "collective/tree.h"
#include "strategy/gradients/overlap_workers.h"
#include "trace/trace.h"

// Less is left to the update, which sums and updates it in one pass over the caches.
enum { MIN = 2 * CHI_CHUNK }; // elements

bool chi_early_possible(const choir_strategy *s)
{
	if (s->overlap != NULL)
		return true;
	return s->lanes > 1 && s->all_host && s->all_here && s->concurrency == CHI_EXCLUSIVE &&
			s->group.table == &chi_direct_table;
}

// Whether nobody else looks at the memory of a fold's part.
static bool is_ours(const chi_partial_sums *fold, int i)
{
	const chi_buffer *b = fold->buffer[i];
	return b != NULL && !b->foreign && chi_atomic32_load(&b->references) == 1;
}

// The first part may be added into whatever follows it; of two, either may.
static choir_status find_memory(const chi_instance *in, chi_early_sum *s)
{
	const chi_partial_sums *left = &s->item[0]->fold;
	const chi_partial_sums *right = &s->item[in->strategy->lanes - 1]->fold;
	const chi_partial_sums *ours = left;
	if (!is_ours(left, 0) && in->strategy->lanes == 2 && left->n == 1 && right->n == 1)
		ours = right;
	if (is_ours(ours, 0)) {
		chi_buffer_retain(s->buffer = ours->buffer[0]);
		s->whole.data = ours->node[0].data;
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
	const int64_t first = (int64_t) slice * CHI_CHUNK, left = v->elements - first;
	const chi_chunk_sum one = { .c = s->c,
		.members = all->lanes,
		.replicas = all->replicas,
		.first = first,
		.count = left < CHI_CHUNK ? left : CHI_CHUNK,
		.to = chi_element(s->whole.data, v->dtype, first),
		.scratch = in->early.lane[lane].scratch };
	const void *sum;
	return chi_chunk_sum_make(&one, all->exchange[lane < all->lanes ? lane : 0], &sum);
}

// Memory that is not Choir's waits for the end of the run, which gives it back on the caller's
// thread.
void chi_early_let_go(const chi_instance *in, const chi_early_sum *s)
{
	for (int lane = 0; lane < in->strategy->lanes; lane++) {
		chi_partial_sums *fold = &s->item[lane]->fold;
		for (int i = 0; i < fold->n; i++) {
			if (fold->buffer[i] == NULL || fold->buffer[i]->foreign)
				continue;
			chi_buffer_release(fold->buffer[i]);
			fold->buffer[i] = NULL;
		}
	}
}

// Sums at most so many slices that nobody has taken.
static choir_status sum_some(chi_instance *in, size_t index, int lane, uint32_t max)
{
	chi_early_sum *s = &in->early.sum[index];
	if (chi_atomic32_load(&s->next) >= s->slices)
		return CHOIR_OK;
	choir_status status = CHOIR_OK;
	chi_trace_begin(CHOIR_TRACE_REDUCE, s->variable->name);
	for (uint32_t k = 0, slice; k < max; k++) {
		if ((slice = chi_atomic32_add(&s->next, 1)) >= s->slices)
			break;
		if (status == CHOIR_OK)
			status = sum_slice(in, s, lane, slice);
		if (status != CHOIR_OK)
			chi_atomic32_store(&s->failed, 1);
		if (chi_atomic32_add(&s->finished, 1) + 1 == s->slices) {
			const bool failed = chi_atomic32_load(&s->failed) != 0;
			chi_early_let_go(in, s);
			chi_gate_open(&s->done, failed ? CHI_EARLY_FAILED : CHI_EARLY_SUMMED);
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
	const bool helps = in->early.n > 0 && in->strategy->overlap == NULL;
	return helps ? go_on(in, lane, true) : CHOIR_OK;
}

// All replicas have given.
static choir_status open_sum(chi_instance *in, size_t index)
{
	chi_early_sum *s = &in->early.sum[index];
	if (!in->early.between)
		CHOIR_TRY(find_memory(in, s));
	chi_atomic32_exchange(&s->open, 1);
	if (in->early.between)
		chi_overlap_look(in->strategy);
	else if (chi_atomic32_add(&in->early.waiting, 0) != 0)
		chi_run_event(in->run);
	return CHOIR_OK;
}

choir_status chi_early_given(chi_item *item)
{
	chi_instance *in = item->instance;
	const choir_strategy *all = in->strategy;
	const choir_variable *v = item->variable;
	if (item->index >= in->early.n || (all->overlap != NULL && !in->early.between))
		return CHOIR_OK;
	chi_early_sum *s = &in->early.sum[item->index];
	if (s->variable == v && s->worth) {
		item->collective.name = v->name;
		item->collective.dtype = v->dtype;
		item->collective.elements = v->elements;
		item->collective.divisor = 1;
		item->collective.n = (size_t) item->fold.n;
		item->collective.parts = item->fold.node;
		s->item[item->lane] = item;
		s->c[item->lane] = &item->collective;
		if (chi_atomic32_add(&s->given, 1) + 1 == (uint32_t) all->replicas)
			CHOIR_TRY(open_sum(in, item->index));
	}
	return in->early.between ? CHOIR_OK : go_on(in, item->lane, false);
}

// A thread that could not sum a slice fails the run, and has the reason.
static choir_status wait_for_sum(const chi_instance *in, chi_early_sum *s)
{
	const double deadline = chi_clock_deadline(in->strategy->timeout);
	while (chi_atomic32_load(&s->done.word) == 0)
		if (!chi_gate_wait(&s->done, 0, chi_instance_spins(in), deadline))
			return choir_fail(CHOIR_TIMEOUT, "%s: the sum of \"%s\" took too long",
					in->apply->table->name, s->variable->name);
	return chi_atomic32_load(&s->done.word) == CHI_EARLY_SUMMED ? CHOIR_OK
																: chi_run_cancelled(in->run);
}

choir_status chi_early_finish(chi_instance *in, int from, int to)
{
	if (in->strategy->overlap != NULL)
		return in->early.between ? chi_overlap_finish(in) : CHOIR_OK;
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

// The sum that was made early of an item; NULL: none was.
static const chi_early_sum *sum_of(const chi_item *item)
{
	const chi_early *e = &item->instance->early;
	const chi_early_sum *s = item->index < e->n ? &e->sum[item->index] : NULL;
	return s != NULL && chi_atomic32_load(&s->open) != 0 ? s : NULL;
}

const choir_part *chi_early_parts(const chi_item *item, size_t *n)
{
	const chi_early_sum *s = sum_of(item);
	*n = s == NULL ? (size_t) item->fold.n : item->lane == 0 ? 1 : 0;
	return s != NULL ? &s->whole : item->fold.node;
}

bool chi_early_is_whole(const chi_item *item)
{
	return item->instance->early.between && sum_of(item) != NULL;
}

int chi_early_between(const chi_instance *in)
{
	int n = 0;
	for (size_t i = 0; in->early.between && i < in->early.n; i++)
		n += chi_atomic32_load(&in->early.sum[i].open) != 0;
	return n;
}

bool chi_early_needs_tensors(const chi_instance *in, const choir_variable *v)
{
	for (size_t i = 0; in->strategy->overlap != NULL && i < in->early.n; i++)
		if (in->early.sum[i].variable == v && in->early.sum[i].worth)
			return true;
	return false;
}

static void free_sums(chi_early_sum *sums, size_t n)
{
	for (size_t i = 0; sums != NULL && i < n; i++) {
		chi_free(sums[i].item);
		chi_free(sums[i].c);
	}
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
					(size_t) chi_tree_depth(in->strategy->replicas) * CHI_CHUNK * 8);
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

// Whether the next gradients of an item may be summed as they come. What has been given as rows is
// not sent as a tensor because of one update in which there were many.
static bool is_dense(const chi_instance *in, size_t i)
{
	const chi_shared_item *s = &in->shared[i];
	return in->strategy->overlap != NULL ? s->kinds == CHI_GAVE_TENSORS : !s->by_rows;
}

choir_status chi_early_prepare(chi_instance *in)
{
	chi_early *e = &in->early;
	if (is_known(in) || !chi_early_possible(in->strategy))
		return CHOIR_OK;
	if (in->strategy->overlap == NULL)
		CHOIR_TRY(open_lanes(in));
	free_sums(e->next, e->n_next);
	e->n_next = in->n;
	e->next = chi_alloc_array(in->n, sizeof *e->next);
	for (size_t i = 0; e->next != NULL && i < in->n; i++) {
		chi_early_sum *s = &e->next[i];
		choir_variable *v = in->variable[i];
		s->item = chi_alloc_array((size_t) in->strategy->lanes, sizeof *s->item);
		s->c = chi_alloc_array((size_t) in->strategy->lanes, sizeof *s->c);
		if (s->item == NULL || s->c == NULL)
			return choir_error_status();
		s->variable = v;
		s->worth = v->elements >= MIN && is_dense(in, i);
		s->slices = (uint32_t) ((v->elements + CHI_CHUNK - 1) / CHI_CHUNK);
	}
	return e->next == NULL ? choir_error_status() : CHOIR_OK;
}

void chi_early_forget(chi_instance *in)
{
	chi_early *e = &in->early;
	for (size_t i = 0; i < e->n; i++) {
		chi_early_sum *s = &e->sum[i];
		chi_atomic32 *all[] = { &s->given, &s->open, &s->next, &s->finished, &s->failed,
			&s->done.word };
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			chi_atomic32_store(all[k], 0);
		chi_buffer_release(s->buffer);
		s->buffer = NULL;
	}
	for (int lane = 0; e->lane != NULL && lane < in->strategy->lanes; lane++)
		e->lane[lane].cursor = 0;
	e->between = false;
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
