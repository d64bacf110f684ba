// Devices: "cpu:0" and "cpu:1" share memory and perhaps cores. choir_register_device
// (extend/device_table.h) adds kinds to "cpu".
//
// A device is opened when its name is first looked up, and is never freed. Two devices are the
// same if their pointers are equal.
// Threads: any thread may make these calls.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_device choir_device;

// The number of devices of a kind, like "cpu" or "CPU"; NULL: the sum over all kinds. For "cpu":
// the processors that this process may use, by its affinity mask and its cgroup's quota; but names
// up to cpu:1023 are valid. 0: the kind is unknown or has no fixed number of devices.
int choir_device_count(const char *kind);

// Finds a device by its name: "cpu:0", "cpu" for index 0, or a TensorFlow name: "CPU:0", "/cpu:0",
// "/device:CPU:0" or "/job:worker/replica:0/task:1/device:CPU:0". Job, replica and task are
// ignored. A kind may have aliases (extend/device_table.h). "remote:HOST:PORT/cpu:0" and
// "remote:unix:PATH/cpu:0" are devices of a server (serve.h). CHOIR_NOT_FOUND: an unknown name;
// nobody listens at the address. CHOIR_TIMEOUT: another thread has been opening it for 60 s.
// CHOIR_STATE: the server refuses this program. Also fails if the device cannot be opened.
choir_device *choir_device_find(const char *name);

// The canonical name, "cpu:0".
const char *choir_device_name(const choir_device *d);

// What is known about a device.
typedef struct {
	size_t size;
	const char *kind; // "cpu"
	int index; // 1 for "cpu:1"
	int cores; // for "cpu" all cores that this process may use
	uint64_t memory_total, memory_free; // bytes; 0: unknown
} choir_device_info;

// Writes the device's present state to *info, up to info->size bytes, which the caller sets.
CHOIR_MUST_CHECK choir_status choir_device_describe(
		const choir_device *d, choir_device_info *info);

// Writes line i, from 0, of a report on a kind of devices: the driver, the libraries and each
// device, or why there is no device. Only "gpu" has one. False: no line i.
bool choir_device_report(const char *kind, int i, char *line, size_t size);

CHOIR_C_END
