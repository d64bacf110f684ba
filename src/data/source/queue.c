// A ring of rows, owned by program and dataset. A cancel cannot wake a waiting reader, so the
// reader polls.
#include "data/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/options.h"

enum { USUAL_CAPACITY = 1024, USUAL_TIMEOUT = 600 };
static const double CHECK_SECONDS = 0.02; // a cancel's latency

struct choir_queue {
	size_t n, bytes[CHI_MAX_COLUMNS];
	chi_row_buffer rows;
	int64_t capacity;
	double timeout;
	chi_mutex mutex;
	chi_cond changed;
	// Protected by mutex:
	int64_t first, count;
	bool closed;
	bool given_up, dropped;
	chi_error failure;
};

typedef struct {
	choir_dataset base;
	choir_queue *queue;
	bool begun;
} queue_source;

// Releases the mutex. The last owner frees q.
static void leave(choir_queue *q)
{
	const bool last = q->given_up && q->dropped;
	chi_cond_broadcast(&q->changed);
	chi_mutex_unlock(&q->mutex);
	if (!last)
		return;
	chi_row_buffer_free(&q->rows);
	chi_cond_destroy(&q->changed);
	chi_mutex_destroy(&q->mutex);
	chi_free(q);
}

static choir_status check_put(const choir_queue *q, int64_t examples, const void *const data[])
{
	if (!q || !data)
		return choir_fail(CHOIR_INVALID, "queue: the %s", q ? "data are NULL" : "queue is NULL");
	if (examples < 0 || examples > q->capacity)
		return choir_fail(CHOIR_INVALID,
				"queue: %lld examples given at once; 0 to %lld (the capacity) needed",
				(long long) examples, (long long) q->capacity);
	for (size_t i = 0; i < q->n && examples > 0; i++)
		if (!data[i])
			return choir_fail(CHOIR_INVALID, "queue: the data of column %zu are NULL", i);
	return CHOIR_OK;
}

static void copy_in(choir_queue *q, const void *const data[], int64_t examples)
{
	int64_t done = 0;
	while (done < examples) {
		const int64_t at = (q->first + q->count) % q->capacity;
		const int64_t left = examples - done, capacity = q->capacity - at;
		const int64_t n = left < capacity ? left : capacity;
		for (size_t i = 0; i < q->n; i++)
			memcpy((char *) q->rows.column[i] + (size_t) at * q->bytes[i],
					(const char *) data[i] + (size_t) done * q->bytes[i],
					(size_t) n * q->bytes[i]);
		q->count += n;
		done += n;
	}
}

// With the mutex.
static choir_status wait_for_space(choir_queue *q, int64_t examples, double seconds)
{
	const double deadline = chi_clock_deadline(seconds);
	bool timed_out = false;
	for (;;) {
		if (q->dropped)
			return choir_fail(CHOIR_CANCELLED, "queue: the dataset was freed; no reader is left");
		if (q->failure.status != CHOIR_OK)
			return choir_fail(CHOIR_STATE, "queue: choir_queue_fail has ended it");
		if (!q->closed && q->capacity - q->count >= examples)
			return CHOIR_OK;
		if (timed_out)
			break;
		timed_out = !chi_cond_wait(&q->changed, &q->mutex, deadline);
	}
	if (q->closed)
		return choir_fail(CHOIR_TIMEOUT,
				"queue: closed, and the next pass has not begun after %g seconds", seconds);
	return choir_fail(CHOIR_TIMEOUT,
			"queue: %lld of %lld examples are waiting to be read; no "
			"space for %lld more after %g seconds",
			(long long) q->count, (long long) q->capacity, (long long) examples, seconds);
}

choir_status choir_queue_put(
		choir_queue *q, int64_t examples, const void *const data[], double seconds)
{
	CHOIR_TRY(check_put(q, examples, data));
	chi_mutex_lock(&q->mutex);
	const choir_status status = wait_for_space(q, examples, seconds);
	if (status == CHOIR_OK) {
		copy_in(q, data, examples);
		chi_cond_broadcast(&q->changed);
	}
	chi_mutex_unlock(&q->mutex);
	return status;
}

choir_status choir_queue_close(choir_queue *q)
{
	if (!q)
		return choir_fail(CHOIR_INVALID, "queue: the queue is NULL");
	chi_mutex_lock(&q->mutex);
	const choir_status status = q->closed
			? choir_fail(CHOIR_STATE, "queue: already closed, and the next pass has not begun")
			: CHOIR_OK;
	q->closed = true;
	chi_cond_broadcast(&q->changed);
	chi_mutex_unlock(&q->mutex);
	return status;
}

choir_status choir_queue_fail(choir_queue *q, choir_status status, const char *text)
{
	if (!q || status == CHOIR_OK || status == CHOIR_END)
		return choir_fail(CHOIR_INVALID, "queue: %s",
				q ? "choir_queue_fail needs a failure; for a normal end use choir_queue_close"
				  : "the queue is NULL");
	chi_error before;
	chi_error_save(&before);
	choir_fail(status, "%s", text && text[0] ? text : choir_status_name(status));
	chi_error_prefix("queue dataset");
	chi_mutex_lock(&q->mutex);
	if (q->failure.status == CHOIR_OK)
		chi_error_save(&q->failure);
	chi_cond_broadcast(&q->changed);
	chi_mutex_unlock(&q->mutex);
	chi_error_restore(&before);
	return CHOIR_OK;
}

