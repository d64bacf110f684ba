// Gradients: reverse-mode differentiation. A tape records the operations of its frame from
// choir_tape_begin on. Without a tape, dropout is off. A frame has at most one tape, until it is
// cleared, or rewound to a point before the tape.
//
// A backward pass from y, for example a loss, frees recorded results that y was made from: using
// one, such as logits, is CHOIR_STATE. It does not free: y and the sources; results that were
// returned, passed to a merge call or exported; views (choir_reshape, choir_stop_gradient,
// choir_with_count) that y was not made from; constants; arguments; reads of variables that have
// not changed.
// Threads: the thread of its frame.
#pragma once

#include "nn.h"

CHOIR_C_BEGIN

typedef struct choir_tape choir_tape;

// CHOIR_STATE: f already has a tape, even after its backward pass.
choir_tape *choir_tape_begin(choir_frame *f);

// Runs the backward pass. gradients[i] becomes the gradient of the sum of y's elements with
// respect to sources[i], in the source's dtype and shape. It is zeros if y does not depend on the
// source, and may be indexed slices (tensor.h). y and the sources are floating-point tensors of
// the tape's frame. A source may be y or any tensor that y was made from, also twice; for a
// variable, give the tensor that reading it returned. A tape has one such pass, and then records
// nothing more.
//
// After a failure all gradients[] are NULL; an earlier failure of the frame is returned.
// CHOIR_STATE: the backward pass has run already, or a variable changed since it was read.
CHOIR_MUST_CHECK choir_status choir_tape_gradient(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *gradients[]);

// Gradients of gradients

// The tape goes on: it records the backward pass and frees nothing. So y of a later pass may be
// made from the gradients. Recorded passes may be repeated, and one choir_tape_gradient or
// choir_optimizer_minimize may follow. All that they compute stays until the frame is cleared.
// Gradients are dense.
//
// Fused operations are computed by simpler ones, whose gradients may differ by rounding.
// CHOIR_UNSUPPORTED: y depends on a source through a custom operation. Otherwise it fails as
// choir_tape_gradient.
CHOIR_MUST_CHECK choir_status choir_tape_gradient_recorded(choir_tape *tape, choir_tensor *y,
		size_t n, choir_tensor *const sources[], choir_tensor *gradients[]);

// The derivatives of each element of y with respect to each of x: [y's shape, x's shape], by one
// recorded pass for each element of y. Fails as choir_tape_gradient_recorded.
choir_tensor *choir_jacobian(choir_tape *tape, choir_tensor *y, choir_tensor *x);

// Multiplies the Hessian of the sum of y's elements by vectors: products[i] is the sum over k of
// the second derivatives by sources[i] and sources[k], times vectors[k], of sources[k]'s shape. It
// costs two recorded passes (Pearlmutter 1994). Fails as choir_tape_gradient_recorded; all
// products[] are then NULL.
CHOIR_MUST_CHECK choir_status choir_hessian_vector_product(choir_tape *tape, choir_tensor *y,
		size_t n, choir_tensor *const sources[], choir_tensor *const vectors[],
		choir_tensor *products[]);

// A formula: a tensor from inputs, in their frame, the same each time.
typedef choir_tensor *choir_formula_fn(choir_tensor *const inputs[], void *user);

// Computes fn(inputs) and keeps only the inputs and the result on the tape (gradient
// checkpointing: arXiv:1604.06174). Other tensors of fn are freed when this call returns; the
// backward pass calls fn again, with the same random numbers. Gradients flow to the inputs, to
// variables that fn reads, and to other tensors that it uses. fn may apply layers and call
// choir_recompute. Side effects, for example of a metric, happen twice. user must live as long as
// the tape.
//
// The result is in the inputs' frame, and has the same dtype and shape in the backward pass.
choir_tensor *choir_recompute(
		size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user);

// Checks the tape's gradients of fn, whose result must be f64, against finite differences, as a
// test of operations and layers. The gradient of a sum of the result with fixed random weights is
// compared, for each element x of each f64 input, with the central difference (fn(x + h) - fn(x -
// h)) / 2h, where h is 6e-6 max(1, |x|). All evaluations have a tape and draw the same random
// numbers.
//
// CHOIR_INVALID, which the frame does not keep: the largest relative difference exceeds tolerance
// (0: 1e-6). It is relative to the largest of both derivatives, a hundredth of the input's largest
// derivative, and a hundredth of the sum. Other failures are those of fn; CHOIR_STATE: the frame
// has a tape. Floating-point inputs, at least one, are f64. The call frees all that it made in the
// frame.
CHOIR_MUST_CHECK choir_status choir_check_gradient(size_t n, choir_tensor *const inputs[],
		double tolerance, choir_formula_fn *fn, void *user);

CHOIR_C_END
