// Weights to begin with, from a file of this command or of others.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

// Gives the variables what the file at path has of them, and says which it has not and which of
// its tensors are for none. map: a file of lines as choir_restore_options has them; or NULL.
choir_status init_weights(choir_strategy *s, const char *path, const char *map, bool json);
