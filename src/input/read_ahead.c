// Steps are read into the future batch's tensors, each with the position after it: a save ignores
// steps read ahead.
//
// After an end the thread begins the next pass, to fill shuffle buffers early. No lock is held
// while data are read.
#include "input/input.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/lock.h"
#include "base/thread.h"
#include "trace/trace.h"
#include "value/value.h"

typedef struct {
	choir_frame *frame;
	chi_batch_buffer to;
	choir_status status;
	chi_error failure;
	choir_input_position after;
} slot;

struct chi_read_ahead {
	choir_distributed_dataset *data;
	int steps;
	int min;
	int64_t slots; // one more, for an end
	slot *ring;
	bool goes_on;
	chi_thread thread;
	bool started;
	unsigned generation;
	choir_input_position here; // after the last step handed over
	chi_mutex mutex;
	chi_cond changed;
	// Protected by mutex:
	int64_t oldest, filled;
	int64_t step;
	bool running;
	bool ended;
	bool next; // the program is still in the pass before
	choir_input_position start;
	bool busy;
	bool stop;
};

static void read_slot(chi_read_ahead *a, slot *s)
{
	choir_distributed_dataset *data = a->data;
	chi_trace_begin(CHOIR_TRACE_INPUT, "read ahead");
	choir_frame_clear(s->frame);
	s->status = chi_input_make_columns(data, &s->to);
	if (s->status == CHOIR_OK)
		s->status = chi_input_read_step(data, &s->to);
	if (s->status == CHOIR_OK)
		chi_example_stream_position(&data->stream[0], &s->after);
	else if (s->status != CHOIR_END)
		chi_error_save(&s->failure);
	if (s->status != CHOIR_OK)
		choir_frame_clear(s->frame);
	chi_trace_end();
}

// Releases the caller's mutex while it reads.
static void read_next(chi_read_ahead *a)
{
	slot *s = &a->ring[(a->oldest + a->filled) % a->slots];
	s->to.step = a->step++;
	a->busy = true;
	chi_mutex_unlock(&a->mutex);
	read_slot(a, s);
	chi_mutex_lock(&a->mutex);
	a->busy = false;
	a->filled++;
	a->ended = s->status == CHOIR_END && a->goes_on && !a->next && a->running;
	a->running = a->running && (s->status == CHOIR_OK || a->ended);
	if (a->filled >= a->min || !a->running || a->ended || a->next)
		chi_cond_broadcast(&a->changed);
}

// Releases the caller's mutex. Not if sources have left out rows: until the rewind the program may
// ask for counts.
static void begin_next(chi_read_ahead *a)
{
	chi_example_stream *f = &a->data->stream[0];
	const int64_t pass = chi_dataset_pass(f->data) + 1;
	a->busy = true;
	chi_mutex_unlock(&a->mutex);
	const bool counts = choir_dataset_dropped(f->data) > 0 || choir_dataset_skipped(f->data) > 0;
	const choir_status status = counts ? CHOIR_END : chi_example_stream_begin(f, pass);
	if (status == CHOIR_OK)
		chi_example_stream_position(f, &a->start);
	chi_mutex_lock(&a->mutex);
	a->start.size = status == CHOIR_OK ? sizeof a->start : 0;
	a->busy = a->ended = false;
	a->next = !counts;
	a->running = a->running && status == CHOIR_OK;
	a->step = 0;
	chi_cond_broadcast(&a->changed);
}

// Without an end that steps follow.
static int64_t steps_there(const chi_read_ahead *a)
{
	return a->filled - a->next;
}

static void read_ahead(void *arg)
{
	chi_read_ahead *a = arg;
	chi_thread_stand_back();
	chi_mutex_lock(&a->mutex);
	while (!a->stop) {
		if (a->running && a->ended)
			begin_next(a);
		else if (a->running && steps_there(a) < a->steps)
			read_next(a);
		else
			chi_cond_wait(&a->changed, &a->mutex, HUGE_VAL);
	}
	chi_mutex_unlock(&a->mutex);
}

