// Streams add the device's name to messages, order streams of different kinds, and copy between
// unrelated memories.
#include "base/alloc.h"
#include "base/status.h"
#include "base/size.h"
#include "device/quarantine.h"
#include "device/remote/remote_device.h"

#include <stddef.h>
#include <string.h>

static chi_atomic64 wait_timeout = { 60000000 }; // microseconds

typedef struct {
	chi_stream stream;
	max_align_t state[];
} stream_block;

void chi_stream_set_timeout(double seconds)
{
	chi_atomic64_store(&wait_timeout, (uint64_t) (1e6 * seconds));
}

static double longest(void)
{
	return 1e-6 * (double) chi_atomic64_load(&wait_timeout);
}

chi_stream *chi_stream_new(choir_device *d)
{
	size_t bytes;
	if (!chi_size_add(offsetof(stream_block, state), d->table->stream_size, &bytes))
		return chi_fail_null(CHOIR_NO_MEMORY, "%s: out of memory: a stream of %zu bytes", d->name,
				d->table->stream_size);
	stream_block *block = chi_alloc(bytes > sizeof *block ? bytes : sizeof *block);
	if (block == NULL)
		return NULL;
	block->stream.device = d;
	block->stream.state = block->state;
	choir_status status = d->table->stream_open(d->self, block->state);
	if (chi_device_failed(d, "stream_open", status) != CHOIR_OK) {
		chi_free(block);
		return NULL;
	}
	return &block->stream;
}

void chi_stream_free(chi_stream *s)
{
	if (s == NULL)
		return;
	s->device->table->stream_close(s->state);
	chi_quarantine_release(s, CHI_STREAM_CLOSED);
	chi_free(s);
}

choir_status chi_stream_copy(chi_stream *s, void *to, const void *from, size_t bytes)
{
	choir_device *d = s->device;
	return chi_device_failed(d, "copy", d->table->copy(s->state, to, from, bytes));
}

choir_status chi_stream_fill(chi_stream *s, void *to, int byte, size_t bytes)
{
	choir_device *d = s->device;
	return chi_device_failed(d, "fill", d->table->fill(s->state, to, byte, bytes));
}

choir_status chi_stream_record_event(chi_stream *s, uint64_t *event)
{
	choir_device *d = s->device;
	return chi_device_failed(d, "record_event", d->table->record_event(s->state, event));
}

choir_status chi_stream_wait_event(chi_stream *s, chi_stream *other, uint64_t event)
{
	choir_device *d = s->device;
	// Kinds do not know each other's queues, so the caller waits.
	if (d->table != other->device->table)
		return chi_stream_wait_until(other, event, longest());
	return chi_device_failed(d, "wait_event", d->table->wait_event(s->state, other->state, event));
}

choir_status chi_stream_wait_until(chi_stream *s, uint64_t event, double seconds)
{
	choir_device *d = s->device;
	const choir_status status =
			chi_device_failed(d, "wait", d->table->wait(s->state, event, seconds));
	if (status != CHOIR_TIMEOUT) // queued work goes on
		chi_quarantine_release(s, event);
	return status;
}

static void leave(chi_stream *s, chi_staging_buffer *staging, uint64_t event)
{
	chi_error e;
	chi_error_save(&e);
	chi_quarantine_abandon(
			s, staging != NULL ? staging : chi_staging_buffer_new(s->device, 0), event);
	chi_error_restore(&e);
}

void chi_stream_abandon(chi_stream *s, uint64_t event)
{
	leave(s, NULL, event);
}

choir_status chi_stream_wait_up_to(chi_stream *s, uint64_t event)
{
	const choir_status status = chi_stream_wait_until(s, event, longest());
	if (status == CHOIR_TIMEOUT)
		leave(s, NULL, event);
	return status;
}

// After a timeout the stream owns *staging, which becomes NULL.
static choir_status wait_with(chi_stream *s, chi_staging_buffer **staging)
{
	uint64_t event;
	choir_status status = chi_stream_record_event(s, &event);
	const bool marked = status == CHOIR_OK;
	if (marked)
		status = chi_stream_wait_until(s, event, longest());
	if (marked && status != CHOIR_TIMEOUT)
		return status;
	leave(s, *staging, marked ? event : CHI_STREAM_CLOSED);
	*staging = NULL;
	return status;
}

choir_status chi_stream_wait(chi_stream *s)
{
	chi_staging_buffer *none = NULL;
	return wait_with(s, &none);
}

choir_status chi_stream_finish(chi_stream *s, choir_status status)
{
	chi_error first;
	chi_error_save(&first);
	const choir_status waited = chi_stream_wait(s);
	if (status != CHOIR_OK)
		chi_error_restore(&first);
	return status == CHOIR_OK ? waited : status;
}

static bool reaches(const chi_stream *s, const choir_device *d)
{
	return d->host_memory || d->table == s->device->table;
}

static choir_status copy_and_wait(chi_stream *s, void *to, const void *from, size_t bytes)
{
	CHOIR_TRY(chi_stream_copy(s, to, from, bytes));
	return chi_stream_wait(s);
}

static choir_status copy_with(
		chi_stream *s, void *to, const void *from, size_t bytes, chi_staging_buffer **staging)
{
	CHOIR_TRY(chi_stream_copy(s, to, from, bytes));
	return wait_with(s, staging);
}

// A NULL stream is the host's.
typedef struct {
	chi_stream *writer, *reader;
	char *to;
	const char *from;
} way_by_host;

