// The clock of all time-outs: monotonic seconds. Tests may put their own underneath.
#pragma once

#include <stdbool.h>
#include <time.h>

double chi_clock_now(void);
// The time of day, in seconds since 1970, for people: it may jump.
double chi_clock_wall(void);
// The time at which a wait of so many seconds ends. Negative: never (HUGE_VAL).
double chi_clock_deadline(double seconds);
// The deadline as the system's calls want it; false: never.
bool chi_clock_timespec(double deadline, struct timespec *out);
