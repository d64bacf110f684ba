// Overwrites the JSON. CHOIR_INVALID names the position.
#pragma once

#include "cluster/roles.h"

choir_status chi_roles_read(chi_roles *r, const char *source, char *json, size_t bytes);
// {"worker": [...]}.
choir_status chi_roles_read_cluster(chi_roles *r, const char *source, char *json, size_t bytes);
// {"worker": ["node1:7000", "node2:7000"]} gives "remote:node1:7000,remote:node2:7000", for
// chi_free. CHOIR_INVALID also: no address.
choir_status chi_cluster_spec_devices(const char *cluster_spec, char **devices);
