// Cross-device operations made outside of Choir, with its public headers alone: slow, simple, and
// right.
#pragma once

#include "choir/extend/cross_device_ops_table.h"

// "toy": for devices whose memory is the host's.
extern const choir_cross_device_ops_table toy_ops;
