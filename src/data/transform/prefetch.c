// Reading ahead: a thread of the step's own fills a ring of slots while the program works on
// what it has got. An end or a failure takes its place behind the elements read before it. The
// thread starts with the first read and ends when the dataset is freed; it is stopped between
// blocks, and only a function of the program that never returns can keep it. No lock is held
// while the source is read.
#include "data/step.h"

#include <math.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "base/thread.h"
#include "trace/trace.h"

typedef struct {
	chi_rows rows;
	int64_t examples;
} slot;

typedef struct {
	choir_dataset base;
	slot *ring;
	int64_t slots, room; // room: examples of a slot
	chi_thread thread;
	bool started;
	unsigned generation; // of forks, when the thread started: a child does not have it
	int64_t used; // examples of the oldest slot that were handed on; the reader's of the dataset
	chi_mutex mutex;
	chi_cond changed;
	// With mutex held:
	int64_t oldest, filled; // slots
	bool running; // a pass is on: the thread may read
	bool busy; // the thread is reading
	bool stop;
	choir_status status; // how the pass ended; CHOIR_OK: it has not
	chi_error failure;
} prefetch;

static bool may_read(const prefetch *p)
{
	return p->running && p->status == CHOIR_OK && p->filled < p->slots;
}

// Fills the next free slot; called with mutex held, which it gives up meanwhile.
static void read_slot(prefetch *p)
{
	choir_dataset *from = p->base.from[0];
	slot *s = &p->ring[(p->oldest + p->filled) % p->slots];
	p->busy = true;
	chi_mutex_unlock(&p->mutex);
	chi_trace_begin(CHOIR_TRACE_INPUT, "read ahead");
	choir_status status = from->spec.batch
			? chi_dataset_read(from, s->rows.column, p->room, &s->examples)
			: chi_dataset_fill(from, s->rows.column, p->room, &s->examples);
	chi_trace_end();
	chi_mutex_lock(&p->mutex);
	p->busy = false;
	p->status = status;
	if (status == CHOIR_OK)
		p->filled++;
	else if (status != CHOIR_END)
		chi_error_save(&p->failure);
	chi_cond_broadcast(&p->changed);
}

static void read_ahead(void *arg)
{
	prefetch *p = arg;
	chi_mutex_lock(&p->mutex);
	while (!p->stop) {
		if (may_read(p))
			read_slot(p);
		else
			chi_cond_wait(&p->changed, &p->mutex, HUGE_VAL);
	}
	chi_mutex_unlock(&p->mutex);
}

static bool in_child(const prefetch *p)
{
	return p->started && p->generation != chi_fork_generation();
}

static choir_status check_process(const prefetch *p)
{
	if (in_child(p))
		return choir_fail(CHOIR_STATE,
				"prefetch: used after a fork, in the child, which has no "
				"thread that reads; make the dataset there");
	return CHOIR_OK;
}

static choir_status start_thread(prefetch *p)
{
	if (p->started)
		return CHOIR_OK;
	p->generation = chi_fork_generation();
	CHOIR_TRY(chi_thread_start(&p->thread, "choir-prefetch", read_ahead, p));
	p->started = true;
	return CHOIR_OK;
}

// Waits until a slot is filled or the pass has ended.
static choir_status wait_for_slot(prefetch *p)
{
	chi_mutex_lock(&p->mutex);
	if (!p->running) {
		p->running = true;
		chi_cond_broadcast(&p->changed);
	}
	chi_trace_begin(CHOIR_TRACE_INPUT, "wait for prefetch");
	while (p->filled == 0 && p->status == CHOIR_OK)
		chi_cond_wait(&p->changed, &p->mutex, HUGE_VAL);
	chi_trace_end();
	choir_status status = p->filled > 0 ? CHOIR_OK : p->status;
	if (status != CHOIR_OK && status != CHOIR_END)
		chi_error_restore(&p->failure);
	chi_mutex_unlock(&p->mutex);
	return status;
}

