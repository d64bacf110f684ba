// Execution of an update: reduces the gradients and calls the optimizer.
#pragma once

#include "strategy/gradients/pending.h"

// Exactly one caller passes prepare_it; the last one finishes the update.
choir_status chi_pending_update_execute(chi_pending_update *u, int from, int to, bool prepare_it);
choir_status chi_device_gradient_write(
		const chi_device_gradient *g, int copy, const chi_gradient_chunk *chunk);
choir_status chi_device_gradient_write_rows(
		const chi_device_gradient *g, const chi_gradient_rows *rows);
