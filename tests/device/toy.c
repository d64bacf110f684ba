// A synchronous device whose addresses the host cannot use.
#include "device/toy.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const uintptr_t FLIP = (uintptr_t) 1 << 63;

// Host addresses have the bit clear.
static void *inside(const void *address)
{
	return (void *) ((uintptr_t) address & ~FLIP);
}

static choir_status open_toy(void *self, int index)
{
	(void) self;
	(void) index;
	return CHOIR_OK;
}

static choir_status allocate(void *self, size_t bytes, void **memory)
{
	(void) self;
	void *p = bytes > (size_t) 1 << 40 ? NULL : aligned_alloc(64, (bytes / 64 + 1) * 64);
	*memory = p == NULL ? NULL : (void *) ((uintptr_t) p | FLIP);
	return p == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static void release(void *self, void *memory, size_t bytes)
{
	(void) self;
	(void) bytes;
	free(inside(memory));
}

static choir_status open_stream(void *self, void *stream)
{
	(void) self;
	(void) stream;
	return CHOIR_OK;
}

static choir_status copy(void *stream, void *to, const void *from, size_t bytes)
{
	(void) stream;
	if (bytes > 0)
		memcpy(inside(to), inside(from), bytes);
	return CHOIR_OK;
}

static choir_status fill(void *stream, void *to, int byte, size_t bytes)
{
	(void) stream;
	if (bytes > 0)
		memset(inside(to), byte, bytes);
	return CHOIR_OK;
}

static choir_status mark_stream(void *stream, uint64_t *event)
{
	(void) stream;
	*event = 0;
	return CHOIR_OK;
}

static choir_status wait_for(void *stream, void *other, uint64_t event)
{
	(void) stream;
	(void) other;
	(void) event;
	return CHOIR_OK;
}

static choir_status wait_stream(void *stream, uint64_t event, double seconds)
{
	(void) stream;
	(void) event;
	(void) seconds;
	return CHOIR_OK;
}

choir_device_table toy_table(const char *kind, int (*count)(void))
{
	return (choir_device_table){
		.size = sizeof(choir_device_table),
		.version = CHOIR_TABLE_VERSION,
		.kind = kind,
		.count = count,
		.open = open_toy,
		.allocate = allocate,
		.release = release,
		.stream_open = open_stream,
		.copy = copy,
		.fill = fill,
		.record_event = mark_stream,
		.wait_event = wait_for,
		.wait = wait_stream,
	};
}
