// Sends a log event to the host's log function. No lock is held.
#pragma once

#include "choir/log.h"

void chi_log(choir_log_level level, const char *fmt, ...) CHOIR_PRINTF(2, 3);
