// Lists of kernels, for the registry and tests.
#pragma once

#include "choir/extend/kernel_table.h"

typedef struct {
	const char *operation;
	uint32_t dtypes; // bits 1 << CHOIR_F32 ..
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
	CHI_BF16 = 1 << CHOIR_BF16,
	CHI_HALF = CHI_BF16 | 1 << CHOIR_F16,
	CHI_REAL = CHI_F32 | CHI_F64,
	CHI_ARITHMETIC = CHI_REAL | 1 << CHOIR_I32 | 1 << CHOIR_I64 | 1 << CHOIR_U8,
	CHI_COMPARABLE = CHI_ARITHMETIC | 1 << CHOIR_BOOL,
	CHI_ALL = CHI_COMPARABLE | CHI_HALF
};

typedef chi_kernel_list chi_kernel_lists(size_t index);
