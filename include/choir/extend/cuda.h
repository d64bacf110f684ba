// The interface between libchoir and libchoir-cuda, the library for NVIDIA's GPUs. libchoir is not
// linked with CUDA. On a machine with NVIDIA's driver, it opens libchoir-cuda when a program first
// asks for a device of the kind "gpu". Of Choir's functions, libchoir-cuda calls only those in
// choir_cuda_argument.
#pragma once

#include "../log.h"
#include "device_table.h"

CHOIR_C_BEGIN

// The version of this interface. libchoir refuses a libchoir-cuda of another version.
#define CHOIR_CUDA_PLUGIN_VERSION 2

struct choir_kernel_table; // kernel_table.h
struct choir_kernel_call; // kernel_table.h
struct choir_cross_device_ops_table; // cross_device_ops_table.h

// The argument of open: functions of libchoir.
typedef struct {
	size_t size;
	choir_status (*fail)(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);
	const char *(*error)(void); // the text of this thread's last failure
	void (*log)(choir_log_level level, const char *fmt, ...) CHOIR_PRINTF(2, 3);
	// The self of a device of the kind "gpu"; NULL for another kind.
	void *(*device_self)(const choir_device *d);
	unsigned (*fork_generation)(void); // differs in the child of a fork
	// Releases a device's memory that libchoir keeps unused. False: there was none.
	bool (*release_unused)(const choir_device *d);
} choir_cuda_argument;

// A kernel of the CPU, for calls without a kernel in libchoir-cuda.
typedef struct {
	size_t attribute_bytes; // of the operation's attributes
	size_t written; // run writes to out and to this number of inputs, from the first on
	// Computes the call on host memory, on a thread of CUDA. call->user is this struct's user.
	choir_status (*run)(const struct choir_kernel_call *call);
	const void *user;
} choir_cuda_host_kernel;

// libchoir-cuda's one symbol is a constant of this type. libchoir calls the functions after open
// only if open has succeeded.
#define CHOIR_CUDA_PLUGIN_SYMBOL "choir_cuda_plugin_data"
typedef struct {
	uint32_t version; // CHOIR_CUDA_PLUGIN_VERSION
	// Looks for GPUs. Called once. CHOIR_NOT_FOUND: the machine has no GPU, or the driver is
	// missing or too old.
	choir_status (*open)(const choir_cuda_argument *argument);
	const choir_device_table *device; // of the kind "gpu"
	// The i-th tables of kernels and of cross-device operations. NULL: after the last.
	const struct choir_kernel_table *(*kernel)(size_t i);
	const struct choir_cross_device_ops_table *(*cross_device_ops)(size_t i);
	// Queues a copy of the inputs to the host, the host kernel, and a copy of the results to the
	// device. If the kernel fails, the stream's next wait returns the failure.
	choir_status (*queue_host_kernel)(
			const struct choir_kernel_call *call, const choir_cuda_host_kernel *kernel);
	// Writes line i of a report on the driver, the libraries and the GPUs. False: after the last.
	// Threads: any.
	bool (*describe)(int i, char *line, size_t size);
} choir_cuda_plugin;

CHOIR_C_END
