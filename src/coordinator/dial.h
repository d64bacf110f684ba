// Joining a coordinator that may not listen yet.
#pragma once

#include "coordinator/task.h"

// True: the coordinator does not listen yet, or its servers have not joined.
static inline bool chi_dial_again(choir_status status)
{
	return status == CHOIR_NOT_FOUND || status == CHOIR_TIMEOUT || status == CHOIR_PEER_LOST;
}
#define CHI_DIAL_PAUSE 0.05 // seconds
