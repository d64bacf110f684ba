// Streams: the calls through which every other room queues work. They add to the slots of a table
// what all kinds need alike: messages that name the device, order between streams of different
// kinds, and copies between memories that have nothing in common.
#include "base/alloc.h"
#include "base/error.h"
#include "base/size.h"
#include "device/internal.h"

#include <stddef.h>

enum { STAGE_BYTES = 1 << 20 };

static const double WAIT_SECONDS = 60.0;

typedef struct {
	chi_stream stream;
	max_align_t state[];
} stream_block;

chi_stream *chi_stream_new(choir_device *d)
{
	size_t bytes;
	if (!chi_size_add(offsetof(stream_block, state), d->table->stream_size, &bytes)) {
		choir_fail(CHOIR_NO_MEMORY, "%s: a stream of %zu bytes", d->name, d->table->stream_size);
		return NULL;
	}
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
	chi_free(s); // the first member of its block
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

choir_status chi_stream_mark(chi_stream *s, uint64_t *mark)
{
	choir_device *d = s->device;
	return chi_device_failed(d, "mark", d->table->mark(s->state, mark));
}

choir_status chi_stream_wait_for(chi_stream *s, chi_stream *other, uint64_t mark)
{
	choir_device *d = s->device;
	// Kinds know nothing of each other's queues: the caller waits between them.
	if (d->table != other->device->table)
		return chi_stream_wait_mark(other, mark, WAIT_SECONDS);
	return chi_device_failed(d, "wait_for", d->table->wait_for(s->state, other->state, mark));
}

choir_status chi_stream_wait_mark(chi_stream *s, uint64_t mark, double seconds)
{
	choir_device *d = s->device;
	return chi_device_failed(d, "wait", d->table->wait(s->state, mark, seconds));
}

choir_status chi_stream_wait(chi_stream *s)
{
	uint64_t mark;
	CHOIR_TRY(chi_stream_mark(s, &mark));
	return chi_stream_wait_mark(s, mark, WAIT_SECONDS);
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

// Between two memories that only the host can reach both of, piece by piece: reader is a stream
// that reaches from, writer one that reaches to.
static choir_status copy_by_host(
		chi_stream *writer, void *to, chi_stream *reader, const void *from, size_t bytes)
{
	size_t room = bytes < STAGE_BYTES ? bytes : STAGE_BYTES;
	char *stage = chi_alloc_aligned(room);
	if (stage == NULL)
		return CHOIR_NO_MEMORY;
	choir_status status = CHOIR_OK;
	for (size_t at = 0; at < bytes && status == CHOIR_OK; at += room) {
		size_t piece = bytes - at < room ? bytes - at : room;
		status = copy_and_wait(reader, stage, (const char *) from + at, piece);
		if (status == CHOIR_OK)
			status = copy_and_wait(writer, (char *) to + at, stage, piece);
	}
	chi_free(stage);
	return status;
}

choir_status chi_device_copy(chi_stream *s, choir_device *to_device, void *to,
		choir_device *from_device, const void *from, size_t bytes)
{
	bool writes = reaches(s, to_device), reads = reaches(s, from_device);
	if (writes && reads)
		return copy_and_wait(s, to, from, bytes);
	if (!writes && !reads)
		return choir_fail(CHOIR_INVALID, "copy from %s to %s: the stream is of %s",
				from_device->name, to_device->name, s->device->name);
	// What is queued on s comes first, and the other device needs a stream of its own.
	CHOIR_TRY(chi_stream_wait(s));
	chi_stream *other = chi_stream_new(writes ? from_device : to_device);
	if (other == NULL)
		return choir_error_status();
	choir_status status;
	if (reaches(other, writes ? to_device : from_device))
		status = copy_and_wait(other, to, from, bytes);
	else
		status = copy_by_host(writes ? s : other, to, writes ? other : s, from, bytes);
	chi_stream_free(other);
	return status;
}
