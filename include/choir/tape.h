// Gradients. A tape records the operations of its frame, from choir_tape_begin on, and goes back
// once: reverse-mode differentiation, by the rules of each operation, from the newest to the
// oldest. What it recorded dies on the way back as soon as nothing older can ask for it, so the
// peak of memory is the way there. A replica call without a tape is evaluation: dropout is off
// (docs/decisions/0024). A tape belongs to its frame and ends when that is emptied, or rewound to
// before it; there is one at a time.
//
// What dies: every recorded result that y was made from, y and the sources excepted. Using one
// afterwards is CHOIR_STATE: read logits, or losses of which y is the mean, before going back
// (choir_tape_gradient here, choir_optimizer_minimize in optimizer.h). What was returned, given to
// a merge or exported lives on, as do views (choir_reshape, choir_stop_gradient, choir_counted)
// that y was not made from, constants, arguments, and reads of variables until those change.
// Threads: that of the frame.
#pragma once

#include "nn.h"

CHOIR_C_BEGIN

typedef struct choir_tape choir_tape;

// Begins to record in f. NULL after a failure: CHOIR_STATE if f has a tape already, even one that
// has gone back: a new one needs a frame that was emptied, or rewound to before the old tape.
choir_tape *choir_tape_begin(choir_frame *f);

// gradients[i] becomes the gradient of the sum of y's elements by sources[i], in its dtype and
// shape, or slices of that (tensor.h): zeros where y does not depend on it. y and the n sources
// are floating-point tensors of the tape's frame; sources may be any tensors that y was made from,
// or y itself, and the same one twice. A variable is a source through its read, which is the same
// tensor each time in one replica call. One call a tape; after it nothing more is recorded, though
// choir_frame_training stays true.
//
// After a failure all gradients[] are NULL. The status is that of the frame's first failure, if it
// has failed before; CHOIR_STATE if the tape has gone back already, or a variable changed since it
// was read; CHOIR_INVALID for y or a source of another frame, or of integers; else what an
// operation's way back fails with.
CHOIR_MUST_CHECK choir_status choir_tape_gradient(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *gradients[]);

// A formula: gives a tensor from inputs, in their frame, and the same each time it is called.
typedef choir_tensor *choir_formula_fn(choir_tensor *const inputs[], void *user);

// fn(inputs), of which the tape keeps the inputs and the result alone: what operations made in
// between dies when this returns, and fn is called a second time on the way back, with the same
// random numbers, to make it again. Costs the time of fn, and saves its memory until then (Chen et
// al. 2016, arXiv:1604.06174). Gradients flow to the inputs, to variables that fn reads and to
// whatever else it uses. fn may apply layers and call this again; what else it does, a metric say,
// it does twice. user lives as long as the tape. Where no tape records: fn(inputs).
//
// NULL: what fn fails with; CHOIR_INVALID: no input or no fn; a result of another frame, or, on
// the way back, one of another dtype or shape than the first time.
choir_tensor *choir_recompute(
		size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user);

// Whether the tape's gradients of fn, which gives f64, are right, for operations and layers of
// one's own. fn's result is multiplied by fixed random weights and summed, so that no error can
// hide behind another; the gradient of this number by each element x of each f64 input is compared
// with the central difference (fn(x + h) - fn(x - h)) / 2h, h = 6e-6 max(1, |x|), about the cube
// root of f64's precision, which balances its two errors. All evaluations have a tape and draw the
// same random numbers, so dropout can be checked, too. Inputs of integer dtypes are passed as they
// are.
//
// CHOIR_INVALID, with the input, the element, both derivatives and their difference, for the worst
// element if its difference, relative to the larger of the two, exceeds tolerance (0: 1e-6); what
// is below a hundredth of the largest derivative by this input, or of the number itself, is held
// against that hundredth. This is no failure of the frame. The other ones: what fn fails with;
// CHOIR_STATE if a tape records in the frame; CHOIR_INVALID for a result that is not f64, inputs
// of several frames, floating-point inputs that are not f64, or none that is; CHOIR_NO_MEMORY. All
// that was made in the frame meanwhile is dropped.
CHOIR_MUST_CHECK choir_status choir_check_gradient(size_t n, choir_tensor *const inputs[],
		double tolerance, choir_formula_fn *fn, void *user);

CHOIR_C_END
