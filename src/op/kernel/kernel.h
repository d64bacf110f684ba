// An operation's kernel, and the kernels' library.
#pragma once

#include "choir/extend/kernel_table.h"
#include "device/device.h"

// NULL: the message lists the dtypes that have one.
const choir_kernel_table *chi_kernel_find(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype);

// Of this name; NULL: of any.
const choir_kernel_table *chi_kernel_find_named(choir_device *d, const choir_kernel_call *call,
		const char *operation, const char *name, choir_dtype dtype);

// For the CPU. The caller holds the registry's lock.
choir_status chi_kernel_add_builtin(const choir_kernel_table *table);

// For some calls.
bool chi_kernel_exists(const choir_device *d, const char *operation, choir_dtype dtype);
// On the CPU.
bool chi_kernel_has_native_bf16(void);

bool chi_kernel_is_builtin(const choir_kernel_table *kernel);

// Its attributes are choir_update_attributes (kernel_table.h, "Updates").
bool chi_kernel_is_update(const char *operation);

// "oneDNN 2.7.2 (1a9f2b)" or "none". Bits change with the version.
enum { CHI_KERNEL_LIBRARY = 64 };
const char *chi_kernel_library(char text[CHI_KERNEL_LIBRARY]);
