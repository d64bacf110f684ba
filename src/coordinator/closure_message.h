// Sets of named tensors as messages: arguments and results of closures.
#pragma once

#include "base/serialization.h"
#include "choir/value.h"

enum { CHI_CLOSURE_MAX = 64 << 20 }; // bytes of arguments, and of results

// CHOIR_INVALID: a leaf is not a plain tensor or number; too many bytes. set may be NULL.
choir_status chi_values_pack(choir_values *set, chi_pack *to);
choir_status chi_values_unpack(choir_values *set, chi_unpack *u);
void chi_shape_pack(chi_pack *to, choir_dtype dtype, const choir_shape *shape);
// Fails for an unknown dtype or an invalid shape.
void chi_shape_unpack(chi_unpack *u, choir_dtype *dtype, choir_shape *shape);
