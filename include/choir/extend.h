// Tables that a program can implement for its own hardware and interconnects: kinds of devices
// (memory and streams), kernels for them, cross-device operations, transports of clusters, and
// strategies. A table is a struct of functions that begins with its size and version;
// registering copies it. Programs that only use Choir do not need this header.
#pragma once

#include "extend/cluster.h"
#include "extend/cross.h"
#include "extend/device.h"
#include "extend/kernel.h"
#include "extend/strategy.h"
