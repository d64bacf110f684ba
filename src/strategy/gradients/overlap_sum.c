// A sum overwrites a partial sum to which nothing else refers, so repeated steps allocate nothing.
#include "strategy/gradients/pending_update.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thresholds.h"
#include "collective/tree.h"
#include "strategy/gradients/overlap_workers.h"
#include "strategy/gradients/wire_precision.h"
#include "trace/trace.h"

bool chi_overlap_possible(const choir_strategy *s)
{
	if (s->overlap_workers != NULL)
		return true;
	return s->devices > 1 && s->all_host && s->all_here && s->concurrency == CHI_EXCLUSIVE &&
			s->communicator.table == &chi_direct_table;
}

static bool is_ours(const chi_partial_sums *sums)
{
	const chi_buffer *b = sums->buffer[0];
	return b != NULL && !b->foreign && chi_atomic32_load(&b->references) == 1;
}

static choir_status find_memory(const chi_pending_update *u, chi_overlap_sum *s)
{
	const chi_partial_sums *left = &s->gradient[0]->partial_sums;
	const chi_partial_sums *right = &s->gradient[u->strategy->devices - 1]->partial_sums;
	const chi_partial_sums *ours = left;
	if (!is_ours(left) && u->strategy->devices == 2 && left->n == 1 && right->n == 1)
		ours = right;
	if (is_ours(ours)) {
		chi_buffer_retain(s->buffer = ours->buffer[0]);
		s->whole.data = ours->node[0].data;
	} else {
		s->buffer = chi_buffer_new(u->strategy->device[0], chi_wire_bytes(s->gradient[0]));
		CHOIR_TRY(chi_made(s->buffer));
		s->whole.data = s->buffer->memory;
	}
	s->whole.lo = 0;
	s->whole.hi = u->strategy->replicas;
	return CHOIR_OK;
}

static choir_status sum_chunk(chi_pending_update *u, chi_overlap_sum *s, int d, uint32_t chunk)
{
	const choir_strategy *all = u->strategy;
	const choir_variable *v = s->variable;
	const int64_t first = (int64_t) chunk * CHI_CHUNK, left = v->elements - first;
	const chi_chunk_sum one = { .c = s->c,
		.members = all->devices,
		.replicas = all->replicas,
		.first = first,
		.count = left < CHI_CHUNK ? left : CHI_CHUNK,
		.to = chi_element(s->whole.data, s->c[0]->dtype, first),
		.scratch = u->overlap.device[d].scratch };
	const void *sum;
	return chi_chunk_sum_make(&one, all->exchange[d < all->devices ? d : 0], &sum);
}

// The caller's thread releases foreign memory at the run's end.
void chi_overlap_release_parts(const chi_pending_update *u, const chi_overlap_sum *s)
{
	for (int d = 0; d < u->strategy->devices; d++) {
		chi_partial_sums *sums = &s->gradient[d]->partial_sums;
		for (int i = 0; i < sums->n; i++) {
			if (sums->buffer[i] == NULL || sums->buffer[i]->foreign)
				continue;
			chi_buffer_release(sums->buffer[i]);
			sums->buffer[i] = NULL;
		}
	}
}

static choir_status sum_some(chi_pending_update *u, size_t index, int d, uint32_t max)
{
	chi_overlap_sum *s = &u->overlap.sum[index];
	if (chi_atomic32_load(&s->next) >= s->chunks)
		return CHOIR_OK;
	choir_status status = CHOIR_OK;
	chi_trace_begin(CHOIR_TRACE_REDUCE, s->variable->name);
	for (uint32_t k = 0, chunk; k < max; k++) {
		if ((chunk = chi_atomic32_add(&s->next, 1)) >= s->chunks)
			break;
		if (status == CHOIR_OK)
			status = sum_chunk(u, s, d, chunk);
		if (status != CHOIR_OK)
			chi_atomic32_store(&s->failed, 1);
		if (chi_atomic32_add(&s->finished, 1) + 1 == s->chunks) {
			const bool failed = chi_atomic32_load(&s->failed) != 0;
			chi_overlap_release_parts(u, s);
			chi_gate_open(&s->done, failed ? CHI_OVERLAP_FAILED : CHI_OVERLAP_SUMMED);
		}
	}
	chi_trace_end();
	return status;
}

