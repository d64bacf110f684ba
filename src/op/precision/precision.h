// Brings operands to the dtype in which an operation runs.
#pragma once

#include "choir/precision.h"
#include "op/op.h"

// Replaces operands by recorded casts, by op's rule. False: recorded in f.
bool chi_precision_fit(const chi_op *op, choir_frame *f, size_t n, choir_tensor *in[]);

choir_dtype chi_precision_dtype(choir_precision p);

// An f32 y in the 16 bits of its frame's precision, else y. NULL gives NULL.
choir_tensor *chi_precision_narrow(choir_tensor *y);

// Whether t is an f32 tensor in 16 bits: its gradient may be f32.
bool chi_precision_takes_wide(const choir_tensor *t);
// The dtype of the gradient of an operation's operand.
static inline choir_dtype chi_precision_gradient(const choir_tensor *t)
{
	return chi_precision_takes_wide(t) ? CHOIR_F32 : t->dtype;
}
