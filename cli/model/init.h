// Initial weights from a file of Choir or of another program.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

// Restores the variables that the file at path has, and prints the missing ones and the unexpected
// tensors. map: a file of lines as in choir_restore_options; or NULL.
choir_status init_weights(choir_strategy *s, const char *path, const char *map, bool json);
