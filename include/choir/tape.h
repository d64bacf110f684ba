// Gradients: reverse-mode differentiation. A tape records the operations of its frame from
// choir_tape_begin on. A backward pass applies each operation's gradient rule once, from the
// newest operation to the oldest. A replica call without a tape is evaluation: dropout is off. A
// frame has at most one tape. It ends when the frame is cleared, or rewound to a point before
// the tape.
//
// A backward pass from y, for example a loss, frees recorded results that y was made from, as
// soon as no older operation needs them. Using a freed result is CHOIR_STATE. So use logits, or
// the losses whose mean is y, before choir_tape_gradient or choir_optimizer_minimize
// (optimizer.h). The backward pass does not free: y and the sources; results that were returned,
// passed to a merge call or exported; views (choir_reshape, choir_stop_gradient,
// choir_with_count) that y was not made from; constants; arguments; reads of variables that have
// not changed.
// Threads: a tape is used on the thread of its frame.
#pragma once

#include "nn.h"

CHOIR_C_BEGIN

typedef struct choir_tape choir_tape;

// Begins to record in f. CHOIR_STATE: f already has a tape, even after its backward pass.
choir_tape *choir_tape_begin(choir_frame *f);

// Runs the backward pass. gradients[i] becomes the gradient of the sum of y's elements with
// respect to sources[i], in the dtype and shape of sources[i]. It may be indexed slices
// (tensor.h). If y does not depend on sources[i], it is zeros. y and the n sources are
// floating-point tensors of the tape's frame. A source may be y or any tensor that y was made
// from, and may occur twice. The source for a variable is its read: in one call of a replica,
// all reads of a variable are the same tensor. A tape has one such backward pass, and then records
// nothing more.
//
// After a failure all gradients[] are NULL. If the frame had failed before, the call returns the
// frame's failure. CHOIR_STATE: the backward pass has run already, or a variable changed since
// it was read. CHOIR_INVALID: y or a source is of another frame, or of an integer dtype. Other
// failures are those of operations in the backward pass.
CHOIR_MUST_CHECK choir_status choir_tape_gradient(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *gradients[]);

// Gradients of gradients

// As choir_tape_gradient, but the tape goes on: it records the backward pass and frees nothing. So
// the gradients depend on the sources as any result does, and y of a later pass may be made from
// them, for example for the second derivatives in a loss. Recorded passes may be run again and
// again, and one call of choir_tape_gradient or choir_optimizer_minimize may follow. They keep all
// that they compute until the frame is cleared. Gradients are dense. This is a nested
// tf.GradientTape, and create_graph=True in PyTorch.
//
// Fused operations are computed again by simpler ones, whose gradients may differ from those of
// choir_tape_gradient by rounding. CHOIR_UNSUPPORTED: y depends on a source through an operation
// whose gradient has no gradient: a custom operation. Other failures are those of
// choir_tape_gradient.
CHOIR_MUST_CHECK choir_status choir_tape_gradient_recorded(choir_tape *tape, choir_tensor *y,
		size_t n, choir_tensor *const sources[], choir_tensor *gradients[]);

// The derivatives of each element of y with respect to each element of x: [y's shape, x's shape].
// It runs one recorded pass for each element of y. CHOIR_INVALID: more than CHOIR_MAX_RANK axes.
// Other failures are those of choir_tape_gradient_recorded.
choir_tensor *choir_jacobian(choir_tape *tape, choir_tensor *y, choir_tensor *x);

// Multiplies the Hessian of the sum of y's elements by vectors: products[i] is the sum over k of
// the second derivatives by sources[i] and sources[k], times vectors[k], which has the shape of
// sources[k]. It costs two recorded passes, and the Hessian itself is not made (Pearlmutter 1994,
// Fast exact multiplication by the Hessian). Failures are those of choir_tape_gradient_recorded;
// CHOIR_INVALID also: a vector that does not fit. After a failure all products[] are NULL.
CHOIR_MUST_CHECK choir_status choir_hessian_vector_product(choir_tape *tape, choir_tensor *y,
		size_t n, choir_tensor *const sources[], choir_tensor *const vectors[],
		choir_tensor *products[]);

// A formula: makes a tensor from inputs, in their frame. It must give the same result each time.
typedef choir_tensor *choir_formula_fn(choir_tensor *const inputs[], void *user);

// Computes fn(inputs) and keeps only the inputs and the result on the tape (gradient
// checkpointing: Chen et al. 2016, arXiv:1604.06174). Other tensors that fn makes are freed when
// this call returns; the backward pass calls fn again, with the same random numbers. Gradients
// flow to the inputs, to variables that fn reads, and to other tensors that fn uses. fn may
// apply layers and call choir_recompute. Side effects, for example of a metric, happen twice.
// user must live as long as the tape.
//
// NULL: fn's failure. CHOIR_INVALID: no input; a result of another frame; in the backward pass,
// a result whose dtype or shape differs from the first.
choir_tensor *choir_recompute(
		size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user);

// Checks the tape's gradients of fn against finite differences. Use it to test your own
// operations and layers. fn's result must be f64. The check multiplies it by fixed random
// weights and sums the products, so that errors cannot cancel. It compares the sum's gradient
// with respect to each element x of each f64 input with the central difference (fn(x + h) - fn(x
// - h)) / 2h. h is 6e-6 max(1, |x|), about the cube root of f64's precision. All evaluations
// have a tape and draw the same random numbers, so dropout can be checked. Integer inputs are
// passed unchanged.
//
// CHOIR_INVALID if the largest relative difference exceeds tolerance (0: 1e-6). The difference
// is divided by the largest of these: the two compared derivatives, a hundredth of the input's
// largest derivative, a hundredth of the sum. The frame does not keep this failure. Other
// failures: those of fn; CHOIR_STATE: the frame has a tape; CHOIR_INVALID: a result that is not
// f64, inputs of several frames, floating-point inputs that are not f64, no f64 input. The call
// frees all that it made in the frame.
CHOIR_MUST_CHECK choir_status choir_check_gradient(size_t n, choir_tensor *const inputs[],
		double tolerance, choir_formula_fn *fn, void *user);

CHOIR_C_END
