// The interface between libchoir and libchoir-cuda, the library for NVIDIA's GPUs. libchoir links
// no CUDA. It opens libchoir-cuda when a program first asks for a device of the kind "gpu", on a
// machine that has NVIDIA's driver. libchoir-cuda calls only the functions of libchoir that it
// gets in its argument. So it works with the static and with the shared libchoir.
#pragma once

#include "../log.h"
#include "device_table.h"

CHOIR_C_BEGIN

// The version of this interface. libchoir opens only a libchoir-cuda of its own version.
#define CHOIR_CUDA_PLUGIN_VERSION 1

struct choir_kernel_table; // kernel_table.h
struct choir_kernel_call; // kernel_table.h
struct choir_cross_device_ops_table; // cross_device_ops_table.h

// What libchoir gives to libchoir-cuda.
typedef struct {
	size_t size;
	choir_status (*fail)(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);
	const char *(*error)(void); // the text of this thread's last failure
	void (*log)(choir_log_level level, const char *fmt, ...) CHOIR_PRINTF(2, 3);
	// The self of a device of the kind "gpu"; NULL for a device of another kind.
	void *(*device_self)(const choir_device *d);
	unsigned (*fork_generation)(void); // changes in the child of a fork
} choir_cuda_argument;

// A kernel of the CPU that serves a call for which libchoir-cuda has no kernel.
typedef struct {
	size_t attribute_bytes; // of the operation's attributes
	size_t written; // the first inputs, which run writes besides out
	// Computes the call on host memory, on a thread of CUDA. call->user is the user below.
	choir_status (*run)(const struct choir_kernel_call *call);
	const void *user;
} choir_cuda_host_kernel;

// The library has one symbol, a constant of this type. All functions but open are called after
// open has succeeded.
#define CHOIR_CUDA_PLUGIN_SYMBOL "choir_cuda_plugin_data"
typedef struct {
	uint32_t version; // CHOIR_CUDA_PLUGIN_VERSION
	// Looks for GPUs. CHOIR_NOT_FOUND: there are none, or the driver is missing or too old for
	// them. Called once.
	choir_status (*open)(const choir_cuda_argument *argument);
	const choir_device_table *device; // of the kind "gpu"
	// The library's i-th kernel, and its i-th cross-device operations; NULL after the last.
	const struct choir_kernel_table *(*kernel)(size_t i);
	const struct choir_cross_device_ops_table *(*cross_device_ops)(size_t i);
	// Queues a copy of the inputs to the host, the host kernel, and a copy of what it writes to
	// the device. The stream's next wait returns a failure of the kernel.
	choir_status (*queue_host_kernel)(
			const struct choir_kernel_call *call, const choir_cuda_host_kernel *kernel);
	// Writes line i of a report on the driver, the libraries and the GPUs: "cuBLAS 13.0". False
	// after the last line. Threads: any.
	bool (*describe)(int i, char *line, size_t size);
} choir_cuda_plugin;

CHOIR_C_END