static choir_status go_on(chi_pending_update *u, int d, bool all)
{
	chi_overlap_device *own = &u->overlap.device[d];
	const uint32_t devices = (uint32_t) u->strategy->devices;
	for (; own->cursor < u->overlap.n; own->cursor++) {
		const chi_overlap_sum *s = &u->overlap.sum[own->cursor];
		if (!s->eligible)
			continue;
		if (chi_atomic32_load(&s->open) == 0)
			break;
		CHOIR_TRY(sum_some(u, own->cursor, d, all ? s->chunks : s->chunks / devices + 1));
	}
	return CHOIR_OK;
}

choir_status chi_overlap_help(chi_pending_update *u, int d)
{
	const bool helps = u->overlap.n > 0 && u->strategy->overlap_workers == NULL;
	return helps ? go_on(u, d, true) : CHOIR_OK;
}

static choir_status open_sum(chi_pending_update *u, size_t index)
{
	chi_overlap_sum *s = &u->overlap.sum[index];
	if (!u->overlap.with_workers)
		CHOIR_TRY(find_memory(u, s));
	chi_atomic32_exchange(&s->open, 1);
	if (u->overlap.with_workers)
		chi_overlap_workers_wake(u->strategy);
	else if (chi_atomic32_add(&u->overlap.waiting, 0) != 0)
		chi_run_wake_up(u->run);
	return CHOIR_OK;
}

choir_status chi_overlap_added(chi_device_gradient *g)
{
	chi_pending_update *u = g->update;
	const choir_strategy *all = u->strategy;
	const choir_variable *v = g->variable;
	if (g->index >= u->overlap.n || (all->overlap_workers != NULL && !u->overlap.with_workers))
		return CHOIR_OK;
	chi_overlap_sum *s = &u->overlap.sum[g->index];
	if (s->variable == v && s->eligible) {
		g->collective.name = v->name;
		g->collective.dtype = g->partial_sums.dtype;
		g->collective.elements = v->elements;
		g->collective.divisor = 1;
		g->collective.n = (size_t) g->partial_sums.n;
		g->collective.partial_sums = g->partial_sums.node;
		s->gradient[g->device] = g;
		s->c[g->device] = &g->collective;
		if (chi_atomic32_add(&s->added, 1) + 1 == (uint32_t) all->replicas)
			CHOIR_TRY(open_sum(u, g->index));
	}
	return u->overlap.with_workers ? CHOIR_OK : go_on(u, g->device, false);
}

static choir_status wait_for_sum(const chi_pending_update *u, chi_overlap_sum *s)
{
	const double deadline = chi_clock_deadline(u->strategy->timeout);
	while (chi_atomic32_load(&s->done.word) == 0)
		if (!chi_gate_wait(&s->done, 0, chi_pending_update_spins(u), deadline))
			return choir_fail(CHOIR_TIMEOUT, "%s: the sum of \"%s\" took too long",
					u->gradients->table->name, s->variable->name);
	return chi_atomic32_load(&s->done.word) == CHI_OVERLAP_SUMMED ? CHOIR_OK
																  : chi_run_cancelled(u->run);
}

choir_status chi_overlap_finish(chi_pending_update *u, int from, int to)
{
	if (u->strategy->overlap_workers != NULL)
		return u->overlap.with_workers ? chi_overlap_workers_finish(u) : CHOIR_OK;
	// a device may still be helping
	const int by = to - from == u->strategy->devices ? u->strategy->devices : from;
	for (size_t i = 0; i < u->overlap.n; i++) {
		chi_overlap_sum *s = &u->overlap.sum[i];
		if (chi_atomic32_load(&s->open) == 0)
			continue;
		CHOIR_TRY(sum_some(u, i, by, s->chunks));
		CHOIR_TRY(wait_for_sum(u, s));
	}
	return CHOIR_OK;
}

static const chi_overlap_sum *sum_of(const chi_device_gradient *g)
{
	const chi_overlap *o = &g->update->overlap;
	const chi_overlap_sum *s = g->index < o->n ? &o->sum[g->index] : NULL;
	return s != NULL && chi_atomic32_load(&s->open) != 0 ? s : NULL;
}

const choir_partial_sum *chi_overlap_parts(const chi_device_gradient *g, size_t *n, bool *whole)
{
	const chi_overlap_sum *s = sum_of(g);
	*whole = s != NULL && g->update->overlap.with_workers;
	*n = s == NULL ? (size_t) g->partial_sums.n : g->device == 0 ? 1 : 0;
	return s != NULL ? &s->whole : g->partial_sums.node;
}

