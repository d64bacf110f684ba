// Initial weights from a file of Choir or of another program.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

// Reads a text of at most max bytes without zero bytes. Free *text with free, also after a
// failure. option names it in failures, and needs says what it may be.
choir_status init_read_text(
		const char *option, const char *path, const char *needs, size_t max, char **text);

// Reads a map of names from a file; "torch" and "keras" are maps themselves. Free *text with free.
// option names it in failures.
choir_status init_read_map(const char *option, const char *path, char **text);

// Restores the variables that a file has, and prints missing and unexpected names. map: as in
// choir_restore_options, a file, "torch" or "keras"; or NULL.
choir_status init_weights(choir_strategy *s, const char *path, const char *map, bool json);
