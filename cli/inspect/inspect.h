// Prints what choir inspect shows of checkpoints and weights.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

// CHOIR_CORRUPT: some are damaged, and were printed.
choir_status inspect_steps(const char *directory, bool json);
choir_status inspect_weights(const char *path, bool json);
