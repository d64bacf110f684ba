// Kernels of operations.
#pragma once

#include "choir/extend/kernel_table.h"
#include "device/device.h"

// NULL: the message lists known dtypes.
const choir_kernel_table *chi_kernel_find(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype);

// NULL: of any name.
const choir_kernel_table *chi_kernel_find_named(choir_device *d, const choir_kernel_call *call,
		const char *operation, const char *name, choir_dtype dtype);

// With the registry's lock.
choir_status chi_kernel_add_builtin(const choir_kernel_table *table);

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
