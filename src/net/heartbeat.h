// Both ends of a connection send a heartbeat when they have sent nothing for a while, and give
// the other end up when they have received nothing for longer. There is no clock here.
#pragma once

#include <stdbool.h>

typedef struct {
	double every; // seconds between heartbeats
	double lost_after; // seconds of silence until the peer counts as lost
	double sent, heard, looked; // times
} chi_liveness;

void chi_liveness_begin(chi_liveness *l, double every, double lost_after, double now);
bool chi_liveness_due(const chi_liveness *l, double now);
// Call it after all that has arrived was received. If this process was stopped since the last
// call, the peer gets its time again.
bool chi_liveness_lost(chi_liveness *l, double now);
// When one of the two can change.
double chi_liveness_next(const chi_liveness *l);