void choir_queue_free(choir_queue *q)
{
	if (!q)
		return;
	chi_mutex_lock(&q->mutex);
	q->given_up = true;
	leave(q);
}

// With the mutex, unless there can be no example.
static choir_status wait_for_example(queue_source *s)
{
	choir_queue *q = s->queue;
	const double deadline = chi_clock_deadline(q->timeout);
	while (q->count == 0) {
		if (q->failure.status != CHOIR_OK)
			return chi_error_restore(&q->failure);
		if (q->closed)
			return CHOIR_END;
		if (q->given_up)
			return choir_fail(CHOIR_STATE, "queue dataset: the queue was freed, but not closed");
		if (chi_dataset_is_cancelled(&s->base))
			return choir_fail(CHOIR_CANCELLED, "queue dataset: cancelled");
		if (chi_clock_now() >= deadline)
			return choir_fail(CHOIR_TIMEOUT,
					"queue dataset: no example after %g seconds, and the queue is not closed",
					q->timeout);
		const double check = chi_clock_deadline(CHECK_SECONDS);
		chi_cond_wait(&q->changed, &q->mutex, check < deadline ? check : deadline);
	}
	return CHOIR_OK;
}

static choir_status queue_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	queue_source *s = (queue_source *) d;
	choir_queue *q = s->queue;
	chi_mutex_lock(&q->mutex);
	choir_status status = wait_for_example(s);
	if (status == CHOIR_OK) {
		const int64_t in_a_row = q->capacity - q->first;
		int64_t n = q->count < in_a_row ? q->count : in_a_row;
		*got = n = n < want ? n : want;
		status = chi_row_buffer_copy(d, column, &q->rows, q->first, n);
		q->first = (q->first + n) % q->capacity;
		q->count -= n;
		chi_cond_broadcast(&q->changed);
	}
	s->begun = s->begun || status == CHOIR_OK || status == CHOIR_END;
	chi_mutex_unlock(&q->mutex);
	return status;
}

static choir_status queue_rewind(choir_dataset *d)
{
	queue_source *s = (queue_source *) d;
	choir_queue *q = s->queue;
	chi_mutex_lock(&q->mutex);
	choir_status status = CHOIR_OK;
	if (s->begun && q->closed && q->count == 0)
		q->closed = false;
	else if (s->begun)
		status = choir_fail(CHOIR_UNSUPPORTED,
				"queue dataset: rewound in the middle of a pass; a queue cannot repeat examples");
	s->begun = s->begun && status != CHOIR_OK;
	chi_cond_broadcast(&q->changed);
	chi_mutex_unlock(&q->mutex);
	return status;
}

static void queue_free(choir_dataset *d)
{
	choir_queue *q = ((queue_source *) d)->queue;
	if (!q)
		return;
	chi_mutex_lock(&q->mutex);
	q->dropped = true;
	leave(q);
}

static const chi_stage queue_stage = {
	.name = "queue dataset",
	.read = queue_read,
	.rewind = queue_rewind,
	.blind = true,
	.gone = true,
	.free = queue_free,
};

static choir_queue *make_queue(const choir_dataset *d, int64_t capacity, double timeout)
{
	choir_queue *q = chi_alloc(sizeof *q);
	if (!q || !chi_row_buffer_new(d, capacity, &q->rows)) {
		chi_free(q);
		return NULL;
	}
	q->n = d->spec.n;
	memcpy(q->bytes, d->bytes, sizeof q->bytes);
	q->capacity = capacity;
	q->timeout = timeout;
	chi_mutex_init(&q->mutex, CHI_RANK_DATA, "queue");
	chi_cond_init(&q->changed);
	return q;
}

static choir_status take_options(choir_queue_options *o, const choir_queue_options *given)
{
	CHOIR_TRY(chi_options_take("queue dataset: the options'", o, sizeof *o, given));
	if (o->capacity == 0)
		o->capacity = USUAL_CAPACITY;
	if (o->timeout == 0)
		o->timeout = USUAL_TIMEOUT;
	if (o->capacity > 0 && (o->timeout > 0 || o->timeout == CHOIR_FOREVER))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"queue dataset: capacity %lld and timeout %g seconds given; both must be positive, or "
			"timeout CHOIR_FOREVER",
			(long long) o->capacity, o->timeout);
}

choir_dataset *choir_queue_dataset_new(
		size_t n, const choir_column columns[], const choir_queue_options *o, choir_queue **queue)
{
	choir_queue_options options;
	if (!queue)
		return chi_fail_null(CHOIR_INVALID, "queue dataset: the queue is NULL");
	*queue = NULL;
	if (take_options(&options, o) != CHOIR_OK)
		return NULL;
	queue_source *s =
			chi_source_new(&queue_stage, sizeof *s, n, columns, CHOIR_UNKNOWN_CARDINALITY);
	if (!s)
		return NULL;
	s->queue = make_queue(&s->base, options.capacity, options.timeout);
	if (!s->queue)
		return chi_dataset_discard(&s->base);
	*queue = s->queue;
	return &s->base;
}
