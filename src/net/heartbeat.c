// Heartbeats and silence.
#include "net/heartbeat.h"

void chi_heartbeat_begin(chi_heartbeat *h, double every, double lost_after, double now)
{
	*h = (chi_heartbeat){ every, lost_after, now, now, now };
}

bool chi_heartbeat_due(const chi_heartbeat *h, double now)
{
	return now >= h->sent + h->every;
}

bool chi_heartbeat_lost(chi_heartbeat *h, double now)
{
	// A longer gap: this process was stopped.
	const double gap = now - h->looked;
	if (gap > 2 * h->every)
		h->heard += gap < now - h->heard ? gap : now - h->heard;
	h->looked = now;
	return now >= h->heard + h->lost_after;
}

double chi_heartbeat_next(const chi_heartbeat *h)
{
	const double beat = h->sent + h->every, end = h->heard + h->lost_after;
	return beat < end ? beat : end;
}
