// Options and tables from callers (docs/decisions/0036) begin with their size, since the caller's
// version of the library may differ.
#pragma once

#include "choir/status.h"

// given NULL: defaults. Missing fields become zero. what begins the message, such as "map: the
// options'". CHOIR_INVALID: an impossible size.
choir_status chi_options_take(const char *what, void *all, size_t size, const void *given);

// Takes at least min bytes. Unknown fields are dropped. CHOIR_INVALID: NULL, an impossible size,
// or another version.
choir_status chi_table_take(
		const char *what, void *own, size_t size, size_t min, const void *given);
