// For keys and for unique names. Results of training never depend on them.
#pragma once

#include "choir/status.h"

#include <stddef.h>

choir_status chi_entropy(void *to, size_t bytes);
