// Reads of variables.
#pragma once

#include "value/variable.h"

// Rows of a variable without shards, as choir_gather takes them from a read. Where other workers
// change the variable, only these rows are copied.
choir_tensor *chi_read_rows(choir_variable *v, choir_tensor *indices);