void chi_read_ahead_free(chi_read_ahead *a)
{
	if (a == NULL)
		return;
	// A child of fork lacks the thread.
	if (!a->started || a->generation == chi_fork_generation()) {
		chi_read_ahead_halt(a);
		chi_mutex_lock(&a->mutex);
		a->stop = true;
		chi_cond_broadcast(&a->changed);
		chi_mutex_unlock(&a->mutex);
		chi_thread_join(&a->thread);
		chi_cond_destroy(&a->changed);
		chi_mutex_destroy(&a->mutex);
	}
	for (int64_t i = 0; a->ring != NULL && i < a->slots; i++) {
		choir_frame_free(a->ring[i].frame);
		chi_free(a->ring[i].to.rows);
	}
	chi_free(a->ring);
	chi_free(a);
}

chi_read_ahead *chi_read_ahead_new(
		choir_distributed_dataset *data, int steps, bool together, bool goes_on)
{
	chi_read_ahead *a = chi_alloc(sizeof *a);
	if (a == NULL)
		return NULL;
	a->data = data;
	chi_mutex_init(&a->mutex, CHI_RANK_INPUT, "ahead");
	chi_cond_init(&a->changed);
	a->steps = steps;
	a->min = together ? (steps + 1) / 2 : 1;
	a->slots = (int64_t) steps + 1;
	a->goes_on = goes_on;
	a->ring = chi_alloc_array((size_t) a->slots, sizeof *a->ring);
	for (int64_t i = 0; a->ring != NULL && i < a->slots; i++) {
		slot *s = &a->ring[i];
		s->frame = s->to.frame = choir_frame_new(NULL);
		s->to.rows = chi_alloc_array((size_t) data->strategy->replicas, sizeof *s->to.rows);
		if (s->frame == NULL || s->to.rows == NULL) {
			chi_read_ahead_free(a);
			return NULL;
		}
	}
	if (a->ring != NULL)
		return a;
	chi_read_ahead_free(a);
	return NULL;
}

// With mutex held. True: the next pass had begun.
static bool halt(chi_read_ahead *a)
{
	a->running = a->ended = false;
	const bool cancels = a->busy;
	for (int i = 0; cancels && i < a->data->streams; i++)
		chi_dataset_cancel(a->data->stream[i].data);
	chi_cond_broadcast(&a->changed);
	while (a->busy)
		chi_cond_wait(&a->changed, &a->mutex, HUGE_VAL);
	for (int i = 0; cancels && i < a->data->streams; i++)
		chi_dataset_uncancel(a->data->stream[i].data);
	const bool next = a->next;
	a->oldest = a->filled = 0;
	a->next = false;
	a->here.size = 0;
	return next;
}

void chi_read_ahead_halt(chi_read_ahead *a)
{
	if (a == NULL)
		return;
	chi_mutex_lock(&a->mutex);
	halt(a);
	chi_mutex_unlock(&a->mutex);
}

// With mutex held.
static void drop_pass(chi_read_ahead *a)
{
	bool end;
	do {
		end = a->ring[a->oldest].status == CHOIR_END;
		a->oldest = (a->oldest + 1) % a->slots;
		a->filled--;
	} while (!end);
	a->next = false;
	a->here = a->start;
	chi_cond_broadcast(&a->changed);
}

bool chi_read_ahead_rewind(chi_read_ahead *a, int64_t *pass)
{
	const choir_dataset *d = a->data->stream[0].data;
	chi_mutex_lock(&a->mutex);
	while (a->running && a->ended)
		chi_cond_wait(&a->changed, &a->mutex, HUGE_VAL);
	const bool begun = a->next && a->start.size > 0;
	if (begun) {
		drop_pass(a);
		*pass = a->here.pass;
	} else {
		*pass = halt(a) ? chi_dataset_pass(d) : chi_dataset_pass(d) + 1;
	}
	chi_mutex_unlock(&a->mutex);
	return begun;
}

bool chi_read_ahead_position(const chi_read_ahead *a, choir_input_position *p)
{
	if (a == NULL || a->here.size == 0)
		return false;
	*p = a->here;
	return true;
}

