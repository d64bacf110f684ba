// Initial values of variables.
#pragma once

#include "value/variable.h"

// Fills host memory with the initial value of a plan.
choir_status chi_initialize(const chi_variable_plan *plan, void *out);
