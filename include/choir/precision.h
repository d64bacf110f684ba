// Mixed precision, as in Keras' policies and PyTorch's autocast. Products, convolutions,
// attention, recurrent layers and the operations between them run in f16 or bf16
// (choir_precision_rules). They add in f32 and round each result once, to nearest, ties to even.
// Variables, their gradients, optimizers, softmax, losses, sums and the statistics of norms stay
// f32.
//
// A strategy has one precision for all replicas (choir_strategy_options). A layer
// (choir_layer_set_precision) and a part of a step may have their own.
// Errors: as in tensor.h.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

// The precision of operations.
typedef enum {
	CHOIR_PRECISION_DEFAULT, // for a strategy: f32; for a layer: the frame's
	CHOIR_PRECISION_F32,
	// All tensors are f32. A device with TF32 (not CPUs and remote devices) rounds the operands of
	// products, convolutions and attention to 11 significant bits. On others: F32.
	CHOIR_PRECISION_TF32,
	CHOIR_PRECISION_MIXED_BF16, // 8 significant bits, the range of f32
	// 11 significant bits, magnitudes from 6e-8 to 65504. Gradients need a loss scale
	// (optimizer.h).
	CHOIR_PRECISION_MIXED_F16,
	// Only for a strategy: mixed bf16 if it takes less than 0.9 of f32's time on this machine,
	// else f32. A CPU without instructions for bf16 gets f32.
	CHOIR_PRECISION_AUTO
} choir_precision;

// "f32", "tf32", "mixed_bf16", "mixed_f16", "auto", "default", or "unknown".
const char *choir_precision_name(choir_precision p);

// Sets the precision of f's next operations, and returns the previous one. DEFAULT and AUTO change
// nothing. f NULL: F32.
choir_precision choir_frame_set_precision(choir_frame *f, choir_precision p);
// The precision of f's next operations; F32 for NULL.
choir_precision choir_frame_precision(const choir_frame *f);

// How an operation treats operands of f32 and of 16 bits.
typedef enum {
	// Runs in 16 bits, and rounds f32 operands. A variable stays f32, and has a 16-bit copy that
	// is rounded once after each update.
	CHOIR_PRECISION_ALLOW,
	CHOIR_PRECISION_KEEP, // runs in f32, and widens operands of 16 bits
	// Runs in f32 if an operand is f32, or if one is f16 and another bf16; else in 16 bits.
	// Variables and plain numbers do not count, and are rounded if another operand has 16 bits.
	CHOIR_PRECISION_PROMOTE
} choir_precision_rule;

// The rule of one operation.
typedef struct {
	const char *operation; // its name in extend/kernel_table.h
	choir_precision_rule rule;
	uint32_t operands; // bit i: the rule applies to in[i]; other operands stay as they are
	bool wide_result; // the result is f32, even if the operands have 16 bits
} choir_precision_row;

// The rules, sorted by operation; *count (may be NULL): their number. Operations without a rule,
// such as custom ones, run in f32.
const choir_precision_row *choir_precision_rules(size_t *count);

// Whether operation's rule is ALLOW or PROMOTE, and d has a kernel for p's 16-bit dtype. TF32:
// whether d has a kernel in TF32. d NULL: cpu:0.
bool choir_precision_is_narrow(choir_precision p, const char *operation, choir_device *d);

// Whether Choir uses this processor's instructions that multiply p's 16-bit numbers. Without them,
// a mixed precision is slower than f32.
bool choir_precision_is_native(choir_precision p);

// Measures some layers in precision p on d (NULL: cpu:0), for about 50 ms. *cost: their time over
// that in f32. CHOIR_INVALID: p is DEFAULT or AUTO.
CHOIR_MUST_CHECK choir_status choir_precision_measure(
		choir_precision p, choir_device *d, double *cost);

CHOIR_C_END
