// Reads of some rows.
#pragma once

#include "strategy/strategy.h"

// Of a variable without shards.
choir_tensor *chi_variable_read_rows(choir_variable *v, choir_tensor *indices);
