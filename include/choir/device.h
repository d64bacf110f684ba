// Where tensors live and operations run; devices live as long as the program. Names: "cpu:0";
// TensorFlow's ("/job:worker/task:1/device:CPU:0", "/cpu:0", "CPU:0") are read too.
// Threads: any.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_device choir_device;

int choir_device_count(const char *kind); // "cpu", "cuda"; NULL: all
choir_device *choir_device_find(const char *name); // NULL: CHOIR_NOT_FOUND, the text lists all
const char *choir_device_name(const choir_device *d);
typedef struct {
	size_t size; // set by the caller
	const char *kind;
	int index, cores;
	uint64_t memory_total, memory_free; // bytes; 0: not known
} choir_device_info;
choir_status choir_device_describe(const choir_device *d, choir_device_info *info);

CHOIR_C_END
