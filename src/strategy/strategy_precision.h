// The precision of a strategy's replicas.
#pragma once

#include "strategy/strategy.h"

choir_status chi_strategy_check_precision(const choir_strategy_options *o);
// By the options, before the threads start. CHOIR_UNSUPPORTED: a device cannot sum in .wire.
choir_status chi_strategy_open_precision(choir_strategy *s);