static choir_status copy_piece(
		const way_by_host *w, size_t at, size_t piece, chi_staging_buffer **staging)
{
	char *memory = (*staging)->memory;
	choir_status status = CHOIR_OK;
	if (w->reader != NULL)
		status = copy_with(w->reader, memory, w->from + at, piece, staging);
	else
		memcpy(memory, w->from + at, piece);
	if (status == CHOIR_OK && w->writer != NULL)
		status = copy_with(w->writer, w->to + at, memory, piece, staging);
	else if (status == CHOIR_OK)
		memcpy(w->to + at, memory, piece);
	return status;
}

static choir_status copy_by_host(const way_by_host *w, size_t bytes)
{
	const size_t capacity = bytes < CHI_STAGING_BYTES ? bytes : CHI_STAGING_BYTES;
	choir_device *d = w->reader != NULL ? w->reader->device : w->writer->device;
	chi_staging_buffer *staging = chi_staging_buffer_new(d, capacity);
	CHOIR_TRY(chi_made(staging));
	choir_status status = CHOIR_OK;
	for (size_t at = 0; at < bytes && status == CHOIR_OK; at += capacity)
		status = copy_piece(w, at, bytes - at < capacity ? bytes - at : capacity, &staging);
	chi_staging_buffer_free(staging);
	return status;
}

choir_status chi_stream_fetch(chi_stream *s, void *to, const void *from, size_t bytes)
{
	const way_by_host w = { .reader = s, .to = to, .from = from };
	if (bytes == 0)
		return chi_stream_wait(s);
	return s->device->host_memory ? copy_and_wait(s, to, from, bytes) : copy_by_host(&w, bytes);
}

choir_status chi_stream_send(chi_stream *s, void *to, const void *from, size_t bytes)
{
	const way_by_host w = { .writer = s, .to = to, .from = from };
	if (bytes == 0)
		return chi_stream_wait(s);
	return s->device->host_memory || s->device->table->copies_at_once
			? copy_and_wait(s, to, from, bytes)
			: copy_by_host(&w, bytes);
}

choir_status chi_stream_post(chi_stream *s, void *to, const void *from, size_t bytes)
{
	if (s->device->host_memory || s->device->table->copies_at_once)
		return bytes == 0 ? CHOIR_OK : chi_stream_copy(s, to, from, bytes);
	if (bytes == 0 || bytes > CHI_STAGING_BYTES)
		return bytes == 0 ? CHOIR_OK : chi_stream_send(s, to, from, bytes);
	chi_staging_buffer *staging = chi_staging_buffer_new(s->device, bytes);
	CHOIR_TRY(chi_made(staging));
	memcpy(staging->memory, from, bytes);
	uint64_t event = CHI_STREAM_CLOSED;
	const choir_status queued = chi_stream_copy(s, to, staging->memory, bytes);
	const choir_status marked = queued == CHOIR_OK ? chi_stream_record_event(s, &event) : queued;
	if (queued == CHOIR_OK)
		chi_quarantine_keep(s, staging, marked == CHOIR_OK ? event : CHI_STREAM_CLOSED);
	else
		chi_staging_buffer_free(staging);
	return marked;
}

choir_status chi_stream_post_kept(chi_stream *s, void *to, const void *from, size_t bytes)
{
	choir_device *d = s->device;
	return d->table->copy == chi_remote_table.copy // a registered table is a copy
			? chi_device_failed(d, "copy", chi_remote_copy_kept(s->state, to, from, bytes))
			: chi_stream_post(s, to, from, bytes);
}

chi_staging_buffer *chi_stream_fetch_later(chi_stream *s, const void *from, size_t bytes)
{
	chi_staging_buffer *staging = chi_staging_buffer_new(s->device, bytes);
	if (staging == NULL || chi_stream_copy(s, staging->memory, from, bytes) == CHOIR_OK)
		return staging;
	chi_staging_buffer_free(staging);
	return NULL;
}

void chi_stream_take_fetched(chi_stream *s, chi_staging_buffer *fetched, void *to, size_t bytes)
{
	if (to == NULL) {
		chi_quarantine_keep(s, fetched, CHI_STREAM_CLOSED);
		return;
	}
	memcpy(to, fetched->memory, bytes);
	chi_staging_buffer_free(fetched);
}

static choir_status copy_here(chi_stream *s, choir_device *to_device, void *to,
		choir_device *from_device, const void *from, size_t bytes)
{
	if (to_device->host_memory)
		return chi_stream_fetch(s, to, from, bytes);
	return from_device->host_memory ? chi_stream_send(s, to, from, bytes)
									: copy_and_wait(s, to, from, bytes);
}

choir_status chi_device_copy(chi_stream *s, choir_device *to_device, void *to,
		choir_device *from_device, const void *from, size_t bytes)
{
	bool writes = reaches(s, to_device), reads = reaches(s, from_device);
	if (writes && reads)
		return copy_here(s, to_device, to, from_device, from, bytes);
	if (!writes && !reads)
		return choir_fail(CHOIR_INVALID,
				"copy from %s to %s: the stream belongs to %s, which reaches neither",
				from_device->name, to_device->name, s->device->name);
	// Work queued on s comes first. The other device needs a stream of its own.
	CHOIR_TRY(chi_stream_wait(s));
	chi_stream *other = chi_stream_new(writes ? from_device : to_device);
	CHOIR_TRY(chi_made(other));
	choir_status status;
	if (reaches(other, writes ? to_device : from_device))
		status = copy_here(other, to_device, to, from_device, from, bytes);
	else
		status = copy_by_host(
				&(way_by_host){ writes ? s : other, writes ? other : s, to, from }, bytes);
	chi_stream_free(other);
	return status;
}
