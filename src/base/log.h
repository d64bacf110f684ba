// Events for the host's log function. Silent unless the host asked; no lock is held when it is
// called.
#pragma once

#include "choir/log.h"

void chi_log(choir_log_level level, const char *fmt, ...) CHOIR_PRINTF(2, 3);
