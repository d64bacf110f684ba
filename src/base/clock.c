// The clock of all deadlines.
#include "base/clock.h"

#include <math.h>

double chi_clock_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

double chi_clock_wall(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

double chi_clock_deadline(double seconds)
{
	return seconds >= 0 ? chi_clock_now() + seconds : HUGE_VAL;
}

bool chi_clock_timespec(double deadline, struct timespec *out)
{
	if (!(deadline < 1e15))
		return false;
	double whole = deadline > 0 ? floor(deadline) : 0;
	double rest = deadline > 0 ? deadline - whole : 0;
	out->tv_sec = (time_t) whole;
	out->tv_nsec = (long) (rest * 1e9);
	return true;
}
