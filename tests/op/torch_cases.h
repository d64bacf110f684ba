// Formulas of PyTorch and the operations of Choir that give the same, for torch_test.c.
#pragma once

#include "op/given.h"

enum { TORCH_CASE_INPUTS = 4 };

typedef struct {
	const char *formula; // of a, b, c, d
	choir_formula_fn *fn;
	size_t n;
	choir_shape shape[TORCH_CASE_INPUTS];
	bool positive; // inputs of at least 0.5
} torch_case;

extern const torch_case torch_cases[];
extern const size_t n_torch_cases;
