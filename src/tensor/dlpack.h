// The used part of DLPack 1.0's binary interface, written from the specification
// (https://dmlc.github.io/dlpack/latest/c_api.html).
#pragma once

#include <stdint.h>

enum { DL_MAJOR = 1, DL_MINOR = 0 };
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };
enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };

struct dl_version {
	uint32_t major, minor;
};

struct dl_device {
	int32_t type, index;
};

struct dl_type {
	uint8_t code, bits;
	uint16_t lanes;
};

struct dl_tensor {
	void *data;
	struct dl_device device;
	int32_t rank;
	struct dl_type type;
	int64_t *shape;
	int64_t *strides; // in elements; NULL: packed, row-major
	uint64_t byte_offset;
};

// Of another major version, only version and deleter may be read.
struct DLManagedTensorVersioned {
	struct dl_version version;
	void *context;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	struct dl_tensor tensor;
};
