// Compares the options of workers.
#pragma once

#include "command_options.h"

#include <choir/choir.h>

// Compares the options of all workers, except own ones. All workers call it before they read data.
// CHOIR_STATE on all of them: the text names the first worker that differs, the option and both
// values.
choir_status options_check_equal(const command *c, choir_cluster *workers);
