// The tables that others may implement, for hardware and interconnects of their own.
#pragma once

#include "extend/cross.h"
#include "extend/device.h"
#include "extend/kernel.h"
