// Gradients: reverse-mode differentiation. A tape records the operations of its frame from
// choir_tape_begin on. A frame has at most one, which ends when the frame is cleared, or rewound
// to a point before the tape.
//
// A backward pass from y, for example a loss, frees recorded results from which y was made, such
// as logits. Their later use fails with CHOIR_STATE. The pass does not free:
// - y, the sources, constants, arguments, and reads of variables that have not changed;
// - results that were returned, passed to a merge call or exported;
// - views (choir_reshape, choir_stop_gradient, choir_with_count) from which y was not made.
//
// Threads: the thread of the tape's frame.
#pragma once

#include "nn.h"

CHOIR_C_BEGIN

typedef struct choir_tape choir_tape;

// Begins a tape in f. CHOIR_STATE: f already has a tape, even after the tape's backward pass.
choir_tape *choir_tape_begin(choir_frame *f);

// Runs the backward pass. gradients[i] becomes the gradient of the sum of y's elements with
// respect to sources[i], in its dtype and shape: zeros if y does not depend on it, perhaps indexed
// slices (tensor.h). y and the sources are floating-point tensors of the tape's frame. A source
// may be y or any tensor from which y was made, and may occur twice. For a variable, pass
// choir_variable_read's tensor. A tape has one such pass, and records nothing afterwards.
//
// If the frame has failed before, returns that failure. CHOIR_STATE: the backward pass has run
// already; a variable has changed since it was read.
CHOIR_MUST_CHECK choir_status choir_tape_gradient(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *gradients[]);

// Gradients of gradients

// Like choir_tape_gradient, but the tape records this backward pass and frees nothing, so a later
// pass may begin at a y made from the gradients. Several recorded passes may precede one
// choir_tape_gradient or choir_optimizer_minimize. Their results live until the frame is cleared.
// Gradients are dense.
//
// Simple operations replace fused ones, so rounding may differ. CHOIR_UNSUPPORTED: y depends on a
// source through a custom operation. Otherwise fails as choir_tape_gradient.
CHOIR_MUST_CHECK choir_status choir_tape_gradient_recorded(choir_tape *tape, choir_tensor *y,
		size_t n, choir_tensor *const sources[], choir_tensor *gradients[]);

// Gives the derivatives of each element of y with respect to each element of x: [y's shape, x's
// shape]. Makes one recorded pass for each element of y. Fails as choir_tape_gradient_recorded.
choir_tensor *choir_jacobian(choir_tape *tape, choir_tensor *y, choir_tensor *x);

// Multiplies the Hessian H of the sum of y's elements by vectors: products[i] is the sum over k of
// H[sources[i], sources[k]] vectors[k]. vectors[k] has sources[k]'s shape. Makes two recorded
// passes (Pearlmutter 1994). Fails as choir_tape_gradient_recorded.
CHOIR_MUST_CHECK choir_status choir_hessian_vector_product(choir_tape *tape, choir_tensor *y,
		size_t n, choir_tensor *const sources[], choir_tensor *const vectors[],
		choir_tensor *products[]);

// Computes a tensor from inputs, in their frame, with the same result each time.
typedef choir_tensor *choir_formula_fn(choir_tensor *const inputs[], void *user);

// Computes fn(inputs), keeps only the inputs and the result (gradient checkpointing:
// arXiv:1604.06174), and frees fn's other tensors. The backward pass calls fn again, with the same
// random numbers. Gradients flow to the inputs, and to variables and other tensors that fn uses.
// fn may apply layers and call choir_recompute. Its side effects, such as a metric's update,
// happen twice. user lives as long as the tape.
//
// fn's result has the same dtype and shape in the backward pass.
choir_tensor *choir_recompute(
		size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user);

// Tests operations and layers: compares the tape's gradients of fn with finite differences. fn
// gives f64. Let s be the sum of fn's result with fixed random weights. For each element x of each
// f64 input, the call compares the gradient of s with (s(x + h) - s(x - h)) / 2h, where h is 6e-6
// max(1, |x|). All evaluations have a tape and the same random numbers.
//
// At least one input is f64, and none is of another floating-point dtype. CHOIR_INVALID, which the
// frame does not keep: the largest relative difference exceeds tolerance (0: 1e-6). A difference
// is relative to the largest of both derivatives, a hundredth of the input's largest, and a
// hundredth of s. CHOIR_STATE: the frame has a tape. Also fails as fn.
CHOIR_MUST_CHECK choir_status choir_check_gradient(size_t n, choir_tensor *const inputs[],
		double tolerance, choir_formula_fn *fn, void *user);

CHOIR_C_END
