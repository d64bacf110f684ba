// Doing an update: reducing its gradients and having the optimizer write what they make.
#pragma once

#include "strategy/gradients/pending.h"

// Does the parts of devices from .. to - 1. One caller prepares for all; the last finishes.
choir_status chi_pending_update_execute(chi_pending_update *u, int from, int to, bool prepare_it);
// Calls the optimizer for elements of a copy.
choir_status chi_device_gradient_write(const chi_device_gradient *g, int copy, int64_t first,
		int64_t count, const void *data, double factor);
