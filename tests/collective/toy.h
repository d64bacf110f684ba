// Cross-device operations that use only the public headers: simple and slow.
#pragma once

#include "choir/extend/cross_device_ops_table.h"

// "toy", for devices with host memory.
extern const choir_cross_device_ops_table toy_ops;
