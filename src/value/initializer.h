// Initial values of variables, made on the host.
#pragma once

#include "value/variable.h"

// Fills host memory with a plan's initial value.
choir_status chi_initialize(const chi_variable_plan *plan, void *out);
