// Numbers of PyTorch in torch_stored.txt: a line with each formula, and one with the sums of its
// result and of each gradient.
#pragma once

#include "op/op.h"

#include <stdio.h>

// Compares t with the next line, and fails the test if it is another formula or has other numbers.
// what: "result" or "gradient".
void torch_stored_check(FILE *stored, const char *formula, const char *what, choir_tensor *t);
