// What the command inspect says about a folder, and about weights.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

// Of checkpoints. CHOIR_CORRUPT: some are damaged, which was said; CHOIR_NOT_FOUND: none there.
choir_status inspect_steps(const char *directory, bool json);
// Of a safetensors file.
choir_status inspect_weights(const char *path, bool json);
