// Names for shares of the machine, with one memory, in any number. Calls complete the work, so
// streams have no state.
#include "base/alloc.h"
#include "base/processors.h"
#include "device/device.h"

#include <string.h>
#include <unistd.h>

enum { MAX_DEVICES = 1024 };

static int count_devices(void)
{
	return CHOIR_NONE;
}

static choir_status open_device(void *self, int index)
{
	(void) self;
	if (index >= MAX_DEVICES)
		return choir_fail(
				CHOIR_NOT_FOUND, "no such device: the last one is cpu:%d", MAX_DEVICES - 1);
	return CHOIR_OK;
}

static void describe_device(const void *self, choir_device_info *info)
{
	(void) self;
	long page = sysconf(_SC_PAGESIZE), all = sysconf(_SC_PHYS_PAGES);
	long available = sysconf(_SC_AVPHYS_PAGES);
	info->cores = chi_processor_count();
	if (page <= 0 || all <= 0 || available < 0)
		return;
	info->memory_total = (uint64_t) page * (uint64_t) all;
	info->memory_free = (uint64_t) page * (uint64_t) available;
}

static choir_status allocate(void *self, size_t bytes, void **memory)
{
	(void) self;
	*memory = chi_alloc_aligned(bytes);
	return *memory == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static void release(void *self, void *memory, size_t bytes)
{
	(void) self;
	(void) bytes;
	chi_free(memory);
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
		memcpy(to, from, bytes);
	return CHOIR_OK;
}

static choir_status fill(void *stream, void *to, int byte, size_t bytes)
{
	(void) stream;
	if (bytes > 0)
		memset(to, byte, bytes);
	return CHOIR_OK;
}

static choir_status mark_stream(void *stream, uint64_t *event)
{
	(void) stream;
	*event = 0;
	return CHOIR_OK;
}

static choir_status wait_for(void *stream, void *other_stream, uint64_t event)
{
	(void) stream;
	(void) other_stream;
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

const choir_device_table chi_cpu_table = {
	.size = sizeof(choir_device_table),
	.version = CHOIR_TABLE_VERSION,
	.host_memory = true,
	.kind = "cpu",
	.count = count_devices,
	.open = open_device,
	.describe = describe_device,
	.allocate = allocate,
	.release = release,
	.stream_open = open_stream,
	.copy = copy,
	.fill = fill,
	.record_event = mark_stream,
	.wait_event = wait_for,
	.wait = wait_stream,
	.immediate = true,
};
