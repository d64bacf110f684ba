// Overwrites the JSON text. CHOIR_INVALID names the position.
#pragma once

#include "cluster/roles.h"

// Cluster and task. An empty object sets nothing.
choir_status chi_roles_read(chi_roles *r, const char *source, char *json, size_t bytes);
// {"worker": [...]}.
choir_status chi_roles_read_cluster(chi_roles *r, const char *source, char *json, size_t bytes);
