// Execution of an update: reduces the gradients and calls the optimizer.
#pragma once

#include "strategy/gradients/pending_update.h"

// Exactly one caller passes prepare_it; the last one finishes the update.
choir_status chi_pending_update_execute(chi_pending_update *u, int from, int to, bool prepare_it);
