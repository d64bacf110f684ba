// Options of strategies and of calls that communicate.
#pragma once

#include "strategy/strategy.h"

choir_status chi_strategy_options_copy(choir_strategy *s, const choir_strategy_options *o);

// A call's, with the strategy's defaults.
typedef struct {
	chi_communicator *communicator;
	double timeout;
	int64_t bytes_per_pack, num_packs;
	choir_slices_result slices;
} chi_communication;

// Finds or opens the communicator of .implementation; NULL: the strategy's.
choir_status chi_communication_resolve(
		choir_strategy *s, const choir_communication_options *o, chi_communication *communication);
