// The communicator of one of several workers.
#pragma once

#include "collective/cross_device_ops.h"
#include "collective/process_group.h"

// name is only checked: workers have one algorithm, with exchanges in host memory, or in devices'
// if all workers' transports take it.
choir_status chi_communicator_open_among_workers(chi_communicator *g, int members,
		choir_device *const *devices, chi_process_group *p, const char *name);
