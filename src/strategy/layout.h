// The devices of a strategy: those that carry replicas, and those that hold variables.
#pragma once

#include "strategy/strategy.h"

enum { CHI_MAX_DEVICES = 1024 };

// Finds the devices, assigns the replicas of all workers to them, and asks the strategy's table
// for the devices of variables.
choir_status chi_layout_open(choir_strategy *owner);
// Finds the devices of one worker, from its block of replicas.
choir_status chi_layout_open_block(choir_strategy *s);
// The device of s that carries replica.
int chi_strategy_device_index(const choir_strategy *s, int replica);
