// Roles as JSON. Both functions change the text; CHOIR_INVALID gives the position of what is
// malformed.
#pragma once

#include "cluster/roles.h"

// Reads the value of TF_CONFIG: its cluster and its task. An empty object says nothing.
choir_status chi_roles_read(chi_roles *r, const char *source, char *json, size_t bytes);
// Reads a cluster alone, {"worker": [...]}.
choir_status chi_roles_read_cluster(chi_roles *r, const char *source, char *json, size_t bytes);