// Unless it was read to its end. With mutex held.
static void begin(chi_read_ahead *a)
{
	if (a->running || a->filled > 0)
		return;
	a->running = true;
	a->step = a->data->steps;
	chi_cond_broadcast(&a->changed);
}

static choir_status start(chi_read_ahead *a)
{
	if (a->here.size == 0) {
		chi_example_stream_position(&a->data->stream[0], &a->here);
		a->here.size = sizeof a->here;
	}
	if (a->started)
		return CHOIR_OK;
	a->generation = chi_fork_generation();
	CHOIR_TRY(chi_thread_start(&a->thread, "choir-input", read_ahead, a));
	a->started = true;
	return CHOIR_OK;
}

choir_status chi_read_ahead_begin(chi_read_ahead *a)
{
	CHOIR_TRY(start(a));
	chi_mutex_lock(&a->mutex);
	begin(a);
	chi_mutex_unlock(&a->mutex);
	return CHOIR_OK;
}

static choir_status hand_over_pieces(const chi_shape_run *p, chi_batch_buffer *to, size_t i)
{
	if (p == NULL)
		return CHOIR_OK;
	CHOIR_TRY(hand_over_pieces(p->older, to, i));
	chi_shape_run *own = chi_arena_alloc(&to->frame->arena, sizeof *own);
	choir_tensor *t = own == NULL ? NULL : chi_value_view(to->frame, p->tensor);
	if (t == NULL)
		return choir_error_status();
	*own = (chi_shape_run){ t, p->first, to->piece[i] };
	to->piece[i] = own;
	return CHOIR_OK;
}

static choir_status hand_over(const chi_read_ahead *a, const slot *s, chi_batch_buffer *to)
{
	const size_t n = a->data->stream[0].spec->n;
	for (size_t i = 0; i < n; i++) {
		choir_tensor *t = s->to.column[i];
		to->column[i] = t == NULL ? NULL : chi_value_view(to->frame, t);
		if (t != NULL && to->column[i] == NULL)
			return choir_error_status();
		to->piece[i] = NULL;
		CHOIR_TRY(hand_over_pieces(s->to.piece[i], to, i));
	}
	to->at = s->to.at;
	memcpy(to->rows, s->to.rows, (size_t) a->data->strategy->replicas * sizeof *to->rows);
	to->whole = s->to.whole;
	return CHOIR_OK;
}

// With mutex held. Small steps change threads in groups: a switch costs more than one step.
static void await(chi_read_ahead *a)
{
	if (a->filled > 0)
		return;
	chi_trace_begin(CHOIR_TRACE_INPUT, "wait for input");
	while (a->filled == 0 || (a->filled < a->min && a->running && !a->ended && !a->next))
		chi_cond_wait(&a->changed, &a->mutex, HUGE_VAL);
	chi_trace_end();
}

choir_status chi_read_ahead_take(chi_read_ahead *a, chi_batch_buffer *to)
{
	CHOIR_TRY(start(a));
	chi_mutex_lock(&a->mutex);
	begin(a);
	await(a);
	slot *s = &a->ring[a->oldest]; // the thread does not touch it
	chi_mutex_unlock(&a->mutex);
	if (s->status != CHOIR_OK) {
		memset(to->rows, 0, (size_t) a->data->strategy->replicas * sizeof *to->rows);
		if (s->status != CHOIR_END)
			chi_error_restore(&s->failure);
		return s->status;
	}
	CHOIR_TRY(hand_over(a, s, to));
	choir_frame_clear(s->frame); // keeps no more steps than wanted
	a->here = s->after;
	a->here.size = sizeof a->here;
	chi_mutex_lock(&a->mutex);
	a->oldest = (a->oldest + 1) % a->slots;
	a->filled--;
	if (steps_there(a) <= a->steps - a->min)
		chi_cond_broadcast(&a->changed);
	chi_mutex_unlock(&a->mutex);
	return CHOIR_OK;
}
