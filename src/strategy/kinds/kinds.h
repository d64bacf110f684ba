// The built-in strategies, and the workers of a parameter server.
#pragma once

#include "strategy/strategy.h"

extern const choir_strategy_table chi_default_table, chi_one_device_table, chi_mirrored_table,
		chi_central_storage_table, chi_parameter_server_table, chi_multi_worker_mirrored_table;

choir_status chi_strategy_open_workers(choir_strategy *owner);
void chi_strategy_close_workers(choir_strategy *owner);
