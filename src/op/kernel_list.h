// The built-in kernels as lists: what each serves and how it runs. The registry takes them one
// dtype at a time; tests find them by name. Lists are constant.
#pragma once

#include "choir/extend/kernel_table.h"

typedef struct {
	const char *operation;
	uint32_t dtypes; // a bit for each, 1 << CHOIR_F32 and so on
	size_t attribute_bytes;
	choir_status (*run)(const choir_kernel_call *call);
	size_t (*scratch)(const choir_kernel_call *call);
	int (*score)(const choir_kernel_call *call);
	const void *user;
} chi_kernel_spec;

typedef struct {
	const chi_kernel_spec *specs;
	size_t count;
} chi_kernel_list;

enum {
	CHI_F32 = 1 << CHOIR_F32,
	CHI_F64 = 1 << CHOIR_F64,
	CHI_REAL = CHI_F32 | CHI_F64,
	CHI_ARITHMETIC = CHI_REAL | 1 << CHOIR_I32 | 1 << CHOIR_I64 | 1 << CHOIR_U8,
	CHI_ALL = CHI_ARITHMETIC | 1 << CHOIR_BOOL | 1 << CHOIR_F16 | 1 << CHOIR_BF16
};

// The index-th list of a library. One without specs is the end, at once where the library has no
// kernels for this processor.
typedef chi_kernel_list chi_kernel_lists(size_t index);
// Registers every spec of the lists for the CPU, for every dtype it serves.
void chi_kernel_register(chi_kernel_lists *lists, const char *name);