int chi_overlap_with_workers(const chi_pending_update *u)
{
	int n = 0;
	for (size_t i = 0; u->overlap.with_workers && i < u->overlap.n; i++)
		n += chi_atomic32_load(&u->overlap.sum[i].open) != 0;
	return n;
}

bool chi_overlap_needs_dense(const chi_pending_update *u, const choir_variable *v)
{
	for (size_t i = 0; u->strategy->overlap_workers != NULL && i < u->overlap.n; i++)
		if (u->overlap.sum[i].variable == v && u->overlap.sum[i].eligible)
			return true;
	return false;
}

static void free_sums(chi_overlap_sum *sums, size_t n)
{
	for (size_t i = 0; sums != NULL && i < n; i++) {
		chi_free(sums[i].gradient);
		chi_free(sums[i].c);
	}
	chi_free(sums);
}

static choir_status open_devices(chi_pending_update *u)
{
	chi_overlap *o = &u->overlap;
	const size_t n = (size_t) u->strategy->devices + 1;
	if (o->device == NULL && (o->device = chi_alloc_array(n, sizeof *o->device)) == NULL)
		return choir_error_status();
	for (size_t i = 0; i < n; i++) {
		if (o->device[i].scratch == NULL)
			o->device[i].scratch = chi_alloc_aligned(chi_tree_scratch(u->strategy->replicas));
		CHOIR_TRY(chi_made(o->device[i].scratch));
	}
	return CHOIR_OK;
}

static bool is_known(const chi_pending_update *u)
{
	const chi_overlap *o = &u->overlap;
	bool same = o->n == u->n;
	for (size_t i = 0; same && i < u->n; i++)
		same = o->sum[i].variable == u->variable[i];
	return same;
}

// With workers: not if only this update made it so because of many rows.
static bool is_dense(const chi_pending_update *u, size_t i)
{
	const chi_pending_variable *pv = &u->pending[i];
	return u->strategy->overlap_workers != NULL ? pv->kinds == CHI_GRADIENT_DENSE : !pv->is_sparse;
}

choir_status chi_overlap_prepare(chi_pending_update *u)
{
	chi_overlap *o = &u->overlap;
	if (is_known(u) || !chi_overlap_possible(u->strategy))
		return CHOIR_OK;
	if (u->strategy->overlap_workers == NULL)
		CHOIR_TRY(open_devices(u));
	free_sums(o->next, o->n_next);
	o->n_next = u->n;
	o->next = chi_alloc_array(u->n, sizeof *o->next);
	for (size_t i = 0; o->next != NULL && i < u->n; i++) {
		chi_overlap_sum *s = &o->next[i];
		choir_variable *v = u->variable[i];
		s->gradient = chi_alloc_array((size_t) u->strategy->devices, sizeof *s->gradient);
		s->c = chi_alloc_array((size_t) u->strategy->devices, sizeof *s->c);
		if (s->gradient == NULL || s->c == NULL)
			return choir_error_status();
		s->variable = v;
		s->eligible = v->elements >= CHI_OVERLAPPED_ELEMENTS && is_dense(u, i);
		s->chunks = (uint32_t) ((v->elements + CHI_CHUNK - 1) / CHI_CHUNK);
	}
	return chi_made(o->next);
}

void chi_overlap_discard(chi_pending_update *u)
{
	chi_overlap *o = &u->overlap;
	for (size_t i = 0; i < o->n; i++) {
		chi_overlap_sum *s = &o->sum[i];
		chi_atomic32 *all[] = { &s->added, &s->open, &s->next, &s->finished, &s->failed,
			&s->done.word };
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			chi_atomic32_store(all[k], 0);
		chi_buffer_release(s->buffer);
		s->buffer = NULL;
	}
	for (int d = 0; o->device != NULL && d < u->strategy->devices; d++)
		o->device[d].cursor = 0;
	o->with_workers = false;
	if (o->next != NULL && chi_atomic32_load(&u->done) != 0) {
		free_sums(o->sum, o->n);
		o->sum = o->next;
		o->n = o->n_next;
		o->next = NULL;
	}
	free_sums(o->next, o->n_next);
	o->next = NULL;
}

void chi_overlap_free(chi_pending_update *u)
{
	chi_overlap *o = &u->overlap;
	free_sums(o->sum, o->n);
	free_sums(o->next, o->n_next);
	for (int d = 0; o->device != NULL && d <= u->strategy->devices; d++)
		chi_free(o->device[d].scratch);
	chi_free(o->device);
}
