// Devices of a strategy: for replicas, and for variables.
#pragma once

#include "strategy/strategy.h"

enum { CHI_MAX_DEVICES = 1024 };

// Finds devices, assigns all workers' replicas to them, and asks the table for the variables'
// devices.
choir_status chi_layout_open(choir_strategy *owner);
// The devices of one worker's block of replicas.
choir_status chi_layout_open_block(choir_strategy *s);
int chi_strategy_device_index(const choir_strategy *s, int replica);
