// A thread fills a ring buffer; an end or a failure follows the elements before it. It can stop
// after each block, so only a function of the program can delay it. No lock is held while the
// source is read. Single examples change threads in portions: a switch costs more than one. After
// PORTION_SECONDS a reader takes less: the program may need it before it puts more into a queue.
#include "data/dataset.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/size.h"
#include "base/thread.h"
#include "trace/trace.h"

static const double PORTION_SECONDS = 0.001;

typedef struct {
	choir_dataset base;
	int64_t *examples;
	int64_t slots, unit;
	int64_t portion;
	chi_thread thread;
	bool started;
	unsigned generation;
	int64_t mine, used; // the reader's slots from oldest on; delivered
	chi_mutex mutex;
	chi_cond changed;
	// Protected by mutex:
	int64_t oldest, filled;
	bool refills;
	bool hungry;
	bool running;
	bool busy;
	bool stop;
	choir_status status;
	chi_error failure;
} prefetch;

static bool may_read(const prefetch *p)
{
	return p->running && p->refills && p->status == CHOIR_OK && p->filled < p->slots;
}

// Releases the mutex while it reads.
static int64_t read_some(prefetch *p)
{
	choir_dataset *from = p->base.from[0];
	void *to[CHI_MAX_COLUMNS];
	const int64_t at = (p->oldest + p->filled) % p->slots;
	const int64_t free = p->slots - p->filled, in_a_row = p->slots - at;
	int64_t n = free < in_a_row ? free : in_a_row, got;
	n = n < p->portion ? n : p->portion;
	p->busy = true;
	chi_mutex_unlock(&p->mutex);
	chi_columns_move(from, p->base.rows.column, at * p->unit, to);
	const choir_status status = chi_dataset_read(from, to, n * p->unit, &got);
	chi_mutex_lock(&p->mutex);
	p->busy = false;
	p->status = status;
	if (status == CHOIR_OK && p->examples) {
		p->examples[at] = got;
		got = 1;
	} else if (status != CHOIR_OK && status != CHOIR_END) {
		chi_error_save(&p->failure);
	}
	p->filled += got;
	p->refills = p->filled < p->slots;
	if (p->filled >= p->portion || p->hungry || status != CHOIR_OK || !p->running)
		chi_cond_broadcast(&p->changed);
	return got;
}

static void read_ahead(void *arg)
{
	prefetch *p = arg;
	chi_mutex_lock(&p->mutex);
	while (!p->stop) {
		if (!may_read(p)) {
			chi_cond_wait(&p->changed, &p->mutex, HUGE_VAL);
			continue;
		}
		chi_trace_begin(CHOIR_TRACE_INPUT, "read ahead");
		for (int64_t n = 0; n < p->portion && may_read(p);)
			n += read_some(p);
		chi_trace_end();
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
				"prefetch: used in the child of a fork, which has no reading thread; make the "
				"dataset in the child");
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

// With the mutex.
static void await(prefetch *p)
{
	const double deadline = chi_clock_deadline(PORTION_SECONDS);
	p->hungry = false;
	while (p->status == CHOIR_OK && p->filled < p->portion && !(p->hungry && p->filled > 0))
		if (!chi_cond_wait(&p->changed, &p->mutex, p->hungry ? HUGE_VAL : deadline))
			p->hungry = true;
}

static void take_portion(prefetch *p)
{
	const int64_t in_a_row = p->slots - p->oldest;
	p->mine = p->filled < in_a_row ? p->filled : in_a_row;
	if (p->mine > p->portion)
		p->mine = p->portion;
	p->used = 0;
}

static choir_status wait_for_portion(prefetch *p)
{
	chi_mutex_lock(&p->mutex);
	if (!p->running) {
		p->running = p->refills = true;
		chi_cond_broadcast(&p->changed);
	}
	chi_trace_begin(CHOIR_TRACE_INPUT, "wait for prefetch");
	await(p);
	chi_trace_end();
	take_portion(p);
	const choir_status status = p->mine > 0 ? CHOIR_OK : p->status;
	if (status != CHOIR_OK && status != CHOIR_END)
		chi_error_restore(&p->failure);
	chi_mutex_unlock(&p->mutex);
	return status;
}

static void give_portion_back(prefetch *p)
{
	chi_mutex_lock(&p->mutex);
	p->oldest = (p->oldest + p->mine) % p->slots;
	p->filled -= p->mine;
	if (p->filled <= p->slots - p->portion) {
		p->refills = true;
		chi_cond_broadcast(&p->changed);
	}
	p->mine = 0;
	if (p->filled >= p->portion)
		take_portion(p);
	chi_mutex_unlock(&p->mutex);
}

static choir_status prefetch_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	prefetch *p = (prefetch *) d;
	CHOIR_TRY(check_process(p));
	CHOIR_TRY(start_thread(p));
	if (p->mine == 0)
		CHOIR_TRY(wait_for_portion(p));
	const int64_t at = p->oldest + p->used;
	const int64_t left = p->mine - p->used, n = p->examples || left < want ? left : want;
	*got = p->examples ? p->examples[at] : n;
	CHOIR_TRY(chi_row_buffer_copy(d, column, &p->base.rows, at * p->unit, *got));
	p->used += n;
	if (p->used == p->mine)
		give_portion_back(p);
	return CHOIR_OK;
}

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
	p->oldest = p->filled = p->mine = p->used = 0;
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
	// Peeking may load a file that the thread reads.
	return ((prefetch *) d)->started ? NULL : chi_dataset_peek(d->from[0], column, first, count);
}

static void prefetch_free(choir_dataset *d)
{
	prefetch *p = (prefetch *) d;
	if (!in_child(p)) { // a child lacks the thread, which may hold the mutex
		halt(p, true);
		chi_thread_join(&p->thread);
		chi_cond_destroy(&p->changed);
		chi_mutex_destroy(&p->mutex);
	}
	chi_free(p->examples);
}

static const chi_stage prefetch_stage = {
	.name = "prefetch",
	.read = prefetch_read,
	.rewind = prefetch_rewind,
	.peek = prefetch_peek,
	.free = prefetch_free,
	.seek = chi_seek_from,
};

static bool make_ring(prefetch *p)
{
	int64_t examples;
	if (p->base.spec.batch)
		p->examples = chi_alloc_array((size_t) p->slots, sizeof *p->examples);
	if (p->base.spec.batch && !p->examples)
		return false;
	if (chi_int64_multiply(p->slots, p->unit, &examples))
		return chi_row_buffer_new(&p->base, examples, &p->base.rows);
	choir_fail(CHOIR_INVALID, "prefetch: %lld batches of %lld do not fit in memory",
			(long long) p->slots, (long long) p->unit);
	return false;
}

choir_dataset *choir_dataset_prefetch(choir_dataset *from, int batches)
{
	if (!chi_dataset_given(from, "prefetch"))
		return NULL;
	if (batches < 1)
		return chi_refuse(
				from, CHOIR_INVALID, "prefetch: %d elements given; at least 1 needed", batches);
	prefetch *p = chi_transform_new(&prefetch_stage, sizeof *p, from);
	if (!p)
		return NULL;
	if (from->elements > 0 && from->elements < batches)
		batches = (int) from->elements;
	chi_mutex_init(&p->mutex, CHI_RANK_DATA, "prefetch");
	chi_cond_init(&p->changed);
	p->slots = batches;
	p->unit = chi_dataset_unit(from);
	p->portion = from->spec.batch || batches < 2 ? 1 : batches / 2;
	if (!make_ring(p))
		return chi_dataset_discard(&p->base);
	return &p->base;
}
