// Initial values.
#pragma once

#include "value/variable.h"

// By the variable's plan, in host memory.
choir_status chi_initialize(const chi_variable_plan *plan, void *out);
bool chi_initializer_is_random(const choir_variable_options *o);
