// Dates and times in text.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// "2026-11-24" or "2026/11/24", perhaps with a time after "T" or a space: "17:05", "17:05:30" or
// "17:05:30.25", then "Z", "+01:00", "-0530" or nothing (UTC). *days: since 1970-01-01 UTC,
// Gregorian.
bool chi_date_read(const char *text, size_t length, double *days);
