// Kernels of operations.
#pragma once

#include "device/device.h"
#include "op/kernel/kernel_list.h"

// NULL: the message lists known dtypes.
const choir_kernel_table *chi_kernel_find(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype);

// name NULL: any name.
const choir_kernel_table *chi_kernel_find_named(choir_device *d, const choir_kernel_call *call,
		const char *operation, const char *name, choir_dtype dtype);

// With the registry's lock. dtypes: bits 1 << CHOIR_F32 ..
choir_status chi_kernel_add_builtin(const choir_kernel_table *table);
choir_status chi_kernel_add_dtypes(choir_kernel_table table, uint32_t dtypes);
choir_status chi_kernel_register(chi_kernel_lists *lists, const char *name);

// In TF32. NULL, without a failure: none takes the call.
const choir_kernel_table *chi_kernel_find_tf32(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype);
bool chi_kernel_has_tf32(const choir_device *d, const char *operation);

bool chi_kernel_exists(const choir_device *d, const char *operation, choir_dtype dtype);
bool chi_kernel_has_native_bf16(void);
// "none", "AVX512_BF16" or "AMX". Their sums have different bits.
const char *chi_kernel_bf16_instructions(void);

bool chi_kernel_is_builtin(const choir_kernel_table *kernel);

// It has choir_update_attributes (kernel_table.h, "Updates").
bool chi_kernel_is_update(const char *operation);

// "oneDNN 2.7.2 (1a9f2b)" or "none".
enum { CHI_KERNEL_LIBRARY = 64 };
const char *chi_kernel_library(char text[CHI_KERNEL_LIBRARY]);

// Scratch memory is frame's; frame NULL: freed after a wait.
choir_status chi_kernel_launch(
		choir_frame *frame, chi_stream *stream, const char *operation, choir_kernel_call *call);
// n > 0 independent calls of one dtype, with their tensors and attributes.
choir_status chi_kernel_run_all(
		chi_stream *stream, const char *operation, size_t n, choir_kernel_call call[]);
choir_status chi_kernel_run(chi_stream *stream, const char *operation, size_t n,
		const choir_buffer in[], choir_buffer *out, const void *attributes);
// A call that is not empty. CHOIR_UNSUPPORTED: no such kernel.
choir_status chi_kernel_run_named(
		chi_stream *stream, const char *operation, const char *name, choir_kernel_call *call);
