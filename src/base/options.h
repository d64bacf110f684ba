// Callers' options and tables (docs/decisions/0036) begin with their size, since callers may have
// another version.
#pragma once

#include "choir/status.h"

// Missing fields become zero; given NULL: all. what begins messages, such as "map: the options'".
// CHOIR_INVALID: an impossible size.
choir_status chi_options_take(const char *what, void *all, size_t size, const void *given);

// Drops unknown fields. CHOIR_INVALID: NULL, less than min bytes, an impossible size, or another
// version.
choir_status chi_table_take(
		const char *what, void *own, size_t size, size_t min, const void *given);
