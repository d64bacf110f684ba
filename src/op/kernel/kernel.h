// Finding an operation's kernel, and the library that the kernels come from.
#pragma once

#include "choir/extend/kernel_table.h"
#include "device/device.h"

// Finds an operation's kernel. NULL: the message lists the dtypes that have one.
const choir_kernel_table *chi_kernel_find(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype);

// Finds only kernels of this name; NULL: of any name.
const choir_kernel_table *chi_kernel_find_named(choir_device *d, const choir_kernel_call *call,
		const char *operation, const char *name, choir_dtype dtype);

// Adds a built-in kernel for the CPU. The caller holds the registry's lock. CHOIR_NO_MEMORY.
choir_status chi_kernel_add_builtin(const choir_kernel_table *table);

// Whether an operation has a kernel for dtype, for some calls.
bool chi_kernel_exists(const choir_device *d, const char *operation, choir_dtype dtype);
// Whether products of bf16 on the CPU use instructions for them.
bool chi_kernel_has_native_bf16(void);

bool chi_kernel_is_builtin(const choir_kernel_table *kernel);

// The kernel library: "oneDNN 2.7.2 (1a9f2b)" or "none". Bits change with the version.
enum { CHI_KERNEL_LIBRARY = 64 };
const char *chi_kernel_library(char text[CHI_KERNEL_LIBRARY]);
