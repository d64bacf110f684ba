// The gate of an update: sums of squares of all summed gradients, and what the optimizer decides
// from them. In host memory, and where devices have only some of the sums, the host decides before
// the first write. Else each device decides by itself (the kernel "update_gate"), and the host
// reads the verdict when the update's work is done.
#pragma once

#include "strategy/gradients/pending.h"

// Decides who decides, after the sum buffers are prepared.
void chi_update_gate_prepare(chi_pending_update *u);
// Squares a summed chunk in host memory.
choir_status chi_update_gate_square(
		const chi_device_gradient *g, int64_t first, int64_t count, const void *data);
// Brings the squares of device d's sums to the host, if the device has memory of its own.
choir_status chi_update_gate_fetch_squares(chi_pending_update *u, int d);
// Decides on the host, from all squares.
choir_status chi_update_gate_decide(const chi_pending_update *u, double *factor, bool *skip);
// Queues device d's decision. Updates that are queued behind it take u->device[d].gate.verdict.
choir_status chi_update_gate_queue(chi_pending_update *u, int d);
// Reads device d's verdict after a wait for its stream; status is the wait's. *applied: false if
// the gate skipped the update. Fails if the optimizer does; then nothing was written.
choir_status chi_update_gate_read(
		chi_pending_update *u, int d, choir_status status, bool *applied);
