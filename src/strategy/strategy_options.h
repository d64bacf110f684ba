// Options of strategies and of calls that communicate.
#pragma once

#include "strategy/strategy.h"

// Checks o against the table of s, and sets s->options (with strings on the heap),
// s->communication and s->timeout.
choir_status chi_strategy_options_copy(choir_strategy *s, const choir_strategy_options *o);

// The options of a call, with the strategy's defaults filled in.
typedef struct {
	chi_communicator *communicator;
	double timeout;
	int64_t bytes_per_pack, num_packs; // 0: not used
	choir_slices_result slices;
} chi_communication;

// Checks o (NULL: the strategy's options) and finds or opens the communicator that it names.
choir_status chi_communication_resolve(
		choir_strategy *s, const choir_communication_options *o, chi_communication *communication);
