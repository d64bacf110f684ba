// The host's log function is called without a lock.
#pragma once

#include "choir/log.h"

void chi_log(choir_log_level level, const char *fmt, ...) CHOIR_PRINTF(2, 3);
