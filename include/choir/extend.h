// Tables that a program can implement for its own hardware and interconnects: kinds of devices
// (memory and streams), kernels for them, cross-device operations, transports of clusters, and
// strategies. A table is a struct of functions that begins with its size and version;
// registering copies it.
#pragma once

#include "extend/cross_device_ops_table.h"
#include "extend/device_table.h"
#include "extend/kernel_table.h"
#include "extend/strategy_table.h"
#include "extend/transport_table.h"
