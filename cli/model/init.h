// Initial weights from a file of Choir or of another program.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

// Restores the variables that a file has, and prints missing and unexpected names. map: as in
// choir_restore_options, a file; or NULL.
choir_status init_weights(choir_strategy *s, const char *path, const char *map, bool json);
