// A synchronous device that tests register through the public table. The host may not touch its
// memory: the highest bit of its addresses is flipped, so any use of one outside the table's
// functions crashes.
#pragma once

#include "choir/extend/device_table.h"

// Makes a table of that kind with count() devices.
choir_device_table toy_table(const char *kind, int (*count)(void));
