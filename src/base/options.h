// Options and tables as callers give them (docs/decisions/0036): a struct that begins with its
// size, perhaps of another version of the library. NULL is all default options.
#pragma once

#include "choir/status.h"

// *all, of this library's size, becomes what was given, with zeros for what the caller's version
// does not have. CHOIR_INVALID for a size that cannot be: what begins the message, "map: the
// options'".
choir_status chi_options_take(const char *what, void *all, size_t size, const void *given);

// The same for a table of functions that a program registers, which begins with its size and its
// version: a shorter one gets zeros, and what a longer one has more is left out. *own must have
// its fields up to least bytes. CHOIR_INVALID: NULL, a size that cannot be, or another version.
choir_status chi_table_take(
		const char *what, void *own, size_t size, size_t min, const void *given);
