// Overwrites the JSON. CHOIR_INVALID names the position.
#pragma once

#include "cluster/roles.h"

choir_status chi_roles_read(chi_roles *r, const char *source, char *json, size_t bytes);
// {"worker": [...]}.
choir_status chi_roles_read_cluster(chi_roles *r, const char *source, char *json, size_t bytes);
