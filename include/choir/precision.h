// Mixed precision: some operations compute with 16-bit numbers. Variables, their gradients and the
// slots of optimizers stay f32. Products, convolutions, attention and the operations between them
// run in f16 or bf16. Their results have 16 bits and need half the memory. Inside an operation,
// sums are computed in f32. Each result is rounded once, to nearest, ties to even. Softmax,
// losses, sums and the statistics of norms are f32.
//
// A strategy has one precision for all of its replicas (choir_strategy_options). A layer may have
// its own (choir_layer_set_precision), and so may a part of a step (choir_frame_set_precision).
// choir_precision_rules lists the dtype in which each operation runs. Mixed precision works like
// Keras' policies (mixed_bfloat16) and PyTorch's autocast.
// Errors: as in tensor.h.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

// The precision in which operations compute.
typedef enum {
	CHOIR_PRECISION_DEFAULT, // a strategy: f32; a layer: the precision of the frame
	CHOIR_PRECISION_F32,
	CHOIR_PRECISION_MIXED_BF16, // 8 significant bits, the range of f32
	// 11 significant bits, magnitudes from 6e-8 to 65504. Gradients need a loss scale
	// (optimizer.h).
	CHOIR_PRECISION_MIXED_F16,
	// Only for a strategy: measures f32 and mixed bf16 on this machine. Chooses mixed bf16 if it
	// needs less than 0.9 of the time of f32, else f32. A CPU without instructions for bf16 gets
	// f32.
	CHOIR_PRECISION_AUTO
} choir_precision;

// The name of a precision: "f32", "mixed_bf16", "mixed_f16", "auto", "default", or "unknown".
const char *choir_precision_name(choir_precision p);

// Sets the precision of the next operations in f. Returns the previous precision, so that the
// caller can set it again. CHOIR_PRECISION_DEFAULT and AUTO change nothing. f NULL: returns
// CHOIR_PRECISION_F32.
choir_precision choir_frame_set_precision(choir_frame *f, choir_precision p);
// The present precision of f. NULL: CHOIR_PRECISION_F32.
choir_precision choir_frame_precision(const choir_frame *f);

// How an operation treats operands of f32 and of 16 bits.
typedef enum {
	// Runs in 16 bits: f32 operands are rounded. A variable is rounded once after each of its
	// updates.
	CHOIR_PRECISION_ALLOW,
	CHOIR_PRECISION_KEEP, // runs in f32: operands of 16 bits are widened
	// Runs in f32 if an operand is f32, or if one is f16 and another bf16. Else runs in 16 bits.
	// Variables and plain numbers do not count as f32: they are rounded if another operand has 16
	// bits.
	CHOIR_PRECISION_PROMOTE
} choir_precision_rule;

// The rule of one operation.
typedef struct {
	const char *operation; // its name in extend/kernel_table.h
	choir_precision_rule rule;
	uint32_t operands; // bit i: the rule applies to in[i]; other operands stay as they are
	bool wide_result; // the result is f32, even if the operands have 16 bits
} choir_precision_row;

// The rules, sorted by the operation's name. An operation without a rule, such as an operation of
// the program, runs in f32. count may be NULL.
const choir_precision_row *choir_precision_rules(size_t *count);

// Whether operation can run in the 16-bit dtype of p on device d: its rule is ALLOW or PROMOTE,
// and d has a kernel for this dtype. d NULL: cpu:0.
bool choir_precision_is_narrow(choir_precision p, const char *operation, choir_device *d);

// Whether Choir uses instructions of this processor that multiply the 16-bit numbers of p. Only
// then can a mixed precision be faster than f32 on a CPU. Without them, it gives about the same
// results, but takes longer.
bool choir_precision_is_native(choir_precision p);

// Measures a few operations, forward and backward, on device d (NULL: cpu:0). Sets *cost to the
// time in precision p divided by the time in f32. Takes about 50 ms. CHOIR_INVALID: p is DEFAULT,
// AUTO or unknown.
CHOIR_MUST_CHECK choir_status choir_precision_measure(
		choir_precision p, choir_device *d, double *cost);

CHOIR_C_END
