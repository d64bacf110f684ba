// Devices of all servers of a cluster_spec.
#pragma once

#include "choir/status.h"

#include <stddef.h>

// {"worker": ["node1:7000", "node2:7000"]} gives "remote:node1:7000,remote:node2:7000", with the
// jobs and addresses in their order. CHOIR_INVALID: other JSON, or no address. Free it with
// chi_free.
choir_status chi_cluster_spec_devices(const char *cluster_spec, char **devices);
