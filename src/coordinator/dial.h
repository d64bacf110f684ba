// Joining a coordinator, which may not be there yet.
#pragma once

#include "coordinator/task.h"

// Whether dialling again may help: nobody listens yet, or the servers have not come yet.
static inline bool chi_dial_again(choir_status status)
{
	return status == CHOIR_NOT_FOUND || status == CHOIR_TIMEOUT || status == CHOIR_PEER_LOST;
}
#define CHI_DIAL_PAUSE 0.05 // seconds
