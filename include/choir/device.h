// Where tensors live and operations run. A device is a name for a share of a machine: "cpu:0" and
// "cpu:1" have the same memory and need not be different cores, so there may be more of them than
// cores, or fewer. The kind "cpu" is built in; others are added by choir_register_device
// (extend/device.h). Devices are opened when their name is first asked for and live as long as the
// program: they are never freed, and the pointer is the device. Threads: any.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_device choir_device;

// Devices of a kind ("cpu"; case does not matter; NULL: of all kinds) that a program may take
// without naming them. For "cpu": the processors that this process may use, by its affinity mask
// and the quota of its cgroup; there are more by name, up to cpu:1023. For another kind of which
// there are as many as named (extend/device.h), and for an unknown one: 0.
int choir_device_count(const char *kind);

// The device of a name, always the same one. Names are "cpu:0", or "cpu" for index 0, and
// TensorFlow's: "CPU:0", "/cpu:0", "/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0",
// of which job, replica and task are read and left out. NULL after a failure: CHOIR_NOT_FOUND for
// another spelling, kind or index, with the list of the devices there are; CHOIR_NO_MEMORY;
// CHOIR_TIMEOUT if another thread has been opening the device for 60 s; or what the device's own
// open says.
choir_device *choir_device_find(const char *name);

// The one canonical spelling, "cpu:0"; lives as long as the device. "" for NULL.
const char *choir_device_name(const choir_device *d);

typedef struct {
	size_t size; // of this struct, set by the caller
	const char *kind; // "cpu"; lives as long as the device
	int index; // 1 of "cpu:1"
	int cores; // that work for it; for "cpu" all that this process may use
	uint64_t memory_total, memory_free; // bytes; 0: not known
} choir_device_info;

// Fills *info in, as things are now, as much of it as info->size covers. CHOIR_INVALID: d or info
// is NULL, or info->size does not even cover size itself. Threads: any.
CHOIR_MUST_CHECK choir_status choir_device_describe(
		const choir_device *d, choir_device_info *info);

CHOIR_C_END
