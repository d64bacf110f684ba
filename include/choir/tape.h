// Gradients: reverse-mode differentiation. A tape records the operations of its frame from
// choir_tape_begin on. Its backward pass applies each operation's gradient rule once, from the
// newest operation to the oldest. A replica call without a tape is evaluation: dropout is off. A
// frame has at most one tape, which ends when the frame is emptied, or rewound to before the
// tape.
//
// The backward pass from y, for example a loss, frees every recorded result that y was made
// from, except y and the sources, as soon as no older operation needs it. Using such a result
// afterwards is CHOIR_STATE. So use logits, or the losses whose mean is y, before
// choir_tape_gradient or choir_optimizer_minimize (optimizer.h). It does not free results that
// were returned, passed to a merge call or exported; views (choir_reshape, choir_stop_gradient,
// choir_with_count) that y was not made from; constants; arguments; and reads of variables,
// until the variables change.
// Threads: a tape is used on the thread of its frame.
#pragma once

#include "nn.h"

CHOIR_C_BEGIN

typedef struct choir_tape choir_tape;

// Begins to record in f. CHOIR_STATE: f already has a tape, even after its backward pass.
choir_tape *choir_tape_begin(choir_frame *f);

// Runs the backward pass. gradients[i] becomes the gradient of the sum of y's elements with
// respect to sources[i], in the dtype and shape of sources[i]. It may be indexed slices
// (tensor.h), and is zeros if y does not depend on sources[i]. y and the n sources are
// floating-point tensors of the tape's frame. A source may be y or any tensor that y was made
// from, and may occur twice. For a variable, the source is its read, which is the same tensor
// each time in one replica call. A tape has one backward pass, and records nothing more after
// it.
//
// After a failure all gradients[] are NULL. If the frame has failed before, returns that
// failure. CHOIR_STATE: the backward pass has run already, or a variable changed since it was
// read. CHOIR_INVALID: y or a source is of another frame, or of an integer dtype. Other failures
// are those of operations in the backward pass.
CHOIR_MUST_CHECK choir_status choir_tape_gradient(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *gradients[]);

// A formula: makes a tensor from inputs, in their frame. It must give the same result each time.
typedef choir_tensor *choir_formula_fn(choir_tensor *const inputs[], void *user);

// Computes fn(inputs) and keeps only the inputs and the result on the tape (gradient
// checkpointing: Chen et al. 2016, arXiv:1604.06174). Other tensors that fn makes are freed when
// this call returns; the backward pass calls fn again, with the same random numbers. Gradients
// flow to the inputs, to variables that fn reads, and to other tensors that it uses. fn may
// apply layers and call choir_recompute. Side effects, for example of a metric, happen twice.
// user must live as long as the tape.
//
// NULL: fn's failure. CHOIR_INVALID: no input; a result of another frame; in the backward pass,
// a result whose dtype or shape differs from the first.
choir_tensor *choir_recompute(
		size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user);

// Checks the tape's gradients of fn against finite differences. It tests operations and layers
// of your own. fn's result must be f64. It is multiplied by fixed random weights and summed, so
// that errors cannot cancel. The gradient of this number by each element x of each f64 input is
// compared with the central difference (fn(x + h) - fn(x - h)) / 2h. h is 6e-6 max(1, |x|),
// about the cube root of f64's precision. All evaluations have a tape and draw the same random
// numbers, so dropout can be checked. Integer inputs are passed unchanged.
//
// CHOIR_INVALID if the largest relative difference exceeds tolerance (0: 1e-6). A difference is
// relative to the larger of the two derivatives, but at least to a hundredth of the input's
// largest derivative, and of the number itself. The frame does not keep this failure. Other
// failures: fn's; CHOIR_STATE if a tape records in the frame; CHOIR_INVALID for a result that is
// not f64, inputs of several frames, floating-point inputs that are not f64, or no f64 input.
// All that the call made in the frame is freed.
CHOIR_MUST_CHECK choir_status choir_check_gradient(size_t n, choir_tensor *const inputs[],
		double tolerance, choir_formula_fn *fn, void *user);

CHOIR_C_END
