// A device has a kind and an index. "cpu:0" and "cpu:1" share memory, and may share cores.
// choir_register_device (extend/device_table.h) adds kinds.
//
// A device is opened when its name is first looked up, and is never freed. Equal devices have
// equal pointers.
// Threads: any.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_device choir_device;

// The number of devices of a kind, such as "cpu" or "CPU"; NULL: of all kinds. For "cpu", the
// processors that the affinity mask and the cgroup's quota allow this process; names up to
// cpu:1023 are valid. 0: an unknown kind or number.
int choir_device_count(const char *kind);

// Finds a device by its name: "cpu:0", "cpu" (index 0), or TensorFlow's names "CPU:0", "/cpu:0",
// "/device:CPU:0" and "/job:worker/replica:0/task:1/device:CPU:0", whose job, replica and task are
// ignored. A kind may have aliases (extend/device_table.h). "remote:HOST:PORT/cpu:0" and
// "remote:unix:PATH/cpu:0" are devices of a server (serve.h).
//
// CHOIR_NOT_FOUND: an unknown name; no server listens at the address. CHOIR_TIMEOUT: another
// thread has been opening the device for 60 s. CHOIR_STATE: the server refuses this program.
// Opening the device may also fail.
choir_device *choir_device_find(const char *name);

// The canonical name, "cpu:0".
const char *choir_device_name(const choir_device *d);

// What is known about a device.
typedef struct {
	size_t size;
	const char *kind; // "cpu"
	int index; // 1 for "cpu:1"
	int cores; // for "cpu", all cores that this process may use
	uint64_t memory_total, memory_free; // bytes; 0: unknown
} choir_device_info;

// Writes the device's present state to *info, at most info->size bytes, which the caller sets.
CHOIR_MUST_CHECK choir_status choir_device_describe(
		const choir_device *d, choir_device_info *info);

// Writes line i (from 0) of a report on the kind "gpu": the driver, the libraries and each device,
// or why there is none. False: after the last line.
bool choir_device_report(const char *kind, int i, char *line, size_t size);

CHOIR_C_END
