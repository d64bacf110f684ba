// An end of a connection sends a heartbeat after a silence. The other end is lost after a longer
// one. The caller passes the time.
#pragma once

#include <stdbool.h>

typedef struct {
	double every; // seconds between heartbeats
	double lost_after; // seconds of silence until the peer is lost
	double sent, heard, looked; // times
} chi_heartbeat;

void chi_heartbeat_begin(chi_heartbeat *h, double every, double lost_after, double now);
bool chi_heartbeat_due(const chi_heartbeat *h, double now);
// Call it after receiving all that has arrived. After a stop of this process the time begins
// again.
bool chi_heartbeat_lost(chi_heartbeat *h, double now);
// When due or lost can change.
double chi_heartbeat_next(const chi_heartbeat *h);
