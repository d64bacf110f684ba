// What several workers were given must be the same.
#pragma once

#include "command_options.h"

#include <choir/choir.h>

// Compares what the options of a command are now, but for those that each worker may have of its
// own. All workers call it, before anything is read. CHOIR_STATE on all of them: the text names
// the first worker with another value than the chief, the option and both values.
choir_status options_check_equal(const command *c, choir_cluster *workers);
