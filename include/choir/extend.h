// The tables that others may implement, for hardware and interconnects of their own: a kind of
// device (its memory and streams), kernels for it, the way that sums travel between devices, and
// strategies. A table is a struct of functions that begins with its size and version; registering
// copies it. Programs that only use Choir do not need this header.
#pragma once

#include "extend/cluster.h"
#include "extend/cross.h"
#include "extend/device.h"
#include "extend/kernel.h"
#include "extend/strategy.h"
