// The options of a strategy, and those of a call that communicates.
#pragma once

#include "strategy/strategy.h"

// Checks o against the table of s. s->options becomes a copy whose strings are of the heap, and
// s->communication and s->timeout what o says of these.
choir_status chi_strategy_options_copy(choir_strategy *s, const choir_strategy_options *o);

// The options of a call, with the strategy's where it says nothing.
typedef struct {
	chi_communicator *communicator;
	double timeout;
	int64_t bytes_per_pack, num_packs; // 0: not packed by it
	choir_slices_result slices;
} chi_communication;

// Checks o (NULL: the strategy's) and finds, or opens, what it names.
choir_status chi_communication_resolve(
		choir_strategy *s, const choir_communication_options *o, chi_communication *communication);
