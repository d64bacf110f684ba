// Prints what choir inspect shows of checkpoints and weights.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

// A directory of checkpoints. CHOIR_CORRUPT: some are damaged, and were printed. CHOIR_NOT_FOUND:
// there are none.
choir_status inspect_steps(const char *directory, bool json);
// A safetensors file.
choir_status inspect_weights(const char *path, bool json);
