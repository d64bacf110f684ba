// Gradients of many variables summed as one.
#pragma once

#include "strategy/gradients/pending.h"

// Decides, before any sum is kept, whether u's gradients are summed as one.
choir_status chi_bucket_prepare(chi_pending_update *u);
// The memory of a sum buffer, which is a part of the bucket's.
choir_status chi_bucket_give_memory(
		chi_pending_update *u, const chi_pending_variable *pv, chi_sum_buffer *sb);
// Joins for a device, by its gradient 0.
choir_status chi_bucket_join(chi_pending_update *u, int d);
// Finds the sum of a gradient in host memory; the first call fetches all of them.
choir_status chi_bucket_fetch(chi_pending_update *u, const chi_device_gradient *g,
		choir_device *host, const void **data);
void chi_bucket_release(chi_pending_update *u);
