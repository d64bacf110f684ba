// A tape records its frame's operations until the frame is emptied, and belongs to it; one a frame. A
// replica call without one is evaluation (house 24).
#pragma once

#include "op.h"

CHOIR_C_BEGIN

typedef struct choir_tape choir_tape;
choir_tape *choir_tape_begin(choir_frame *f);
// Of y's sum by n sources, in their shapes; zeros where y does not depend on one. A variable is a source
// through its read (one tensor in a call). One call a tape: activations die on the way back.
choir_status choir_tape_gradient(choir_tape *tape, choir_tensor *y, size_t n, choir_tensor *const sources[], choir_tensor *gradients[]);
// Against central differences at inputs (f64): CHOIR_INVALID names the worst element if the relative
// difference exceeds tolerance (0: 1e-6).
typedef choir_tensor *choir_formula_fn(choir_tensor *const inputs[], void *user);
choir_status choir_check_gradient(size_t n, choir_tensor *const inputs[], double tolerance, choir_formula_fn *fn, void *user);

CHOIR_C_END
