// The slots of a table that its maker left out. They are filled when the table is registered, so
// that no caller ever asks whether a slot is there: what can fail says that it is missing, what
// cannot does nothing.
#include "base/status.h"
#include "device/quarantine.h"

static choir_status missing(const char *slot)
{
	return choir_fail(
			CHOIR_UNSUPPORTED, "%s: the table of this kind of device has no such slot", slot);
}

static int missing_count(void)
{
	return 0;
}

static choir_status missing_open(void *self, int index)
{
	(void) self;
	(void) index;
	return missing("open");
}

static void missing_close(void *self)
{
	(void) self;
}

static void missing_describe(const void *self, choir_device_info *info)
{
	(void) self;
	(void) info;
}

static choir_status missing_allocate(void *self, size_t bytes, void **memory)
{
	(void) self;
	(void) bytes;
	*memory = NULL;
	return missing("allocate");
}

static void missing_release(void *self, void *memory, size_t bytes)
{
	(void) self;
	(void) memory;
	(void) bytes;
}

static choir_status missing_stream_open(void *self, void *stream)
{
	(void) self;
	(void) stream;
	return missing("stream_open");
}

static choir_status missing_copy(void *stream, void *to, const void *from, size_t bytes)
{
	(void) stream;
	(void) to;
	(void) from;
	(void) bytes;
	return missing("copy");
}

static choir_status missing_fill(void *stream, void *to, int byte, size_t bytes)
{
	(void) stream;
	(void) to;
	(void) byte;
	(void) bytes;
	return missing("fill");
}

static choir_status missing_mark(void *stream, uint64_t *event)
{
	(void) stream;
	*event = 0;
	return missing("mark");
}

static choir_status missing_wait_for(void *stream, void *other_stream, uint64_t event)
{
	(void) stream;
	(void) other_stream;
	(void) event;
	return missing("wait_for");
}

static choir_status missing_wait(void *stream, uint64_t event, double seconds)
{
	(void) stream;
	(void) event;
	(void) seconds;
	return missing("wait");
}

#define FILL(slot, stub) table->slot = table->slot != NULL ? table->slot : (stub)

void chi_device_fill_stubs(choir_device_table *table)
{
	FILL(count, missing_count);
	FILL(open, missing_open);
	FILL(close, missing_close);
	FILL(describe, missing_describe);
	FILL(allocate, missing_allocate);
	FILL(release, missing_release);
	FILL(stream_open, missing_stream_open);
	FILL(stream_close, missing_close);
	FILL(copy, missing_copy);
	FILL(fill, missing_fill);
	FILL(mark, missing_mark);
	FILL(wait_for, missing_wait_for);
	FILL(wait, missing_wait);
}

choir_status chi_device_failed(const choir_device *d, const char *slot, choir_status status)
{
	if (status == CHOIR_OK)
		return CHOIR_OK;
	if (choir_error_status() == status) {
		chi_error_prefix("%s", d->name);
		return status;
	}
	// CHOIR_END is no failure and would leave no text, by which callers would take it for none.
	return choir_fail(status == CHOIR_END ? CHOIR_INVALID : status, "%s: %s failed (%s)", d->name,
			slot, choir_status_name(status));
}
