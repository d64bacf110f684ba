// The gradients of many variables, summed in one collective.
#pragma once

#include "strategy/gradients/pending_update.h"

choir_status chi_bucket_prepare(chi_pending_update *u);
choir_status chi_bucket_give_memory(
		chi_pending_update *u, const chi_pending_variable *pv, chi_sum_buffer *sb);
choir_status chi_bucket_join(chi_pending_update *u, int d);
choir_status chi_bucket_widen(chi_pending_update *u, int d);
// To host memory. The first call copies all sums of the device.
choir_status chi_bucket_fetch(chi_pending_update *u, const chi_device_gradient *g,
		choir_device *host, const void **data);
void chi_bucket_release(chi_pending_update *u);