static void give_slot_back(prefetch *p)
{
	p->used = 0;
	chi_mutex_lock(&p->mutex);
	p->oldest = (p->oldest + 1) % p->slots;
	p->filled--;
	chi_cond_broadcast(&p->changed);
	chi_mutex_unlock(&p->mutex);
}

static choir_status prefetch_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	prefetch *p = (prefetch *) d;
	CHOIR_TRY(check_process(p));
	CHOIR_TRY(start_thread(p));
	CHOIR_TRY(wait_for_slot(p));
	slot *s = &p->ring[p->oldest]; // filled: the thread leaves it alone
	int64_t left = s->examples - p->used;
	*got = want < left ? want : left;
	CHOIR_TRY(chi_rows_copy(d, column, &s->rows, p->used, *got));
	p->used += *got;
	if (p->used == s->examples)
		give_slot_back(p);
	return CHOIR_OK;
}

// Ends the pass: when it returns, the thread reads nothing and the ring is empty.
static void halt(prefetch *p, bool stop)
{
	chi_mutex_lock(&p->mutex);
	p->running = false;
	p->stop = stop;
	const bool cancels = p->busy;
	if (cancels)
		chi_dataset_cancel(p->base.from[0]);
	chi_cond_broadcast(&p->changed);
	while (p->busy)
		chi_cond_wait(&p->changed, &p->mutex, HUGE_VAL);
	if (cancels)
		chi_dataset_uncancel(p->base.from[0]);
	p->oldest = p->filled = p->used = 0;
	p->status = CHOIR_OK;
	chi_mutex_unlock(&p->mutex);
}

static choir_status prefetch_rewind(choir_dataset *d)
{
	prefetch *p = (prefetch *) d;
	CHOIR_TRY(check_process(p));
	halt(p, false);
	return chi_rewind_from(d);
}

static const void *prefetch_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	// Peeking may load a file, which the thread must not be reading.
	return ((prefetch *) d)->started ? NULL : chi_dataset_peek(d->from[0], column, first, count);
}

static void prefetch_free(choir_dataset *d)
{
	prefetch *p = (prefetch *) d;
	if (!in_child(p)) { // there, the mutex may be held by a thread that is not
		halt(p, true);
		chi_thread_join(&p->thread);
		chi_cond_destroy(&p->changed);
		chi_mutex_destroy(&p->mutex);
	}
	for (int64_t i = 0; i < p->slots && p->ring; i++)
		chi_rows_free(&p->ring[i].rows);
	chi_free(p->ring);
}

static const chi_step prefetch_step = {
	.name = "prefetch",
	.range = chi_no_range,
	.read = prefetch_read,
	.rewind = prefetch_rewind,
	.peek = prefetch_peek,
	.free = prefetch_free,
	.seek = chi_seek_from,
	.files = CHI_FILES_THROUGH,
};

static bool make_ring(prefetch *p)
{
	p->ring = chi_alloc_array((size_t) p->slots, sizeof *p->ring);
	for (int64_t i = 0; i < p->slots && p->ring; i++)
		if (!chi_rows_new(&p->base, p->room, &p->ring[i].rows))
			return false;
	return p->ring != NULL;
}

choir_dataset *choir_dataset_prefetch(choir_dataset *from, int batches)
{
	if (!chi_dataset_given(from, "prefetch"))
		return NULL;
	if (batches < 1)
		return chi_refuse(
				from, CHOIR_INVALID, "prefetch: %d elements given, at least 1 needed", batches);
	prefetch *p = chi_transform_new(&prefetch_step, sizeof *p, from);
	if (!p)
		return NULL;
	if (from->elements > 0 && from->elements < batches)
		batches = (int) from->elements;
	chi_mutex_init(&p->mutex, CHI_RANK_DATA, "prefetch");
	chi_cond_init(&p->changed);
	// Single examples go through two slots that hold so many together: one lock for many.
	bool single = !from->spec.batch;
	p->slots = single && batches > 2 ? 2 : batches;
	p->room = single ? batches / p->slots : from->spec.batch;
	if (!make_ring(p)) {
		choir_dataset_free(&p->base);
		return NULL;
	}
	return &p->base;
}
