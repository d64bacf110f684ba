// For keys and unique names, never for results.
#pragma once

#include "choir/status.h"

#include <stddef.h>

choir_status chi_entropy(void *to, size_t bytes);
