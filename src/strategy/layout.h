// The devices of a strategy: which carry its replicas, and which hold its variables.
#pragma once

#include "strategy/strategy.h"

enum { CHI_MAX_DEVICES = 1024 };

// Finds the devices, deals the replicas of all workers to them, and asks the strategy's table
// where variables lie.
choir_status chi_layout_open(choir_strategy *owner);
// The devices of one worker: those of its block of the replicas.
choir_status chi_layout_open_block(choir_strategy *s);
// Which device of s carries replica.
int chi_strategy_device_index(const choir_strategy *s, int replica);
