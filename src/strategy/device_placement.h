// Devices of a strategy, for replicas and variables.
#pragma once

#include "strategy/strategy.h"

enum { CHI_MAX_DEVICES = 1024 };

choir_status chi_layout_open(choir_strategy *owner);
choir_status chi_layout_open_block(choir_strategy *s);
int chi_strategy_device_index(const choir_strategy *s, int local_replica);
