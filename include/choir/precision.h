// Mixed precision: which operations run in 16 bits. In mixed precision, variables, their gradients
// and optimizers stay f32. Products, convolutions, attention and the operations between them run
// in f16 or bf16 and keep results of 16 bits, which need half the memory. Sums inside an operation
// are made in f32, and a result is rounded once, to nearest, ties to even. Softmax, losses, sums
// and statistics of norms are f32.
//
// A strategy has a precision for all of its replicas (choir_strategy_options), a layer may have
// its own (choir_layer_set_precision), and so may a part of a step (choir_frame_set_precision).
// The table of rules says what each operation runs in. The meaning is that of Keras' policies
// (mixed_bfloat16) and of PyTorch's autocast.
// Errors: as in tensor.h.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

// The dtypes in which operations compute.
typedef enum {
	CHOIR_PRECISION_DEFAULT, // f32 for a strategy; for a layer that of the frame
	CHOIR_PRECISION_F32,
	CHOIR_PRECISION_MIXED_BF16, // the range of f32, 8 bits of digits
	// 11 bits of digits, numbers from 6e-8 to 65504. Gradients need a loss scale (optimizer.h).
	CHOIR_PRECISION_MIXED_F16,
	// Measures f32 and mixed bf16 on this machine, and takes the faster; f32 on a CPU without
	// instructions for bf16. Only of a strategy.
	CHOIR_PRECISION_AUTO
} choir_precision;

// "f32", "mixed_bf16", "mixed_f16", "auto", "default", or "unknown".
const char *choir_precision_name(choir_precision p);

// The precision of the operations that follow in f. Returns the one before, to set it again.
// CHOIR_PRECISION_DEFAULT and AUTO change nothing. NULL: returns CHOIR_PRECISION_F32.
choir_precision choir_frame_set_precision(choir_frame *f, choir_precision p);
// F32 for NULL.
choir_precision choir_frame_precision(const choir_frame *f);

// What an operation does with operands of f32 and of 16 bits.
typedef enum {
	// Runs in 16 bits: f32 operands are rounded. For a variable, this is done once after each of
	// its updates.
	CHOIR_PRECISION_ALLOW,
	CHOIR_PRECISION_KEEP, // runs in f32: operands of 16 bits are widened
	// Runs in f32 if an operand is f32, else in 16 bits. Variables and plain numbers do not count:
	// beside an operand of 16 bits they are rounded.
	CHOIR_PRECISION_PROMOTE
} choir_precision_rule;

// The rule of one operation.
typedef struct {
	const char *operation; // as in extend/kernel_table.h
	choir_precision_rule rule;
	uint32_t operands; // those to which the rule applies; bit i: in[i]. Others stay as they are.
	bool wide_result; // the result is f32, even of operands of 16 bits
} choir_precision_row;

// The rules, by operation. An operation that is not listed, such as a program's own, keeps f32.
const choir_precision_row *choir_precision_rules(size_t *count);

// Whether operation runs in the 16 bits of p on device d: its rule is not KEEP, and d has a kernel
// for this dtype. d NULL: cpu:0.
bool choir_precision_is_narrow(choir_precision p, const char *operation, choir_device *d);

// Whether this processor multiplies the 16-bit numbers of p faster than f32, so that a mixed
// precision may be worth it. Without such instructions the results are about the same, but take
// longer.
bool choir_precision_is_native(choir_precision p);

// Measures a few layers forward and backward on device d (NULL: cpu:0), and sets *cost to the time
// in precision p divided by the time in f32. Takes about 50 ms. CHOIR_INVALID: p is DEFAULT, AUTO
// or unknown.
CHOIR_MUST_CHECK choir_status choir_precision_measure(
		choir_precision p, choir_device *d, double *cost);

CHOIR_C_END
