// The gradients of many variables, summed in one collective.
#pragma once

#include "strategy/gradients/pending.h"

// Decides whether u's gradients, in two passes, are summed as one bucket, before sum buffers are
// prepared.
choir_status chi_bucket_prepare(chi_pending_update *u);
choir_status chi_bucket_give_memory(
		chi_pending_update *u, const chi_pending_variable *pv, chi_sum_buffer *sb);
// Joins the bucket's collective for device d. The request is that of gradient 0.
choir_status chi_bucket_join(chi_pending_update *u, int d);
// Widens the bucket's sum of device d if it is rounded.
choir_status chi_bucket_widen(chi_pending_update *u, int d);
// Fetches a bucket's sum to host memory. The first call copies all sums of the device.
choir_status chi_bucket_fetch(chi_pending_update *u, const chi_device_gradient *g,
		choir_device *host, const void **data);
void chi_bucket_release(chi_pending_update *u);
