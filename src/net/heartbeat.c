// Heartbeats and silence.
#include "net/heartbeat.h"

void chi_liveness_begin(chi_liveness *l, double every, double lost_after, double now)
{
	*l = (chi_liveness){ every, lost_after, now, now, now };
}

bool chi_liveness_due(const chi_liveness *l, double now)
{
	return now >= l->sent + l->every;
}

bool chi_liveness_lost(chi_liveness *l, double now)
{
	// A process that runs looks at least once in each interval.
	const double gap = now - l->looked;
	if (gap > 2 * l->every)
		l->heard += gap < now - l->heard ? gap : now - l->heard;
	l->looked = now;
	return now >= l->heard + l->lost_after;
}

double chi_liveness_next(const chi_liveness *l)
{
	const double beat = l->sent + l->every, end = l->heard + l->lost_after;
	return beat < end ? beat : end;
}
