// Checks that all workers have the same options.
#pragma once

#include "command_options.h"

#include <choir/choir.h>

// Compares the options of a command on all workers, except those marked as own. All workers call
// it, before any data is read. CHOIR_STATE on all of them: the text names the first worker that
// differs from the chief, the option and both values.
choir_status options_check_equal(const command *c, choir_cluster *workers);
