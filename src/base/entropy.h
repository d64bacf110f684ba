// For keys and for names that no other process has. Results of training never depend on them.
#pragma once

#include "choir/status.h"

#include <stddef.h>

// Fills up to 256 bytes.
choir_status chi_entropy(void *to, size_t bytes);
