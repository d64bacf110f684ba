// A device from outside: synchronous, with memory that the host may not touch, registered through
// the public table by tests. Its addresses have the highest bit flipped, so that who uses one
// without its slots crashes.
#pragma once

#include "choir/extend/device_table.h"

// A whole table of that kind. count devices exist.
choir_device_table toy_table(const char *kind, int (*count)(void));
