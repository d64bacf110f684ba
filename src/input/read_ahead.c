// Reading ahead: a thread reads the next steps while the program works on the last one, straight
// into the tensors that the batch will be made of. So a batch that is there costs handing it
// over, and no copy. What was read ahead does not count: with each step goes where the dataset
// stands behind it, which is what a save gives.
//
// An end or a failure takes its place behind the steps read before it, and stays there. Behind an
// end the thread begins the next pass, so that the program, still busy with the last steps or
// with a test, need not wait until a shuffle's buffer is full again: that buffer is empty by
// then, so it costs no memory, and a rewind that comes finds the first steps there. No lock is
// held while anything is read.
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
	choir_frame *frame; // of the step's tensors, until they are handed over
	chi_batch_buffer to;
	choir_status status;
	chi_error failure;
	choir_input_position after; // where the dataset stands behind this step
} slot;

struct chi_read_ahead {
	choir_distributed_dataset *data;
	int steps; // that are read ahead
	int min; // so many are awaited where none is there
	int64_t slots; // one more, for an end
	slot *ring;
	bool goes_on; // behind an end
	chi_thread thread;
	bool started;
	unsigned generation; // of forks, when the thread started: a child does not have it
	choir_input_position here; // behind the last step that was handed over
	chi_mutex mutex;
	chi_cond changed;
	// With mutex held:
	int64_t oldest, filled; // slots
	int64_t step; // that is read next
	bool running; // a pass is on: the thread may read
	bool ended; // this pass, and the next one is to be begun
	bool next; // it was, while the program is still in the one before
	choir_input_position start; // of that next pass
	bool busy; // it does
	bool stop;
};

// Reads a step into a slot.
static void read_slot(chi_read_ahead *a, slot *s)
{
	choir_distributed_dataset *data = a->data;
	chi_trace_begin(CHOIR_TRACE_INPUT, "read ahead");
	choir_frame_clear(s->frame); // of what a halt left there
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

// Into the next free slot; called with mutex held, which it gives up meanwhile.
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

// The pass behind the one that has ended; as read_next. What a source has left out is counted for
// a pass, and the program may ask for it until it rewinds: such a pass is not begun here. Nor is
// one that cannot be begun: the rewind will find out why.
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

// Slots with a step, or a failure: all but an end that others follow.
static int64_t steps_there(const chi_read_ahead *a)
{
	return a->filled - a->next;
}

static void read_ahead(void *arg)
{
	chi_read_ahead *a = arg;
	chi_thread_stand_back(); // the program computes while it is woken
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
	if (!a->started || a->generation == chi_fork_generation()) { // a child has no such thread
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

// With mutex held: nothing is read any more, and what was is forgotten. Whether the next pass was
// begun.
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

// With mutex held: what there is of the pass that has ended goes, with its end.
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
	while (a->running && a->ended) // it is being begun
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

// With the mutex held: the pass's first step, unless its last one was read already.
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
	if (a->here.size == 0) { // nobody reads
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

// The pieces of a column, the older ones first.
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

// With the mutex held: until there is something to take. Where steps are small, the two threads
// take turns with several of them; a switch for each would take longer than reading it.
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
	slot *s = &a->ring[a->oldest]; // filled: the thread leaves it alone
	chi_mutex_unlock(&a->mutex);
	if (s->status != CHOIR_OK) {
		memset(to->rows, 0, (size_t) a->data->strategy->replicas * sizeof *to->rows);
		if (s->status != CHOIR_END)
			chi_error_restore(&s->failure);
		return s->status;
	}
	CHOIR_TRY(hand_over(a, s, to));
	choir_frame_clear(s->frame); // so that no more steps are kept than are asked for
	a->here = s->after;
	a->here.size = sizeof a->here;
	chi_mutex_lock(&a->mutex);
	a->oldest = (a->oldest + 1) % a->slots;
	a->filled--;
	if (steps_there(a) <= a->steps - a->min) // room for as many as are awaited
		chi_cond_broadcast(&a->changed);
	chi_mutex_unlock(&a->mutex);
	return CHOIR_OK;
}
