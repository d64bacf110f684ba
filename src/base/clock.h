// The monotonic clock of all deadlines, in seconds. Tests can replace it.
#pragma once

#include <stdbool.h>
#include <time.h>

double chi_clock_now(void);
// Seconds since 1970; may jump.
double chi_clock_wall(void);
// seconds negative: never (HUGE_VAL).
double chi_clock_deadline(double seconds);
bool chi_clock_timespec(double deadline, struct timespec *out);
