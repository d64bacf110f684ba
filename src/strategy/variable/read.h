// Reads of variables.
#pragma once

#include "value/variable.h"

// v has no shards. If other workers change v, only these rows are copied.
choir_tensor *chi_read_rows(choir_variable *v, choir_tensor *indices);
