// An optimizer's decision by the sums of squares of all summed gradients. In host memory, and
// where devices have only some sums, the host decides before the first write. Else each device
// decides ("update_gate"), and the host reads its verdict.
#pragma once

#include "strategy/gradients/pending_update.h"

void chi_update_gate_prepare(chi_pending_update *u);
choir_status chi_update_gate_square(
		const chi_device_gradient *g, int64_t first, int64_t count, const void *data);
choir_status chi_update_gate_fetch_squares(chi_pending_update *u, int d);
choir_status chi_update_gate_decide(const chi_pending_update *u, double *factor, bool *skip);
// Updates queued behind it take u->device[d].gate.verdict.
choir_status chi_update_gate_queue(chi_pending_update *u, int d);
// status: of the wait for its stream. *applied false: skipped. After a failure nothing was
// written.
choir_status chi_update_gate_read(
		chi_pending_update *u, int d, choir_status status, bool *applied);
